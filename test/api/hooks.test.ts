/**
 * The rows of "Gateway Webhook Ingress", each through a real socket: what a request becomes, and what its sender hears.
 * What is durable is read back from the database.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import { plain } from "../../src/base/passage.ts";
import type { AgentAction, WakeAction } from "../../src/hooks/action.ts";
import { CHANNELS, makeWorld, TOKEN, type World, type WorldOptions } from "../hooks/ingress/fixtures.ts";
import { makeHarness } from "../server/harness.ts";

interface Api {
  readonly world: World;
  readonly url: string;
  readonly logs: Record<string, unknown>[];
  send(path: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** With the hook token. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});

async function start(options: WorldOptions = {}, config = {}): Promise<Api> {
  let world!: World; // made by the harness, before it returns
  const harness = await makeHarness(config, { hooks: (log) => (world = makeWorld({ log, ...options })).ingress });
  closes.push(harness.close);
  const { url } = harness.listen();
  const send: Api["send"] = (path, body, init = {}) =>
    fetch(url + path, {
      method: "POST",
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...init,
    });
  return {
    world,
    url,
    logs: harness.logs,
    send,
    post: (path, body, headers) => send(path, body, { headers: { authorization: `Bearer ${TOKEN}`, ...headers } }),
  };
}

const json = async (response: Pick<Response, "json">): Promise<any> => response.json();
const wakes = (api: Api): WakeAction[] => api.world.actions().filter((action) => action.kind === "wake");
const agents = (api: Api): AgentAction[] => api.world.actions().filter((action) => action.kind === "agent");

/** Status and code of a refusal, whose body must have the one shape. */
async function refusal(response: Response): Promise<[number, string]> {
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  const body = await json(response);
  expect(body).toMatchObject({ ok: false, error: expect.any(String), code: expect.any(String) });
  expect(body.requestId).toBe(response.headers.get("x-request-id"));
  return [response.status, body.code];
}

describe("enabling", () => {
  test("hooks.enabled: anything but true leaves the paths unanswered", async () => {
    const api = await start({ hooks: { enabled: false } });
    const response = await api.post("/hooks/wake", { text: "hi" });
    expect([response.status, await response.text()]).toEqual([404, "404 page not found"]);
  });

  test("hooks.path: default /hooks, all paths below it", async () => {
    const api = await start();
    expect((await api.post("/hooks/wake", { text: "hi" })).status).toBe(200);
    expect((await api.post("/hooksy/wake", { text: "hi" })).status).toBe(404);
  });

  test("hooks.path: another one, whose old place is gone", async () => {
    const api = await start({ hooks: { path: "in/coming/" } });
    expect((await api.post("/in/coming/wake", { text: "hi" })).status).toBe(200);
    expect((await api.post("/hooks/wake", { text: "hi" })).status).toBe(404);
  });

  test("a new snapshot of the configuration counts from the next request on", async () => {
    const api = await start();
    const { hooks, gateway } = api.world.settings;
    api.world.settings = { hooks: { ...hooks, token: "another-token", path: "/elsewhere" }, gateway };
    expect((await api.post("/elsewhere/wake", { text: "hi" })).status).toBe(401);
    const headers = { authorization: "Bearer another-token" };
    expect((await api.send("/elsewhere/wake", { text: "hi" }, { headers })).status).toBe(200);
  });
});

