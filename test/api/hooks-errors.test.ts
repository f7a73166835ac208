/** The rows of "Gateway Webhook Ingress" for errors and limits, each through a real socket; and idempotency. */
import { describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { RunStatus } from "../../src/gateway/hooks/queue/deliveries/run-status.ts";
import type { IngressDeps } from "../../src/gateway/hooks/ingress/ports.ts";
import { TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { type Api, json, refusal, startHooks } from "./hooks-api.ts";

async function* nothing(): AsyncGenerator<never> {
  yield* [];
}

describe("errors", () => {
  test.each(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])(
    "%s: 405 with Allow, without a check of the token",
    async (method) => {
      const api = await startHooks();
      for (let i = 0; i < 25; i++) {
        const response = await api.send("/hooks/wake", undefined, { method });
        expect(response.headers.get("allow")).toBe("POST");
        expect(await refusal(response)).toEqual([405, "method_not_allowed"]);
      }
      expect((await api.send("/hooks/wake", { text: "hi" })).headers.get("ratelimit-remaining")).toBe("19");
    },
  );

  test("HEAD: 405 without a body", async () => {
    const api = await startHooks();
    const response = await api.send("/hooks/wake", undefined, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([405, ""]);
  });

  test("400: invalid JSON, with an error that does not quote the body", async () => {
    const api = await startHooks();
    const response = await api.post("/hooks/wake", '{"text": secret-word}');
    const text = await response.clone().text();
    expect(text).not.toContain("secret-word");
    expect(await json(response.clone())).toMatchObject({ error: "invalid JSON" });
    expect(await refusal(response)).toEqual([400, "invalid_json"]);
  });

  test.each(["[]", "null", "5", '"text"', "[{}]"])("400: %s is not an object", async (body) => {
    const api = await startHooks();
    expect(await refusal(await api.post("/hooks/wake", body))).toEqual([400, "invalid_body"]);
    expect(await refusal(await api.post("/hooks/agent", body))).toEqual([400, "invalid_body"]);
  });

  test("400: an empty body counts as an empty object", async () => {
    const api = await startHooks();
    expect(await refusal(await api.post("/hooks/wake", ""))).toEqual([400, "text_required"]);
    expect(await refusal(await api.post("/hooks/wake", " \n"))).toEqual([400, "text_required"]);
  });

  test("413: a body one byte over the limit is refused with JSON; one of the limit is accepted", async () => {
    const api = await startHooks();
    const body = (bytes: number): string => JSON.stringify({ text: "x".repeat(bytes - 11) });
    expect(body(262_144)).toHaveLength(262_144);
    expect((await api.post("/hooks/wake", body(262_144))).status).toBe(200);
    expect(await refusal(await api.post("/hooks/wake", body(262_145)))).toEqual([413, "payload_too_large"]);
  });

  test.each([300_000, 5_000_000, 30_000_000])(
    "413: the answer reaches a sender of %d bytes, with Content-Length or in chunks",
    async (size) => {
      const api = await startHooks();
      const announced = await api.post("/hooks/wake", "x".repeat(size));
      expect(await refusal(announced)).toEqual([413, "payload_too_large"]);
      const chunk = new Uint8Array(100_000);
      let left = size / chunk.length;
      const stream = new ReadableStream({
        pull: (controller) => (left-- > 0 ? controller.enqueue(chunk) : controller.close()),
      });
      const headers = { authorization: `Bearer ${TOKEN}` };
      const chunked = await fetch(`${api.url}/hooks/wake`, { method: "POST", body: stream, headers });
      expect(await refusal(chunked)).toEqual([413, "payload_too_large"]);
    },
  );

  test("413: a mapping's maxBodyBytes may be smaller or larger than the common limit", async () => {
    const mappings = [
      { match: { path: "small" }, action: "wake", textTemplate: "x", maxBodyBytes: 10 },
      { match: { path: "large" }, action: "wake", textTemplate: "x", maxBodyBytes: 1_000_000 },
    ];
    const api = await startHooks({ hooks: { mappings } });
    expect((await api.post("/hooks/small", '{"a":1234}')).status).toBe(200);
    expect(await refusal(await api.post("/hooks/small", '{"a":12345}'))).toEqual([413, "payload_too_large"]);
    expect((await api.post("/hooks/large", JSON.stringify("x".repeat(900_000)))).status).toBe(200);
  });

  test("413: mappings that share a path each apply their own limit", async () => {
    const mappings = [
      { match: { path: "in", source: "small" }, action: "wake", textTemplate: "x", maxBodyBytes: 30 },
      { match: { path: "in" }, action: "wake", textTemplate: "x", maxBodyBytes: 1000 },
    ];
    const api = await startHooks({ hooks: { mappings } });
    const pad = "x".repeat(100);
    expect((await api.post("/hooks/in", { source: "small" })).status).toBe(200);
    expect((await api.post("/hooks/in", { source: "large", pad })).status).toBe(200);
    expect(await refusal(await api.post("/hooks/in", { source: "small", pad }))).toEqual([413, "payload_too_large"]);
  });

  test("415: a content type other than JSON, if the ingress is strict", async () => {
    const api = await startHooks({ hooks: { strict: true } });
    const type = (name: string) => api.post("/hooks/wake", { text: "hi" }, { "content-type": name });
    expect(await refusal(await type("text/plain"))).toEqual([415, "unsupported_media_type"]);
    expect((await type("application/json; charset=utf-8")).status).toBe(200);
  });

  test("400: a body that is not UTF-8", async () => {
    const api = await startHooks();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = await fetch(`${api.url}/hooks/wake`, {
      method: "POST",
      body: Uint8Array.of(123, 255, 125),
      headers,
    });
    expect(await refusal(response)).toEqual([400, "invalid_utf8"]);
  });

  test("a form is read like a JSON object", async () => {
    const api = await startHooks();
    const body = "message=hi+there&deliver=false&timeoutSeconds=9";
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    expect((await api.post("/hooks/agent", body, headers)).status).toBe(202);
    expect((await api.world.actions())[0]).toMatchObject({ deliver: false, timeoutSeconds: 9 });
  });

  /** A request that pauses in the middle of its body: authenticated, and not read yet. */
  async function halfSent(): Promise<{ api: Api; finish: () => Promise<Response> }> {
    const begun = Promise.withResolvers<void>();
    const rest = Promise.withResolvers<void>();
    const now = () => {
      begun.resolve();
      return Date.now();
    };
    const api = await startHooks({ deps: { now } });
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode('{"text":'));
        await rest.promise;
        controller.enqueue(new TextEncoder().encode('"hi"}'));
        controller.close();
      },
    });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = fetch(`${api.url}/hooks/wake`, { method: "POST", body, headers });
    await begun.promise;
    const finish = (): Promise<Response> => {
      rest.resolve();
      return response;
    };
    return { api, finish };
  }

  test("a request is finished with the configuration that it began with", async () => {
    const { api, finish } = await halfSent();
    const { hooks, ...rest } = api.world.settings;
    api.world.settings = { hooks: { ...hooks, maxBodyBytes: 1 }, ...rest };
    expect((await finish()).status).toBe(200);
    expect((await api.post("/hooks/wake", { text: "hi" })).status).toBe(413);
  });

  test("503: a request whose body is incomplete when the server begins to shut down", async () => {
    const { api, finish } = await halfSent();
    api.world.ingress.drain(5000);
    expect(await refusal(await finish())).toEqual([503, "shutting_down"]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("503: the queue is full; the answer has Retry-After, and nothing is stored", async () => {
    const api = await startHooks({ maxQueued: 1 });
    expect((await api.post("/hooks/wake", { text: "a" })).status).toBe(200);
    const response = await api.post("/hooks/wake", { text: "b" });
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refusal(response)).toEqual([503, "queue_full"]);
    expect(await api.world.actions()).toHaveLength(1);
  });

  test("503: a mapping's share of the queue is full; Retry-After follows the rate at which its runs end", async () => {
    const mappings = [{ id: "ci", match: { path: "ci" }, action: "wake", textTemplate: "x" }];
    const api = await startHooks({ hooks: { mappings }, maxPerMapping: 1 });
    expect((await api.post("/hooks/ci", {})).status).toBe(200);
    const response = await api.post("/hooks/ci", {});
    expect(response.headers.get("retry-after")).toBe("60"); // nothing ends here
    expect(await refusal(response)).toEqual([503, "queue_full"]);
    expect((await api.post("/hooks/wake", { text: "b" })).status).toBe(200);
  });

  test("413: a request with more items than the mapping's share of the queue, with that share in the details", async () => {
    const api = await startHooks({ hooks: { presets: ["mail"] }, maxPerMapping: 3 });
    const mails = (n: number) => ({
      source: "mail",
      messages: Array.from({ length: n }, (_, i) => ({ id: `${i}`, from: "a", subject: "b", snippet: "c" })),
    });
    const response = await api.post("/hooks/mail", mails(4));
    const { details } = await json(response.clone());
    expect(details).toEqual([{ field: "items", reason: "expected at most 3 in one request, got 4" }]);
    expect(await refusal(response)).toEqual([413, "batch_too_large"]);
    expect(await api.world.actions()).toEqual([]);
    expect((await api.post("/hooks/mail", mails(3))).status).toBe(202);
  });

  test("503: a request during shutdown, with Retry-After", async () => {
    const api = await startHooks();
    api.world.ingress.drain(12_000);
    api.world.nowMs += 5000;
    const response = await api.post("/hooks/wake", { text: "a" });
    expect(response.headers.get("retry-after")).toBe("7");
    expect(await refusal(response)).toEqual([503, "shutting_down"]);
  });

  test("503: a delivery that cannot be stored is not acknowledged", async () => {
    const accept = () => Promise.reject(new AppError("storage", "the disk is full"));
    const api = await startHooks({ deps: { accept } });
    const response = await api.post("/hooks/wake", { text: "a" });
    expect(response.headers.get("retry-after")).toBe("30");
    expect(await refusal(response)).toEqual([503, "unavailable"]);
  });

  test("a database failure while a run is watched sends an error event without the database's message", async () => {
    async function* watch(): AsyncGenerator<never> {
      yield* [];
      throw new AppError("storage", "the database at 10.0.0.1 is away");
    }
    const origin = async () => ({ path: "agent", authKind: "token", authId: "main" });
    const status = async () => ({ id: "1", state: "running" }) as RunStatus;
    const api = await startHooks({ deps: { runs: { origin, status, watch } } });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = await api.send("/hooks/runs/1/events", undefined, { method: "GET", headers });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
    expect(await response.text()).toBe('event: error\ndata: {"error":"internal error"}\n\n');
    expect(api.logs.map(({ msg }) => msg)).toEqual(["request"]);
  });

  test("401: a request for a run without a valid token does not reach the database", async () => {
    const asked: string[] = [];
    const origin = async (id: string): Promise<undefined> => void asked.push(id);
    const limited = { id: "ci", token: "token-of-ci-with-24-characters", paths: ["elsewhere"] };
    const runs: IngressDeps["runs"] = { origin, status: async () => undefined, watch: nothing };
    const api = await startHooks({ hooks: { tokens: [limited] }, deps: { runs } });
    const ask = (id: string, token: string): Promise<Response> =>
      api.send(`/hooks/runs/${id}`, undefined, { method: "GET", headers: { authorization: `Bearer ${token}` } });
    const stranger = await ask("1", "wrong");
    expect(stranger.headers.get("ratelimit-remaining")).toBe("19");
    expect(await refusal(stranger)).toEqual([401, "unauthorized"]);
    expect(asked).toEqual([]);
    expect(await refusal(await ask("2", TOKEN))).toEqual([404, "not_found"]);
    expect(await refusal(await ask("3", limited.token))).toEqual([403, "token_not_for_path"]);
    expect(asked).toEqual(["2", "3"]);
  });

  test.each(["origin", "status"] as const)(
    "503: a request for a run while the database is away (%s)",
    async (asked) => {
      const away = async (): Promise<never> => Promise.reject(new AppError("storage", "the database is away"));
      const runs: IngressDeps["runs"] = {
        origin: async () => ({ path: "agent", authKind: "token", authId: "main" }),
        status: async () => undefined,
        watch: nothing,
        [asked]: away,
      };
      const api = await startHooks({ deps: { runs } });
      for (const path of ["/hooks/runs/1", "/hooks/runs/1/events"]) {
        const headers = { authorization: `Bearer ${TOKEN}` };
        const response = await api.send(path, undefined, { method: "GET", headers });
        expect(response.headers.get("retry-after")).toBe("30");
        expect(await refusal(response)).toEqual([503, "unavailable"]);
      }
      expect(api.logs.filter(({ msg }) => msg === "bug")).toEqual([]);
    },
  );
});

