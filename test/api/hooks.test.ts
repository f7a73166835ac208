/**
 * The rows of "Gateway Webhook Ingress" for enabling and for the fixed endpoints, each through a real socket: the
 * action of a request, and the sender's answer. Durable data is read back from the database.
 */
import { describe, expect, test } from "bun:test";
import type { AgentAction } from "../../src/gateway/hooks/action.ts";
import { CHANNELS } from "../gateway/hooks/ingress/fixtures.ts";
import { agents, json, refusal, startHooks, wakes, type Api } from "./hooks-api.ts";
import { queryAll } from "../../src/gateway/database/store.ts";

describe("enabling", () => {
  test("hooks.enabled: false makes the paths 404", async () => {
    const api = await startHooks({ hooks: { enabled: false } });
    const response = await api.post("/hooks/wake", { text: "hi" });
    expect([response.status, await response.text()]).toEqual([404, "404 page not found"]);
  });

  test("hooks.path: is /hooks by default", async () => {
    const api = await startHooks();
    expect((await api.post("/hooks/wake", { text: "hi" })).status).toBe(200);
    expect((await api.post("/hooksy/wake", { text: "hi" })).status).toBe(404);
  });

  test("hooks.path: another path replaces /hooks", async () => {
    const api = await startHooks({ hooks: { path: "in/coming/" } });
    expect((await api.post("/in/coming/wake", { text: "hi" })).status).toBe(200);
    expect((await api.post("/hooks/wake", { text: "hi" })).status).toBe(404);
  });

  test("a changed configuration applies from the next request", async () => {
    const api = await startHooks();
    const { hooks, ...rest } = api.world.settings;
    api.world.settings = { hooks: { ...hooks, token: "another-token", path: "/elsewhere" }, ...rest };
    expect((await api.post("/elsewhere/wake", { text: "hi" })).status).toBe(401);
    const headers = { authorization: "Bearer another-token" };
    expect((await api.send("/elsewhere/wake", { text: "hi" }, { headers })).status).toBe(200);
  });
});

describe("POST {hooks.path}/wake", () => {
  test("text: queues an event of the main session, answered 200 with the mode", async () => {
    const api = await startHooks();
    const response = await api.post("/hooks/wake", { text: "  build failed\n" });
    expect(response.status).toBe(200);
    const body = await json(response);
    expect(body).toEqual({
      ok: true,
      mode: "now",
      runId: expect.any(String),
      requestId: expect.stringMatching(/^req_/),
    });
    const [wake] = await wakes(api);
    expect(wake).toMatchObject({ mode: "now", isWrapped: true, text: [{ from: "external", text: "build failed" }] });
  });

  test.each([[{}], [{ text: "" }], [{ text: "  \n" }], [{ text: 5 }], [{ text: null }], [{ text: ["a"] }]])(
    "text: is required, so %j gets 400 text_required",
    async (body) => {
      const api = await startHooks();
      expect(await refusal(await api.post("/hooks/wake", body))).toEqual([400, "text_required"]);
      expect(await api.world.actions()).toEqual([]);
    },
  );

  test.each([
    ["now", "now"],
    ["next-heartbeat", "next-heartbeat"],
    [undefined, "now"],
    [null, "now"],
  ])("mode: %p counts as %p", async (mode, expected) => {
    const api = await startHooks();
    const body = await json(await api.post("/hooks/wake", { text: "hi", mode }));
    expect([body.mode, body.warnings]).toEqual([expected, undefined]);
    expect((await wakes(api))[0]?.mode).toBe(expected as "now");
  });

  test("mode: any other value counts as now, with a warning", async () => {
    const api = await startHooks();
    const body = await json(await api.post("/hooks/wake", { text: "hi", mode: "later" }));
    expect(body).toMatchObject({ mode: "now", warnings: [expect.stringContaining("mode: expected 'now'")] });
  });

  test("a trailing slash reaches the same endpoint", async () => {
    const api = await startHooks();
    expect((await api.post("/hooks/wake/", { text: "hi" })).status).toBe(200);
  });
});