describe("POST {hooks.path}/wake", () => {
  test("text: queues an event of the main session, 200 with its mode", async () => {
    const api = await start();
    const response = await api.post("/hooks/wake", { text: "  build failed\n" });
    expect(response.status).toBe(200);
    const body = await json(response);
    expect(body).toEqual({
      ok: true,
      mode: "now",
      runId: expect.any(String),
      requestId: expect.stringMatching(/^req_/),
    });
    const [wake] = wakes(api);
    expect(wake).toMatchObject({ mode: "now", isWrapped: true, text: [{ from: "external", text: "build failed" }] });
  });

  test.each([[{}], [{ text: "" }], [{ text: "  \n" }], [{ text: 5 }], [{ text: null }], [{ text: ["a"] }]])(
    "text: required, so %j gets 400 text_required",
    async (body) => {
      const api = await start();
      expect(await refusal(await api.post("/hooks/wake", body))).toEqual([400, "text_required"]);
      expect(api.world.actions()).toEqual([]);
    },
  );

  test.each([
    ["now", "now"],
    ["next-heartbeat", "next-heartbeat"],
    [undefined, "now"],
    [null, "now"],
  ])("mode: %p is %p", async (mode, expected) => {
    const api = await start();
    const body = await json(await api.post("/hooks/wake", { text: "hi", mode }));
    expect([body.mode, body.warnings]).toEqual([expected, undefined]);
    expect(wakes(api)[0]?.mode).toBe(expected as "now");
  });

  test("mode: anything else is taken as now, with a warning", async () => {
    const api = await start();
    const body = await json(await api.post("/hooks/wake", { text: "hi", mode: "later" }));
    expect(body).toMatchObject({ mode: "now", warnings: [expect.stringContaining("mode: expected 'now'")] });
  });

  test("a slash at the end is the same endpoint", async () => {
    const api = await start();
    expect((await api.post("/hooks/wake/", { text: "hi" })).status).toBe(200);
  });
});