describe("idempotency", () => {
  test.each(["wake", "agent"])(
    "a repeat of key and body for /%s gets the same answer, and runs nothing",
    async (path) => {
      const api = await startHooks();
      const body = { text: "hi", message: "hi" };
      const first = await api.post(`/hooks/${path}`, body, { "idempotency-key": "k1" });
      const again = await api.post(`/hooks/${path}`, body, { "idempotency-key": " k1 " });
      expect([again.status, await json(again)]).toEqual([first.status, await json(first)]);
      expect([first, again].map((each) => each.headers.get("idempotency-replayed"))).toEqual([null, "true"]);
      expect(await api.world.actions()).toHaveLength(1);
    },
  );

  test("409: the same key with another body", async () => {
    const api = await startHooks();
    const headers = { "idempotency-key": "k1" };
    await api.post("/hooks/wake", { text: "a" }, headers);
    const response = await api.post("/hooks/wake", { text: "b" }, headers);
    expect(await refusal(response)).toEqual([409, "idempotency_conflict"]);
  });

  test("idempotencyKey in the body counts if there is no header", async () => {
    const api = await startHooks();
    const body = { text: "a", idempotencyKey: "k2" };
    await api.post("/hooks/wake", body);
    expect((await api.post("/hooks/wake", body)).headers.get("idempotency-replayed")).toBe("true");
    const other = await api.post("/hooks/wake", body, { "idempotency-key": "k3" });
    expect(other.headers.get("idempotency-replayed")).toBeNull();
    expect(await api.world.actions()).toHaveLength(2);
  });

  test("keys of different tokens and paths are independent", async () => {
    const api = await startHooks({ hooks: { tokens: [{ id: "ci", token: "token-of-the-ci" }] } });
    const headers = { "idempotency-key": "k1" };
    const body = { text: "a", message: "a" };
    await api.post("/hooks/wake", body, headers);
    await api.post("/hooks/agent", body, headers);
    await api.post("/hooks/wake", body, { ...headers, authorization: "Bearer token-of-the-ci" });
    expect(await api.world.actions()).toHaveLength(3);
  });

  test("a key of more than 256 characters is ignored with a warning", async () => {
    const api = await startHooks();
    const response = await api.post("/hooks/wake", { text: "a" }, { "idempotency-key": "k".repeat(257) });
    expect((await json(response)).warnings).toEqual([expect.stringContaining("Idempotency-Key: expected 1 to 256")]);
    const longest = await api.post("/hooks/wake", { text: "a" }, { "idempotency-key": "k".repeat(256) });
    expect(await json(longest)).not.toHaveProperty("warnings");
  });

  test("a hundred concurrent requests with one key become one run", async () => {
    const api = await startHooks();
    const headers = { "idempotency-key": "k1" };
    const all = await Promise.all(Array.from({ length: 100 }, () => api.post("/hooks/wake", { text: "a" }, headers)));
    expect(new Set(await Promise.all(all.map((each) => each.text()))).size).toBe(1);
    expect(await api.world.actions()).toHaveLength(1);
  });
});
