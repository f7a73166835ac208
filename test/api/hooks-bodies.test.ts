/** Rows about bodies, answers and fields that no other ingress test covers; each through a real socket. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { get } from "node:http";
import { plain } from "../../src/gateway/agent/boundary/tainted-text.ts";
import { hooksSchema } from "../../src/gateway/hooks/config.ts";
import { WAITS_MAX } from "../../src/gateway/hooks/ingress/waits.ts";
import { HOOK_TOKEN, startGateway } from "../gateway/operate/world.ts";
import { CHANNELS, TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { agents, json, refusal, startHooks, wakes } from "./hooks-api.ts";
import { schemaProblems } from "./openapi.ts";

describe("body", () => {
  test("hooks.maxBodyBytes: a body of the limit is accepted, and one byte more gets 413", async () => {
    const api = await startHooks({ hooks: { maxBodyBytes: 100 } });
    const body = (bytes: number): string => JSON.stringify({ text: "x".repeat(bytes - 11) });
    expect((await api.post("/hooks/wake", body(100))).status).toBe(200);
    expect(await refusal(await api.post("/hooks/wake", body(101)))).toEqual([413, "payload_too_large"]);
  });

  test.each(["text/plain", "application/octet-stream", "application/x-www-form-urlencoded", "nonsense", ""])(
    "Content-Type %p: /wake and /agent read JSON as JSON",
    async (type) => {
      const api = await startHooks();
      const headers = { "content-type": type };
      expect((await api.post("/hooks/wake", { text: "hi" }, headers)).status).toBe(200);
      expect((await api.post("/hooks/agent", { message: "hi" }, headers)).status).toBe(202);
      expect((await wakes(api)).map(({ text }) => plain(text))).toEqual(["hi"]);
    },
  );

  test("a byte order mark is skipped, and the last of equal keys counts", async () => {
    const api = await startHooks();
    expect((await api.post("/hooks/wake", '\ufeff{"text":"a"}')).status).toBe(200);
    expect((await api.post("/hooks/wake", '{"text":"b","text":"c"}')).status).toBe(200);
    expect((await wakes(api)).map(({ text }) => plain(text))).toEqual(["a", "c"]);
  });

  test("text: has no limit below the body's, and is kept whole", async () => {
    const api = await startHooks();
    const text = "ü".repeat(100_000);
    expect((await api.post("/hooks/wake", { text })).status).toBe(200);
    expect(plain((await wakes(api))[0]!.text)).toBe(text);
  });
});

describe("answers", () => {
  test("500: an unexpected failure has the usual error body, and only the log has details", async () => {
    const accept = () => Promise.reject(new Error(`a bug with ${TOKEN}`));
    const api = await startHooks({ deps: { accept } });
    const response = await api.post("/hooks/wake", { text: "a" });
    const text = await response.clone().text();
    expect(text).not.toContain("bug");
    expect(await refusal(response)).toEqual([500, "internal"]);
    const bugs = api.logs.filter(({ msg }) => msg === "bug");
    expect(bugs).toMatchObject([{ level: "error", request_id: JSON.parse(text).requestId }]);
  });

  test("JSON is sent as application/json; charset=utf-8 with no-store and nosniff", async () => {
    const api = await startHooks();
    for (const body of [{ text: "a" }, {}]) {
      const { headers } = await api.post("/hooks/wake", body);
      expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect([headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual(["no-store", "nosniff"]);
    }
  });

  test("GET {hooks.path}/runs/:id/events: watchers beyond the limit get 503 with Retry-After", async () => {
    const world = await startGateway({ script: () => ({ text: "x", until: new Promise(() => {}) }) });
    const { runId } = await json(await world.hook("agent", { message: "hi" }));
    /** With node's client, which does not limit concurrent connections. */
    const watch = (): Promise<{ status: number; retryAfter: string | undefined; leave: () => void }> => {
      const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof watch>>>();
      const url = `${world.url}/hooks/runs/${runId}/events`;
      const request = get(url, { agent: false, headers: { authorization: `Bearer ${HOOK_TOKEN}` } }, (response) => {
        response.on("error", () => {}); // aborted in the middle
        response.resume();
        const { statusCode = 0, headers } = response;
        resolve({ status: statusCode, retryAfter: headers["retry-after"], leave: () => void request.destroy() });
      });
      request.on("error", reject);
      return promise;
    };
    const watching = await Promise.all(Array.from({ length: WAITS_MAX }, watch));
    expect(watching.filter(({ status }) => status === 200)).toHaveLength(WAITS_MAX);
    const { status, retryAfter } = await watch();
    expect([status, retryAfter]).toEqual([503, "5"]);
    for (const { leave } of watching) leave();
    let again = await watch();
    for (const deadline = Date.now() + 60_000; again.status === 503 && Date.now() < deadline; again = await watch()) {
      await Bun.sleep(20);
    }
    expect(again.status).toBe(200);
    again.leave();
  }, 120_000);
});

