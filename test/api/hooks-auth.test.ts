/** The rows of "Gateway Webhook Ingress" for authentication, each through a real socket; and the content of the log. */
import { describe, expect, test } from "bun:test";
import { TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { type Api, refusal, startHooks } from "./hooks-api.ts";
import { queryAll, queryOne } from "../../src/gateway/database/store.ts";

describe("authentication", () => {
  const wake = { text: "hi" };

  test.each([
    ["Authorization: Bearer", { authorization: `Bearer ${TOKEN}` }],
    ["authorization: bearer, blanks around", { authorization: `bearer   ${TOKEN}  ` }],
    ["x-gateway-token", { "x-gateway-token": TOKEN }],
    ["x-gateway-token beside Basic", { authorization: "Basic eA==", "x-gateway-token": TOKEN }],
    ["x-gateway-token beside an empty Bearer", { authorization: "Bearer ", "x-gateway-token": TOKEN }],
  ])("%s: is accepted", async (_, headers) => {
    const api = await startHooks();
    const response = await api.send("/hooks/wake", wake, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.has("deprecation")).toBe(false);
  });

  test("?token=: is accepted with a deprecation header, and logged without its value", async () => {
    const api = await startHooks();
    for (let i = 0; i < 3; i++) {
      const response = await api.send(`/hooks/wake?token=${TOKEN}`, wake);
      expect([response.status, response.headers.get("deprecation")]).toEqual([200, "@1795219200"]);
    }
    const warnings = api.logs.filter(({ level }) => level === "warn");
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ msg: expect.stringContaining("?token="), hook: "wake" });
    api.world.nowMs += 61_000;
    await api.send(`/hooks/wake?token=${TOKEN}`, wake);
    expect(api.logs.filter(({ level }) => level === "warn")).toHaveLength(2);
    expect(JSON.stringify(api.logs)).not.toContain(TOKEN);
    api.world.nowMs -= 3_600_000; // the clock was set back
    await api.send(`/hooks/wake?token=${TOKEN}`, wake);
    expect(api.logs.filter(({ level }) => level === "warn")).toHaveLength(3);
  });

  test.each(["wake", "ci"])("/hooks/%s: a token that is removed before the body ends gets 401", async (path) => {
    const mappings = [{ match: { path: "ci" }, action: "wake", textTemplate: "x" }];
    const api = await startHooks({ hooks: { mappings } });
    const { readable, writable } = new TransformStream<string, string>();
    const writer = writable.getWriter();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const body = readable.pipeThrough(new TextEncoderStream());
    const answer = fetch(`${api.url}/hooks/${path}`, { method: "POST", headers, body });
    await writer.write('{"text":');
    await Bun.sleep(100);
    const { settings } = api.world;
    api.world.settings = { ...settings, hooks: { ...settings.hooks, token: "another-token-of-24-characters" } };
    await writer.write('"hi"}');
    await writer.close();
    expect(await refusal(await answer)).toEqual([401, "unauthorized"]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("?token=: gets 400 if allowQueryToken is false, even beside a valid header", async () => {
    const api = await startHooks({ hooks: { allowQueryToken: false } });
    const response = await api.post(`/hooks/wake?token=${TOKEN}`, wake);
    expect(await refusal(response)).toEqual([400, "query_token_refused"]);
  });

  test.each([
    ["no token", {}],
    ["a wrong bearer token", { authorization: "Bearer wrong" }],
    ["a token without its scheme", { authorization: TOKEN }],
    ["a wrong bearer token beside the right header", { authorization: "Bearer wrong", "x-gateway-token": TOKEN }],
    ["a part of the token", { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
    ["the token twice", { authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` }],
  ])("%s: 401 with WWW-Authenticate", async (_, headers) => {
    const api = await startHooks();
    const response = await api.send("/hooks/wake", wake, { headers: headers as Record<string, string> });
    expect(response.headers.get("www-authenticate")).toStartWith("Bearer");
    expect(response.headers.get("ratelimit-remaining")).toBe("19");
    expect(await refusal(response)).toEqual([401, "unauthorized"]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("a wrong ?token=: 401", async () => {
    const api = await startHooks();
    expect(await refusal(await api.send("/hooks/wake?token=wrong", wake))).toEqual([401, "unauthorized"]);
  });

  test("every token has an id, which the delivery and the log keep in its place", async () => {
    const tokens = [{ id: "ci", token: "token-of-the-ci" }];
    const api = await startHooks({ hooks: { tokens } });
    await api.post("/hooks/wake", wake);
    expect((await api.send("/hooks/wake", wake, { headers: { "x-gateway-token": "token-of-the-ci" } })).status).toBe(
      200,
    );
    const ids = await api.world.store.read(() => queryAll<{ id: string }>("SELECT auth_id AS id FROM deliveries"));
    expect(ids.map(({ id }) => id)).toEqual(["main", "ci"]);
    expect(api.logs.filter(({ msg }) => msg === "request").map(({ auth }) => auth)).toEqual(["main", "ci"]);
  });

  test("a token restricted to other paths gets 403, and an expired one gets 401", async () => {
    const tokens = [
      { id: "ci", token: "token-of-the-ci", paths: ["/wake/"] },
      { id: "old", token: "old-token", expiresAt: "2020-01-01T00:00:00Z" },
    ];
    const api = await startHooks({ hooks: { tokens } });
    const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });
    expect((await api.send("/hooks/wake", wake, as("token-of-the-ci"))).status).toBe(200);
    const elsewhere = await api.send("/hooks/agent", { message: "hi" }, as("token-of-the-ci"));
    expect(await refusal(elsewhere)).toEqual([403, "token_not_for_path"]);
    expect(await refusal(await api.send("/hooks/wake", wake, as("old-token")))).toEqual([401, "unauthorized"]);
  });

  test("webhooks need no key of the model API, and such a key is no hook token", async () => {
    const api = await startHooks({}, { apiKeys: ["api-key"] });
    expect((await api.post("/hooks/wake", wake)).status).toBe(200);
    const headers = { authorization: "Bearer api-key" };
    expect((await api.send("/hooks/wake", wake, { headers })).status).toBe(401);
    expect((await fetch(`${api.url}/api/tags`, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(401);
  });

  test("webhooks are accepted under any host name, without CORS headers", async () => {
    const api = await startHooks();
    const headers = { host: "hooks.example", origin: "https://evil.example" };
    const response = await api.post("/hooks/wake", wake, headers);
    expect(response.status).toBe(200);
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    const preflight = await api.send("/hooks/wake", undefined, { method: "OPTIONS", headers });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([405, null]);
  });
});

describe("the throttle", () => {
  const wake = { text: "hi" };
  const guess = (api: Api, headers = {}) =>
    api.send("/hooks/wake", wake, { headers: { authorization: "Bearer x", ...headers } });

  test("the 21st failed attempt of a minute gets 429 with Retry-After; a correct token still works and clears it", async () => {
    const api = await startHooks();
    for (let left = 19; left >= 0; left--) {
      const response = await guess(api);
      expect([response.status, response.headers.get("ratelimit-remaining")]).toEqual([401, String(left)]);
    }
    const response = await guess(api);
    expect(Number(response.headers.get("retry-after"))).toBeWithin(1, 61);
    expect(await refusal(response)).toEqual([429, "too_many_failures"]);
    expect((await api.post("/hooks/wake", wake)).status).toBe(200);
    expect((await guess(api)).headers.get("ratelimit-remaining")).toBe("19");
  });

  test("a locked address may try again after a minute", async () => {
    const api = await startHooks();
    for (let i = 0; i < 21; i++) await guess(api);
    expect((await guess(api)).status).toBe(429);
    api.world.nowMs += 60_000;
    expect((await guess(api)).status).toBe(401);
  });

  test("clients behind a trusted proxy are counted separately; an untrusted proxy's X-Forwarded-For is ignored", async () => {
    const statuses = async (trustedProxies: string[]): Promise<number[]> => {
      const api = await startHooks({ trustedProxies });
      for (let i = 0; i < 20; i++) await guess(api, { "x-forwarded-for": "6.6.6.6, 1.2.3.4" });
      const from = async (address: string) => (await guess(api, { "x-forwarded-for": address })).status;
      return [await from("9.9.9.9, 1.2.3.4"), await from("5.6.7.8"), await from("1.2.3.4, 5.6.7.8")];
    };
    expect(await statuses(["127.0.0.0/8"])).toEqual([429, 401, 401]);
    expect(await statuses([])).toEqual([429, 429, 429]);
  });
});

test("a signature over the public address verifies behind a trusted proxy that terminates TLS", async () => {
  const secrets = "0123456789abcdef0123456789abcdef";
  const auth = { scheme: "hmac", header: "x-signature", signedContent: "{method}{url}{body}", secrets };
  const mappings = [{ match: { path: "signed" }, action: "wake", textTemplate: "x", auth }];
  const signed = new Bun.CryptoHasher("sha256", secrets).update("POSThttps://hooks.example.org/hooks/signed?a=1{}");
  const headers = {
    "x-signature": signed.digest("hex"),
    "x-forwarded-proto": "https",
    "x-forwarded-host": "hooks.example.org",
  };
  const statuses = [["127.0.0.0/8"], []].map(async (trustedProxies) => {
    const api = await startHooks({ trustedProxies, hooks: { mappings } });
    return (await api.send("/hooks/signed?a=1", {}, { headers })).status;
  });
  expect(await Promise.all(statuses)).toEqual([200, 401]);
});

test("the database holds no token, and holds a body only if keepBodies is set", async () => {
  const rows = async (keepBodies: boolean): Promise<Record<string, unknown>[]> => {
    const api = await startHooks({ hooks: { queue: { keepBodies } } });
    const headers = { cookie: `c=${TOKEN}`, "x-gateway-token": TOKEN, "user-agent": "sender/1", "x-secret": TOKEN };
    await api.post(`/hooks/wake?token=${TOKEN}`, { text: "hi" }, headers);
    return api.world.store.read(() => queryAll<Record<string, unknown>>("SELECT * FROM deliveries"));
  };
  const [lean] = await rows(false);
  expect({ ...lean }).toMatchObject({
    body: null,
    body_bytes: 13,
    body_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(JSON.parse(String(lean?.["headers"]))).toMatchObject({ "user-agent": "sender/1" });
  expect(JSON.stringify(lean)).not.toContain(TOKEN);
  const [full] = await rows(true);
  expect(new TextDecoder().decode(full?.["body"] as Uint8Array)).toBe('{"text":"hi"}');
});

test("the log has a line for each request, without tokens, bodies or queries", async () => {
  const api = await startHooks();
  const response = await api.post("/hooks/wake?secret=in-query", { text: "secret-text" });
  await api.send("/hooks/agent", { message: "secret-text" }, { headers: { authorization: "Bearer secret-token" } });
  const lines = api.logs.filter(({ msg }) => msg === "request");
  expect(lines).toMatchObject([
    { method: "POST", path: "/hooks/wake", status: 200, auth: "main", bytes: 22, runs: 1, ms: expect.any(Number) },
    { method: "POST", path: "/hooks/agent", status: 401, code: "unauthorized", reason: "the token is wrong" },
  ]);
  expect(lines[0]?.["request_id"]).toBe(response.headers.get("x-request-id"));
  expect(JSON.stringify(api.logs)).not.toContain("secret");
  expect(JSON.stringify(api.logs)).not.toContain(TOKEN);
});

describe("traceparent and tracestate (W3C Trace Context)", () => {
  const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const kept = async (traceparent: string) => {
    const api = await startHooks();
    const response = await api.post("/hooks/wake", { text: "hi" }, { traceparent, tracestate: "congo=t61, rojo=1" });
    expect(response.status).toBe(200);
    const row = await api.world.store.read(() => queryOne<{ headers: string }>("SELECT headers FROM deliveries"));
    const [line] = api.logs.filter(({ msg }) => msg === "request");
    const headers = JSON.parse(row!.headers);
    return [headers.traceparent, headers.tracestate, line?.["trace_id"]];
  };

  test("are kept with the delivery, and the trace id is logged", async () => {
    expect(await kept(good)).toEqual([good, "congo=t61,rojo=1", "0af7651916cd43dd8448eb211c80319c"]);
  });

  test.each(["hello", `${good}-more`, good.toUpperCase(), good.replace("00-", "ff-"), `${good}, ${good}`])(
    "%s is invalid, and neither kept nor logged",
    async (traceparent) => {
      expect(await kept(traceparent)).toEqual([undefined, undefined, undefined]);
    },
  );
});