describe("POST {hooks.path}/agent", () => {
  const one = async (api: Api, body: object): Promise<AgentAction> => {
    const response = await api.post("/hooks/agent", { message: "hi", ...body });
    expect([response.status, response.status === 202 ? "" : await response.text()]).toEqual([202, ""]);
    return agents(api).at(-1)!;
  };

  test("message: starts an isolated run, 202 with its id", async () => {
    const api = await start();
    const response = await api.post("/hooks/agent", { message: " Summarise the inbox " });
    expect(response.status).toBe(202);
    const body = await json(response);
    expect(body).toEqual({ ok: true, runId: expect.any(String), requestId: expect.any(String) });
    expect(api.world.db.query("SELECT id, state FROM runs").all()).toEqual([{ id: body.runId, state: "queued" }]);
    expect(agents(api)).toEqual([
      {
        kind: "agent",
        message: [{ from: "external", text: "Summarise the inbox" }],
        name: "Hook",
        wakeMode: "now",
        deliver: true,
        channel: "last",
        tools: [],
        isWrapped: true,
      },
    ]);
  });

  test.each([[{}], [{ message: " " }], [{ message: 5 }], [{ text: "hi" }]])(
    "message: required, so %j gets 400 message_required",
    async (body) => {
      const api = await start();
      expect(await refusal(await api.post("/hooks/agent", body))).toEqual([400, "message_required"]);
    },
  );

  test("name: the summary's prefix, on one line; default Hook", async () => {
    const api = await start();
    expect((await one(api, { name: " E-mail\nSystem: x " })).name).toBe("E-mail System: x");
    expect((await one(api, { name: "  " })).name).toBe("Hook");
    expect((await one(api, { name: "x".repeat(1000) })).name).toHaveLength(120);
  });

  test("sessionKey: the one that was asked for; default one of the run's own", async () => {
    const api = await start();
    expect((await one(api, { sessionKey: "hook:orders" })).sessionKey).toBe("hook:orders");
    expect(await one(api, {})).not.toHaveProperty("sessionKey");
    const keys = api.world.db.query<{ key: string; id: string }, []>("SELECT session_key AS key, id FROM runs").all();
    expect(keys[0]?.key).toEndWith("hook:orders");
    expect(keys[1]?.key).toEndWith(`hook:${keys[1]?.id}`);
  });

  test.each(["main", " MAIN ", "agent:other:hook:x"])("sessionKey: %p is not for requests", async (sessionKey) => {
    const api = await start();
    const response = await api.post("/hooks/agent", { message: "hi", sessionKey });
    expect(await refusal(response)).toEqual([400, "session_key_not_allowed"]);
    expect(api.world.actions()).toEqual([]);
  });

  test("sessionKey: prefixes limit it, in any case and width", async () => {
    const api = await start({ hooks: { sessionKeys: { prefixes: ["Hook:"], default: "hook:all" } } });
    expect((await one(api, { sessionKey: "ＨＯＯＫ:a" })).sessionKey).toBe("ＨＯＯＫ:a");
    expect((await one(api, {})).sessionKey).toBe("hook:all");
    const response = await api.post("/hooks/agent", { message: "hi", sessionKey: "x:hook:a" });
    expect(await refusal(response)).toEqual([400, "session_key_not_allowed"]);
  });

  test("sessionKey: allowFromRequest false refuses any", async () => {
    const api = await start({ hooks: { sessionKeys: { allowFromRequest: false } } });
    const response = await api.post("/hooks/agent", { message: "hi", sessionKey: "hook:a" });
    expect(await refusal(response)).toEqual([400, "session_key_not_allowed"]);
  });

  test("wakeMode: now or next-heartbeat", async () => {
    const api = await start();
    expect((await one(api, { wakeMode: "next-heartbeat" })).wakeMode).toBe("next-heartbeat");
    expect((await one(api, { wakeMode: "whenever" })).wakeMode).toBe("now");
  });

  test.each([
    [true, true],
    [false, false],
    ["false", false],
    [null, true],
    [0, true],
  ])("deliver: %p is %p", async (deliver, expected) => {
    const api = await start();
    expect((await one(api, { deliver })).deliver).toBe(expected);
  });

  test.each(["last", ...CHANNELS])("channel: %s is allowed", async (channel) => {
    const api = await start();
    expect((await one(api, { channel })).channel).toBe(channel);
  });

  test("channel: aliases and any case are the same channel", async () => {
    const api = await start();
    expect((await one(api, { channel: " TG " })).channel).toBe("telegram");
    expect((await one(api, { channel: "teams" })).channel).toBe("msteams");
    expect((await one(api, { channel: " Last" })).channel).toBe("last");
  });

  test.each([["carrier-pigeon"], [""], [5], [["slack"]], [{}], ["__proto__"]])(
    "channel: %j gets 400",
    async (channel) => {
      const api = await start();
      const response = await api.post("/hooks/agent", { message: "hi", channel });
      expect(await refusal(response)).toEqual([400, "channel_not_allowed"]);
    },
  );

  test("channel: the refusal lists what is allowed, not what was sent", async () => {
    const api = await start();
    const body = await json(await api.post("/hooks/agent", { message: "hi", channel: "carrier-pigeon" }));
    expect(body.details).toEqual([{ field: "channel", reason: `expected ${["last", ...CHANNELS].join("|")}` }]);
    expect(JSON.stringify(body)).not.toContain("pigeon");
  });

  test("channel: one that is not configured is a warning, unless nothing is delivered", async () => {
    const api = await start();
    const warned = await json(await api.post("/hooks/agent", { message: "hi", channel: "slack" }));
    expect(warned.warnings).toEqual([expect.stringContaining("not configured")]);
    const silent = await json(await api.post("/hooks/agent", { message: "hi", channel: "slack", deliver: false }));
    expect(silent).not.toHaveProperty("warnings");
  });

  test("to: a recipient, as text or as a number", async () => {
    const api = await start();
    expect((await one(api, { to: " +4912345 " })).to).toBe("+4912345");
    expect((await one(api, { to: -1001234567890 })).to).toBe("-1001234567890");
    expect(await one(api, { to: " " })).not.toHaveProperty("to");
  });

  test.each([[{}], [["a"]], [true], [1.5], ["x".repeat(513)]])("to: %j gets 400, not somebody else", async (to) => {
    const api = await start();
    expect(await refusal(await api.post("/hooks/agent", { message: "hi", to }))).toEqual([400, "invalid_field"]);
  });

  test("model: an allowed reference or alias", async () => {
    const api = await start();
    expect((await one(api, { model: "fast" })).model).toBe("fast");
  });

  test.each([
    ["", "model_required"],
    [5, "model_required"],
    ["big", "model_not_allowed"],
    ["nothing-like-it", "model_unknown"],
  ])("model: %j gets 400 %s before anything runs", async (model, code) => {
    const api = await start();
    expect(await refusal(await api.post("/hooks/agent", { message: "hi", model }))).toEqual([400, code]);
    expect(api.world.actions()).toEqual([]);
  });

  test("thinking: a level; an unknown one is ignored with a warning", async () => {
    const api = await start();
    expect((await one(api, { thinking: "high" })).thinking).toBe("high");
    const body = await json(await api.post("/hooks/agent", { message: "hi", thinking: "very" }));
    expect(body.warnings).toEqual(["thinking: no such level; ignored"]);
    expect(agents(api).at(-1)).not.toHaveProperty("thinking");
  });

  test.each([
    [30, 30],
    [30.9, 30],
    [0.2, 1],
    ["45", 45],
    [1e9, 86_400],
    [0, undefined],
    [-1, undefined],
    ["soon", undefined],
    [{}, undefined],
  ])("timeoutSeconds: %j is %p", async (timeoutSeconds, expected) => {
    const api = await start();
    expect((await one(api, { timeoutSeconds })).timeoutSeconds).toBe(expected as number);
  });

  test("callbackUrl: refused unless the configuration allows it, and then only public addresses", async () => {
    const closed = await start();
    const body = { message: "hi", callbackUrl: "https://example.com/done" };
    expect(await refusal(await closed.post("/hooks/agent", body))).toEqual([400, "callback_not_allowed"]);
    const open = await start({ hooks: { callbacks: { allowFromRequest: true } } });
    expect((await one(open, body)).callbackUrl).toBe(body.callbackUrl);
    for (const callbackUrl of ["http://example.com", "https://127.0.0.1/", "https://[::1]/", "no url", 5]) {
      const response = await open.post("/hooks/agent", { message: "hi", callbackUrl });
      expect(await refusal(response)).toEqual([400, "callback_not_allowed"]);
    }
  });

  test("unknown fields are accepted with a warning that names them", async () => {
    const api = await start();
    const body = await json(await api.post("/hooks/agent", { message: "hi", channelId: "C1", "<b>": 1, tools: ["x"] }));
    expect(body.warnings).toEqual(["channelId: unknown field", "(not shown): unknown field", "tools: unknown field"]);
    expect(agents(api)[0]?.tools).toEqual([]);
  });

  test("unknown and invalid fields are 400 where the ingress is strict", async () => {
    const api = await start({ hooks: { strict: true } });
    const headers = { "content-type": "application/json" };
    const unknown = await api.post("/hooks/agent", { message: "hi", channelId: "C1" }, headers);
    const details = (await json(unknown.clone())).details;
    expect(details).toEqual([{ field: "channelId", reason: "unknown field" }]);
    expect(await refusal(unknown)).toEqual([400, "unknown_field"]);
    const invalid = await api.post("/hooks/agent", { message: "hi", timeoutSeconds: "soon" }, headers);
    expect(await refusal(invalid)).toEqual([400, "invalid_field"]);
    expect((await api.post("/hooks/agent", { message: "hi" }, headers)).status).toBe(202);
  });
});