describe("channel", () => {
  test.each(["googlechat", "google-chat", "webchat", "sms"])("%s is not supported and gets 400", async (channel) => {
    const api = await startHooks();
    const response = await api.post("/hooks/agent", { message: "hi", channel });
    expect(await refusal(response)).toEqual([400, "channel_not_allowed"]);
  });

  test.each(["last", ...CHANNELS])("%s is allowed in a mapping", async (channel) => {
    const mapping = { match: { path: "ci" }, messageTemplate: "x", channel };
    expect(hooksSchema.safeParse({ mappings: [mapping] }).success).toBe(true);
    const api = await startHooks({ hooks: { mappings: [mapping] } });
    expect((await api.post("/hooks/ci", {})).status).toBe(202);
    expect((await agents(api))[0]?.channel).toBe(channel);
  });
});

/** The body as parsed: an integer beyond 2^53 is text. */
const asRead = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body), (_, value: unknown) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(`${value}`) ? `${value}` : value,
  );

test("a body with any fields matches the schema, gets a warning or a 4xx, but never a 5xx", async () => {
  const api = await startHooks({ hooks: { callbacks: { allowFromRequest: true } } });
  const { paths } = await json(await fetch(`${api.url}/openapi.json`));
  const schemaOf = (endpoint: string): any =>
    paths[`/hooks/${endpoint}`].post.requestBody.content["application/json"].schema;
  const strange = fc.oneof(
    fc.constantFrom<unknown>("", " ", "now", "next-heartbeat", "true", "false", "last", "slack", "hook:a", "12", "0"),
    fc.constantFrom<unknown>(true, false, 0, 1, -1, 0.5, 1e9, 1e300, [], {}, ["a"], { a: 1 }, "x".repeat(600)),
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.jsonValue().filter((value) => value !== null), // null counts as absent
  );
  const bodyOf = (endpoint: string) => {
    const names = Object.keys(schemaOf(endpoint).properties);
    const needed = endpoint === "wake" ? { text: "hi" } : { message: "hi" };
    return fc
      .dictionary(fc.constantFrom(...names, "channelId", "__proto__", "constructor"), strange, { maxKeys: 4 })
      .map((fields) => ({ endpoint, body: { ...needed, ...fields } }));
  };
  const holds = fc.asyncProperty(fc.oneof(bodyOf("wake"), bodyOf("agent")), async ({ endpoint, body }) => {
    const response = await api.post(`/hooks/${endpoint}`, body);
    const answer = await json(response.clone());
    if (response.ok) {
      if (answer.warnings === undefined) expect(schemaProblems(schemaOf(endpoint), asRead(body))).toBe("");
    } else {
      expect((await refusal(response))[0]).toBeWithin(400, 500);
    }
  });
  await fc.assert(holds, { numRuns: 400 });
}, 120_000);