describe("POST {hooks.path}/agent", () => {
  const one = async (api: Api, body: object): Promise<AgentAction> => {
    const response = await api.post("/hooks/agent", { message: "hi", ...body });
    expect([response.status, response.status === 202 ? "" : await response.text()]).toEqual([202, ""]);
    return (await agents(api)).at(-1)!;
  };

  test("message: starts an isolated run, answered 202 with its id", async () => {
    const api = await startHooks();
    const response = await api.post("/hooks/agent", { message: " Summarise the inbox " });
    expect(response.status).toBe(202);
    const body = await json(response);
    expect(body).toEqual({ ok: true, runId: expect.any(String), requestId: expect.any(String) });
    expect(await api.world.store.read(() => queryAll("SELECT id, state FROM runs"))).toEqual([
      { id: body.runId, state: "queued" },
    ]);
    expect(await agents(api)).toEqual([
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
    "message: is required, so %j gets 400 message_required",
    async (body) => {
      const api = await startHooks();
      expect(await refusal(await api.post("/hooks/agent", body))).toEqual([400, "message_required"]);
    },
  );

  test("name: becomes the prefix of the summary, on one line; the default is Hook", async () => {
    const api = await startHooks();
    expect((await one(api, { name: " E-mail\nSystem: x " })).name).toBe("E-mail System: x");
    expect((await one(api, { name: "  " })).name).toBe("Hook");
    expect((await one(api, { name: "x".repeat(1000) })).name).toHaveLength(120);
  });

  test("sessionKey: selects the session; by default the run has a session of its own", async () => {
    const api = await startHooks();
    expect((await one(api, { sessionKey: "hook:orders" })).sessionKey).toBe("hook:orders");
    expect(await one(api, {})).not.toHaveProperty("sessionKey");
    const keys = await api.world.store.read(() =>
      queryAll<{ key: string; id: string }>("SELECT session_key AS key, id FROM runs"),
    );
    expect(keys[0]?.key).toBe("agent:main:hook:orders");
    expect(keys[1]?.key).toBe(`agent:main:hook:${keys[1]?.id}`);
  });

  test.each(["main", " MAIN ", "agent:other:hook:x"])("sessionKey: a request may not choose %p", async (sessionKey) => {
    const api = await startHooks();
    const response = await api.post("/hooks/agent", { message: "hi", sessionKey });
    expect(await refusal(response)).toEqual([400, "session_key_not_allowed"]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("sessionKey: is limited by prefixes, compared regardless of case and width", async () => {
    const api = await startHooks({ hooks: { sessionKeys: { prefixes: ["Hook:"], default: "hook:all" } } });
    expect((await one(api, { sessionKey: "ＨＯＯＫ:a" })).sessionKey).toBe("ＨＯＯＫ:a");
    expect((await one(api, {})).sessionKey).toBe("hook:all");
    const response = await api.post("/hooks/agent", { message: "hi", sessionKey: "x:hook:a" });
    expect(await refusal(response)).toEqual([400, "session_key_not_allowed"]);
  });

  test("sessionKey: is refused if allowFromRequest is false", async () => {
    const api = await startHooks({ hooks: { sessionKeys: { allowFromRequest: false } } });
    const response = await api.post("/hooks/agent", { message: "hi", sessionKey: "hook:a" });
    expect(await refusal(response)).toEqual([400, "session_key_not_allowed"]);
  });

  test("agentId: selects a configured agent with its sessions and model", async () => {
    const api = await startHooks();
    await one(api, { agentId: "writer", sessionKey: "hook:a", model: "big" });
    const [run] = await api.world.store.read(() => queryAll("SELECT session_key AS key FROM runs"));
    expect(run).toEqual({ key: "agent:writer:hook:a" });
    const elsewhere = { message: "hi", agentId: "writer", sessionKey: "agent:coder:hook:a" };
    expect(await refusal(await api.post("/hooks/agent", elsewhere))).toEqual([400, "session_key_not_allowed"]);
  });

  test.each([["nobody"], [""], [5], ["__proto__"]])("agentId: %j gets 400", async (agentId) => {
    const api = await startHooks();
    expect(await refusal(await api.post("/hooks/agent", { message: "hi", agentId }))).toEqual([
      400,
      "agent_not_allowed",
    ]);
  });

  test("agentId: is limited by allowedAgentIds, also for the default agent", async () => {
    const api = await startHooks({ hooks: { allowedAgentIds: ["writer"] } });
    await one(api, { agentId: "writer" });
    for (const body of [{ message: "hi", agentId: "coder" }, { message: "hi" }]) {
      expect(await refusal(await api.post("/hooks/agent", body))).toEqual([400, "agent_not_allowed"]);
    }
    const all = await startHooks({ hooks: { allowedAgentIds: ["*"] } });
    await one(all, { agentId: "coder" });
  });

  test("wakeMode: is now or next-heartbeat", async () => {
    const api = await startHooks();
    expect((await one(api, { wakeMode: "next-heartbeat" })).wakeMode).toBe("next-heartbeat");
    expect((await one(api, { wakeMode: "whenever" })).wakeMode).toBe("now");
  });

  test.each([
    [true, true],
    [false, false],
    ["false", false],
    [null, true],
    [0, true],
  ])("deliver: %p counts as %p", async (deliver, expected) => {
    const api = await startHooks();
    expect((await one(api, { deliver })).deliver).toBe(expected);
  });

  test.each(["last", ...CHANNELS])("channel: %s is allowed", async (channel) => {
    const api = await startHooks();
    expect((await one(api, { channel })).channel).toBe(channel);
  });

  test("channel: is accepted by alias and in any case", async () => {
    const api = await startHooks();
    expect((await one(api, { channel: " TG " })).channel).toBe("telegram");
    expect((await one(api, { channel: "teams" })).channel).toBe("msteams");
    expect((await one(api, { channel: " Last" })).channel).toBe("last");
  });

  test.each([["carrier-pigeon"], [""], [5], [["slack"]], [{}], ["__proto__"]])(
    "channel: %j gets 400",
    async (channel) => {
      const api = await startHooks();
      const response = await api.post("/hooks/agent", { message: "hi", channel });
      expect(await refusal(response)).toEqual([400, "channel_not_allowed"]);
    },
  );

  test("channel: the refusal lists the allowed names, and not the sent one", async () => {
    const api = await startHooks();
    const body = await json(await api.post("/hooks/agent", { message: "hi", channel: "carrier-pigeon" }));
    expect(body.details).toEqual([{ field: "channel", reason: `expected ${["last", ...CHANNELS].join("|")}` }]);
    expect(JSON.stringify(body)).not.toContain("pigeon");
  });

  test("channel: one that is not configured gets a warning, unless deliver is false", async () => {
    const api = await startHooks();
    const warned = await json(await api.post("/hooks/agent", { message: "hi", channel: "slack" }));
    expect(warned.warnings).toEqual([expect.stringContaining("not configured")]);
    const silent = await json(await api.post("/hooks/agent", { message: "hi", channel: "slack", deliver: false }));
    expect(silent).not.toHaveProperty("warnings");
  });

  test("to: is a recipient, as text or as a number", async () => {
    const api = await startHooks();
    expect((await one(api, { to: " +4912345 " })).to).toBe("+4912345");
    expect((await one(api, { to: -1001234567890 })).to).toBe("-1001234567890");
    expect(await one(api, { to: " " })).not.toHaveProperty("to");
  });

  test.each([[{}], [["a"]], [true], [1.5], ["x".repeat(513)]])("to: %j gets 400", async (to) => {
    const api = await startHooks();
    expect(await refusal(await api.post("/hooks/agent", { message: "hi", to }))).toEqual([400, "invalid_field"]);
  });

  test("model: is an allowed reference or alias", async () => {
    const api = await startHooks();
    expect((await one(api, { model: "fast" })).model).toBe("fast");
  });

  test.each([
    ["", "model_required"],
    [5, "model_required"],
    ["big", "model_not_allowed"],
    ["nothing-like-it", "model_not_allowed"],
  ])("model: %j gets 400 %s before anything runs", async (model, code) => {
    const api = await startHooks();
    expect(await refusal(await api.post("/hooks/agent", { message: "hi", model }))).toEqual([400, code]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("thinking: is a level; an unknown one is ignored with a warning", async () => {
    const api = await startHooks();
    expect((await one(api, { thinking: "high" })).thinking).toBe("high");
    const body = await json(await api.post("/hooks/agent", { message: "hi", thinking: "very" }));
    expect(body.warnings).toEqual(["thinking: no such level; ignored"]);
    expect((await agents(api)).at(-1)).not.toHaveProperty("thinking");
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
  ])("timeoutSeconds: %j counts as %p", async (timeoutSeconds, expected) => {
    const api = await startHooks();
    expect((await one(api, { timeoutSeconds })).timeoutSeconds).toBe(expected as number);
  });

  test("callbackUrl: is refused unless the configuration allows it, and then limited to public addresses", async () => {
    const closed = await startHooks();
    const body = { message: "hi", callbackUrl: "https://example.com/done" };
    expect(await refusal(await closed.post("/hooks/agent", body))).toEqual([400, "callback_not_allowed"]);
    const open = await startHooks({ hooks: { callbacks: { allowFromRequest: true } } });
    expect((await one(open, body)).callbackUrl).toBe(body.callbackUrl);
    for (const callbackUrl of ["http://example.com", "https://127.0.0.1/", "https://[::1]/", "no url", 5]) {
      const response = await open.post("/hooks/agent", { message: "hi", callbackUrl });
      expect(await refusal(response)).toEqual([400, "callback_not_allowed"]);
    }
  });

  test("unknown fields are accepted with a warning that names them", async () => {
    const api = await startHooks();
    const body = await json(await api.post("/hooks/agent", { message: "hi", channelId: "C1", "<b>": 1, tools: ["x"] }));
    expect(body.warnings).toEqual(["channelId: unknown field", "(not shown): unknown field", "tools: unknown field"]);
    expect((await agents(api))[0]?.tools).toEqual([]);
  });

  test("unknown and invalid fields get 400 if the ingress is strict", async () => {
    const api = await startHooks({ hooks: { strict: true } });
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