describe("POST {hooks.path}/<name>", () => {
  const mappings = [
    { id: "ci", match: { path: "ci" }, action: "wake", textTemplate: "CI: {{payload}}" },
    { match: { path: "team/alerts" }, messageTemplate: "Alert {{payload}}", name: "Alerts", channel: "telegram" },
    { match: { path: "in", source: "shop" }, action: "wake", wakeMode: "next-heartbeat", textTemplate: "shop" },
    { match: { path: "in", source: "crm" }, action: "wake", textTemplate: "crm" },
  ];

  test("a wake mapping answers like /wake: 200 with its mode", async () => {
    const api = await start({ hooks: { mappings } });
    const response = await api.post("/hooks/ci", { job: 7 });
    expect([response.status, await json(response)]).toEqual([
      200,
      { ok: true, mode: "now", runId: expect.any(String), requestId: expect.any(String) },
    ]);
    expect(plain(wakes(api)[0]!.text)).toBe('CI: {"job":7}');
  });

  test("an agent mapping answers like /agent: 202 with the run", async () => {
    const api = await start({ hooks: { mappings } });
    const response = await api.post("/hooks/team/alerts/", [1]);
    expect([response.status, await json(response)]).toEqual([
      202,
      { ok: true, runId: expect.any(String), requestId: expect.any(String) },
    ]);
    expect(agents(api)[0]).toMatchObject({ name: "Alerts", channel: "telegram" });
  });

  test("match.source routes by the body", async () => {
    const api = await start({ hooks: { mappings } });
    expect(await json(await api.post("/hooks/in", { source: "shop" }))).toMatchObject({ mode: "next-heartbeat" });
    expect(await json(await api.post("/hooks/in", { source: "crm" }))).toMatchObject({ mode: "now" });
    expect(wakes(api).map(({ text }) => plain(text))).toEqual(["shop", "crm"]);
  });

  test.each(["/hooks/nobody", "/hooks/in", "/hooks", "/hooks/", "/hooks/%77ake"])(
    "%s, which no mapping wants: 404",
    async (path) => {
      const api = await start({ hooks: { mappings } });
      expect(await refusal(await api.post(path, { source: "x" }))).toEqual([404, "not_found"]);
    },
  );

  test("any JSON: lists, texts, numbers and null reach the mapping", async () => {
    const api = await start({ hooks: { mappings } });
    for (const body of ["[1,2]", '"text"', "5", "null", "true"]) {
      expect((await api.post("/hooks/ci", body)).status).toBe(200);
    }
    expect(wakes(api).map(({ text }) => plain(text))).toEqual(
      ["[1,2]", '"text"', "5", "null", "true"].map((body) => `CI: ${body}`),
    );
  });

  test("a mapping that comes to nothing: 204 without a body", async () => {
    const api = await start({ hooks: { mappings } });
    api.world.outcome = { kind: "nothing" };
    const response = await api.post("/hooks/ci", {});
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(api.world.actions()).toEqual([]);
  });

  test("several actions are one delivery: 202 with every run", async () => {
    const api = await start({ hooks: { mappings } });
    const wake = (text: string): WakeAction => ({
      kind: "wake",
      text: [{ from: "external", text }],
      mode: "now",
      isWrapped: true,
    });
    api.world.outcome = { kind: "actions", actions: [wake("a"), { ...agentAction, message: wake("b").text }] };
    const response = await api.post("/hooks/ci", {});
    const body = await json(response);
    expect([response.status, body.dispatched, body.runIds.length]).toEqual([202, 2, 2]);
    expect(body.runId).toBe(body.runIds[0]);
  });

  test("a mapping that makes no valid action: 400; one that breaks: 500, its reason only in the log", async () => {
    const api = await start({ hooks: { mappings } });
    api.world.outcome = { kind: "failed", code: "rejected", reason: "blank text" };
    expect(await refusal(await api.post("/hooks/ci", {}))).toEqual([400, "mapping_rejected"]);
    api.world.outcome = { kind: "failed", code: "failed", reason: "boom at line 3" };
    const response = await api.post("/hooks/ci", {});
    expect(await json(response.clone())).toMatchObject({ error: "hook mapping failed" });
    expect(await refusal(response)).toEqual([500, "mapping_failed"]);
    expect(api.logs.at(-1)).toMatchObject({ status: 500, reason: "boom at line 3", mapping: "ci" });
  });

  test("what a mapping asks for is checked as if a request did: model, channel, session key", async () => {
    const api = await start({ hooks: { mappings } });
    for (const [more, code] of [
      [{ model: "big" }, "model_not_allowed"],
      [{ channel: "pigeon" }, "channel_not_allowed"],
      [{ sessionKey: "main" }, "session_key_not_allowed"],
    ] as const) {
      api.world.outcome = { kind: "actions", actions: [{ ...agentAction, ...more }] };
      expect(await refusal(await api.post("/hooks/ci", {}))).toEqual([400, code]);
    }
    expect(api.world.actions()).toEqual([]);
  });

  test("no credential reaches a template", async () => {
    const textTemplate =
      "{{headers.authorization}}|{{headers.x-gateway-token}}|{{headers.cookie}}|{{query.token}}|{{headers.x-event}}";
    const api = await start({ hooks: { mappings: [{ match: { path: "ci" }, action: "wake", textTemplate }] } });
    const headers = { "x-gateway-token": TOKEN, cookie: "a=b", "x-event": "push" };
    expect((await api.post(`/hooks/ci?token=${TOKEN}`, {}, headers)).status).toBe(200);
    expect(plain(wakes(api)[0]!.text)).toBe("||||push");
  });
});

const agentAction: AgentAction = {
  kind: "agent",
  message: [{ from: "external", text: "hi" }],
  name: "Hook",
  wakeMode: "now",
  deliver: true,
  channel: "last",
  tools: [],
  isWrapped: true,
};

describe("mail mapping request", () => {
  test("source and messages with from, subject, snippet reach the mapping of its path", async () => {
    const mappings = [{ match: { path: "mail" }, messageTemplate: "{{payload}}" }];
    const api = await start({ hooks: { mappings } });
    const mail = { source: "mail", messages: [{ from: "a@b.example", subject: "Hi", snippet: "…" }] };
    expect((await api.post("/hooks/mail", mail)).status).toBe(202);
    expect(JSON.parse(plain(agents(api)[0]!.message))).toEqual(mail);
  });
});

describe("authentication", () => {
  const wake = { text: "hi" };

  test.each([
    ["Authorization: Bearer", { authorization: `Bearer ${TOKEN}` }],
    ["authorization: bearer, blanks around", { authorization: `bearer   ${TOKEN}  ` }],
    ["x-gateway-token", { "x-gateway-token": TOKEN }],
    ["x-gateway-token beside Basic", { authorization: "Basic eA==", "x-gateway-token": TOKEN }],
    ["x-gateway-token beside an empty Bearer", { authorization: "Bearer ", "x-gateway-token": TOKEN }],
  ])("%s: accepted", async (_, headers) => {
    const api = await start();
    const response = await api.send("/hooks/wake", wake, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.has("deprecation")).toBe(false);
  });

  test("?token=: accepted, deprecated, and logged without its value", async () => {
    const api = await start();
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
  });

  test("?token=: 400 where allowQueryToken is false, whatever else the request has", async () => {
    const api = await start({ hooks: { allowQueryToken: false } });
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
    const api = await start();
    const response = await api.send("/hooks/wake", wake, { headers: headers as Record<string, string> });
    expect(response.headers.get("www-authenticate")).toStartWith("Bearer");
    expect(response.headers.get("ratelimit-remaining")).toBe("19");
    expect(await refusal(response)).toEqual([401, "unauthorized"]);
    expect(api.world.actions()).toEqual([]);
  });

  test("a wrong ?token=: 401", async () => {
    const api = await start();
    expect(await refusal(await api.send("/hooks/wake?token=wrong", wake))).toEqual([401, "unauthorized"]);
  });

  test("several tokens: each has an id, which the delivery keeps instead of it", async () => {
    const tokens = [{ id: "ci", token: "token-of-the-ci" }];
    const api = await start({ hooks: { tokens } });
    await api.post("/hooks/wake", wake);
    expect((await api.send("/hooks/wake", wake, { headers: { "x-gateway-token": "token-of-the-ci" } })).status).toBe(
      200,
    );
    const ids = api.world.db.query<{ id: string }, []>("SELECT auth_id AS id FROM deliveries").all();
    expect(ids.map(({ id }) => id)).toEqual(["main", "ci"]);
    expect(api.logs.filter(({ msg }) => msg === "request").map(({ auth }) => auth)).toEqual(["main", "ci"]);
  });

  test("a token for other paths: 403; one that has expired: 401", async () => {
    const tokens = [
      { id: "ci", token: "token-of-the-ci", paths: ["/wake/"] },
      { id: "old", token: "old-token", expiresAt: "2020-01-01T00:00:00Z" },
    ];
    const api = await start({ hooks: { tokens } });
    const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });
    expect((await api.send("/hooks/wake", wake, as("token-of-the-ci"))).status).toBe(200);
    const elsewhere = await api.send("/hooks/agent", { message: "hi" }, as("token-of-the-ci"));
    expect(await refusal(elsewhere)).toEqual([403, "token_not_for_path"]);
    expect(await refusal(await api.send("/hooks/wake", wake, as("old-token")))).toEqual([401, "unauthorized"]);
  });

  test("keys of the model API are neither asked for nor enough", async () => {
    const api = await start({}, { apiKeys: ["api-key"] });
    expect((await api.post("/hooks/wake", wake)).status).toBe(200);
    const headers = { authorization: "Bearer api-key" };
    expect((await api.send("/hooks/wake", wake, { headers })).status).toBe(401);
    expect((await fetch(`${api.url}/api/tags`, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(401);
  });

  test("webhooks come by any host name, and from no page", async () => {
    const api = await start();
    const headers = { host: "hooks.example", origin: "https://evil.example" };
    const response = await api.post("/hooks/wake", wake, headers);
    expect(response.status).toBe(200);
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    const preflight = await api.send("/hooks/wake", undefined, { method: "OPTIONS", headers });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([405, null]);
  });
});

describe("errors", () => {
  test.each(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])("%s: 405 with Allow, before the token", async (method) => {
    const api = await start();
    for (let i = 0; i < 25; i++) {
      const response = await api.send("/hooks/wake", undefined, { method });
      expect(response.headers.get("allow")).toBe("POST");
      expect(await refusal(response)).toEqual([405, "method_not_allowed"]);
    }
    expect((await api.send("/hooks/wake", { text: "hi" })).headers.get("ratelimit-remaining")).toBe("19");
  });

  test("HEAD: 405 without a body", async () => {
    const api = await start();
    const response = await api.send("/hooks/wake", undefined, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([405, ""]);
  });

  test("400: what is no JSON, with a text of ours that quotes nothing", async () => {
    const api = await start();
    const response = await api.post("/hooks/wake", '{"text": secret-word}');
    const text = await response.clone().text();
    expect(text).not.toContain("secret-word");
    expect(await json(response.clone())).toMatchObject({ error: "invalid JSON" });
    expect(await refusal(response)).toEqual([400, "invalid_json"]);
  });

  test.each(["[]", "null", "5", '"text"', "[{}]"])("400: %s is no object", async (body) => {
    const api = await start();
    expect(await refusal(await api.post("/hooks/wake", body))).toEqual([400, "invalid_body"]);
    expect(await refusal(await api.post("/hooks/agent", body))).toEqual([400, "invalid_body"]);
  });

  test("400: an empty body is an empty object", async () => {
    const api = await start();
    expect(await refusal(await api.post("/hooks/wake", ""))).toEqual([400, "text_required"]);
    expect(await refusal(await api.post("/hooks/wake", " \n"))).toEqual([400, "text_required"]);
  });

  test("413: a byte over the limit is refused with JSON, exactly the limit passes", async () => {
    const api = await start();
    const body = (bytes: number): string => JSON.stringify({ text: "x".repeat(bytes - 11) });
    expect(body(262_144)).toHaveLength(262_144);
    expect((await api.post("/hooks/wake", body(262_144))).status).toBe(200);
    expect(await refusal(await api.post("/hooks/wake", body(262_145)))).toEqual([413, "payload_too_large"]);
  });

  test.each([300_000, 5_000_000, 30_000_000])(
    "413: reaches the sender of %d bytes, announced or in chunks",
    async (size) => {
      const api = await start();
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

  test("413: a mapping's own limit, smaller or larger", async () => {
    const mappings = [
      { match: { path: "small" }, action: "wake", textTemplate: "x", maxBodyBytes: 10 },
      { match: { path: "large" }, action: "wake", textTemplate: "x", maxBodyBytes: 1_000_000 },
    ];
    const api = await start({ hooks: { mappings } });
    expect((await api.post("/hooks/small", '{"a":1234}')).status).toBe(200);
    expect(await refusal(await api.post("/hooks/small", '{"a":12345}'))).toEqual([413, "payload_too_large"]);
    expect((await api.post("/hooks/large", JSON.stringify("x".repeat(900_000)))).status).toBe(200);
  });

  test("503: a full queue, with Retry-After; nothing is stored", async () => {
    const api = await start({ maxQueued: 1 });
    expect((await api.post("/hooks/wake", { text: "a" })).status).toBe(200);
    const response = await api.post("/hooks/wake", { text: "b" });
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refusal(response)).toEqual([503, "queue_full"]);
    expect(api.world.actions()).toHaveLength(1);
  });

  test("503: while the server shuts down, with Retry-After", async () => {
    const api = await start();
    api.world.ingress.drain();
    const response = await api.post("/hooks/wake", { text: "a" });
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refusal(response)).toEqual([503, "shutting_down"]);
  });

  test("503: what cannot be stored is not acknowledged", async () => {
    const accept = () => Promise.reject(new AppError("storage", "the disk is full"));
    const api = await start({ deps: { accept } });
    const response = await api.post("/hooks/wake", { text: "a" });
    expect(response.headers.get("retry-after")).toBe("30");
    expect(await refusal(response)).toEqual([503, "unavailable"]);
  });
});

describe("idempotency", () => {
  test.each(["wake", "agent"])(
    "the same key and body for /%s: the same answer, and nothing happens twice",
    async (path) => {
      const api = await start();
      const body = { text: "hi", message: "hi" };
      const first = await api.post(`/hooks/${path}`, body, { "idempotency-key": "k1" });
      const again = await api.post(`/hooks/${path}`, body, { "idempotency-key": " k1 " });
      expect([again.status, await json(again)]).toEqual([first.status, await json(first)]);
      expect([first, again].map((each) => each.headers.get("idempotency-replayed"))).toEqual([null, "true"]);
      expect(api.world.actions()).toHaveLength(1);
    },
  );

  test("the same key with another body: 409", async () => {
    const api = await start();
    const headers = { "idempotency-key": "k1" };
    await api.post("/hooks/wake", { text: "a" }, headers);
    const response = await api.post("/hooks/wake", { text: "b" }, headers);
    expect(await refusal(response)).toEqual([409, "idempotency_conflict"]);
  });

  test("idempotencyKey in the body counts where the header is absent", async () => {
    const api = await start();
    const body = { text: "a", idempotencyKey: "k2" };
    await api.post("/hooks/wake", body);
    expect((await api.post("/hooks/wake", body)).headers.get("idempotency-replayed")).toBe("true");
    const other = await api.post("/hooks/wake", body, { "idempotency-key": "k3" });
    expect(other.headers.get("idempotency-replayed")).toBeNull();
    expect(api.world.actions()).toHaveLength(2);
  });

  test("a key is its sender's: another token or path has keys of its own", async () => {
    const api = await start({ hooks: { tokens: [{ id: "ci", token: "token-of-the-ci" }] } });
    const headers = { "idempotency-key": "k1" };
    const body = { text: "a", message: "a" };
    await api.post("/hooks/wake", body, headers);
    await api.post("/hooks/agent", body, headers);
    await api.post("/hooks/wake", body, { ...headers, authorization: "Bearer token-of-the-ci" });
    expect(api.world.actions()).toHaveLength(3);
  });

  test("a key of more than 256 characters is ignored, with a warning", async () => {
    const api = await start();
    const response = await api.post("/hooks/wake", { text: "a" }, { "idempotency-key": "k".repeat(257) });
    expect((await json(response)).warnings).toEqual([expect.stringContaining("Idempotency-Key: expected 1 to 256")]);
    expect((await api.post("/hooks/wake", { text: "a" }, { "idempotency-key": "k".repeat(256) })).status).toBe(200);
  });

  test("a hundred at once with one key are one", async () => {
    const api = await start();
    const headers = { "idempotency-key": "k1" };
    const all = await Promise.all(Array.from({ length: 100 }, () => api.post("/hooks/wake", { text: "a" }, headers)));
    expect(new Set(await Promise.all(all.map((each) => each.text()))).size).toBe(1);
    expect(api.world.actions()).toHaveLength(1);
  });
});

test("the log has a line for each request, without tokens, bodies or queries", async () => {
  const api = await start();
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
