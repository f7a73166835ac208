/** The rows of "Gateway Webhook Ingress" for mapped endpoints, each through a real socket. */
import { describe, expect, test } from "bun:test";
import { plain } from "../../src/base/passage.ts";
import type { AgentAction, WakeAction } from "../../src/hooks/action.ts";
import { TOKEN } from "../hooks/ingress/fixtures.ts";
import { agents, json, refusal, startHooks, wakes } from "./hooks-api.ts";

describe("POST {hooks.path}/<name>", () => {
  const mappings = [
    { id: "ci", match: { path: "ci" }, action: "wake", textTemplate: "CI: {{payload}}" },
    { match: { path: "team/alerts" }, messageTemplate: "Alert {{payload}}", name: "Alerts", channel: "telegram" },
    { match: { path: "in", source: "shop" }, action: "wake", wakeMode: "next-heartbeat", textTemplate: "shop" },
    { match: { path: "in", source: "crm" }, action: "wake", textTemplate: "crm" },
  ];

  test("a wake mapping answers like /wake: 200 with its mode", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const response = await api.post("/hooks/ci", { job: 7 });
    expect([response.status, await json(response)]).toEqual([
      200,
      { ok: true, mode: "now", runId: expect.any(String), requestId: expect.any(String) },
    ]);
    expect(plain(wakes(api)[0]!.text)).toBe('CI: {"job":7}');
  });

  test("an agent mapping answers like /agent: 202 with the run", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const response = await api.post("/hooks/team/alerts/", [1]);
    expect([response.status, await json(response)]).toEqual([
      202,
      { ok: true, runId: expect.any(String), requestId: expect.any(String) },
    ]);
    expect(agents(api)[0]).toMatchObject({ name: "Alerts", channel: "telegram" });
  });

  test("match.source routes by the body", async () => {
    const api = await startHooks({ hooks: { mappings } });
    expect(await json(await api.post("/hooks/in", { source: "shop" }))).toMatchObject({ mode: "next-heartbeat" });
    expect(await json(await api.post("/hooks/in", { source: "crm" }))).toMatchObject({ mode: "now" });
    expect(wakes(api).map(({ text }) => plain(text))).toEqual(["shop", "crm"]);
  });

  test.each(["/hooks/nobody", "/hooks/in", "/hooks", "/hooks/", "/hooks/%77ake"])(
    "%s, which no mapping wants: 404",
    async (path) => {
      const api = await startHooks({ hooks: { mappings } });
      expect(await refusal(await api.post(path, { source: "x" }))).toEqual([404, "not_found"]);
    },
  );

  test("any JSON: lists, texts, numbers and null reach the mapping", async () => {
    const api = await startHooks({ hooks: { mappings } });
    for (const body of ["[1,2]", '"text"', "5", "null", "true"]) {
      expect((await api.post("/hooks/ci", body)).status).toBe(200);
    }
    expect(wakes(api).map(({ text }) => plain(text))).toEqual(
      ["[1,2]", '"text"', "5", "null", "true"].map((body) => `CI: ${body}`),
    );
  });

  test("a mapping that comes to nothing: 204 without a body", async () => {
    const api = await startHooks({ hooks: { mappings } });
    api.world.outcome = { kind: "nothing" };
    const response = await api.post("/hooks/ci", {});
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(api.world.actions()).toEqual([]);
  });

  test("several actions are one delivery: 202 with every run", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const wake = (text: string): WakeAction => ({
      kind: "wake",
      text: [{ from: "external", text }],
      mode: "now",
      isWrapped: true,
    });
    api.world.outcome = {
      kind: "actions",
      actions: [wake("a"), { ...agentAction, message: wake("b").text }],
      warnings: ["w"],
    };
    const response = await api.post("/hooks/ci", {});
    const body = await json(response);
    expect([response.status, body.dispatched, body.runIds.length]).toEqual([202, 2, 2]);
    expect(body.runId).toBe(body.runIds[0]);
  });

  test("a mapping that makes no valid action: 400; one that breaks: 500, its reason only in the log", async () => {
    const api = await startHooks({ hooks: { mappings } });
    api.world.outcome = { kind: "failed", code: "bad_request", reason: "blank text" };
    expect(await refusal(await api.post("/hooks/ci", {}))).toEqual([400, "mapping_rejected"]);
    api.world.outcome = { kind: "failed", code: "mapping_failed", reason: "boom at line 3" };
    const response = await api.post("/hooks/ci", {});
    expect(await json(response.clone())).toMatchObject({ error: "hook mapping failed" });
    expect(await refusal(response)).toEqual([500, "mapping_failed"]);
    expect(api.logs.at(-1)).toMatchObject({ status: 500, reason: "boom at line 3", mapping: "ci" });
  });

  test("what a mapping asks for is checked as if a request did: model, channel, session key", async () => {
    const api = await startHooks({ hooks: { mappings } });
    for (const [more, code] of [
      [{ model: "big" }, "model_not_allowed"],
      [{ channel: "pigeon" }, "channel_not_allowed"],
      [{ sessionKey: "main" }, "session_key_not_allowed"],
    ] as const) {
      api.world.outcome = { kind: "actions", actions: [{ ...agentAction, ...more }], warnings: [] };
      expect(await refusal(await api.post("/hooks/ci", {}))).toEqual([400, code]);
    }
    expect(api.world.actions()).toEqual([]);
  });

  test("no credential reaches a template", async () => {
    const textTemplate =
      "{{headers.authorization}}|{{headers.x-gateway-token}}|{{headers.cookie}}|{{query.token}}|{{headers.x-event}}";
    const api = await startHooks({ hooks: { mappings: [{ match: { path: "ci" }, action: "wake", textTemplate }] } });
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
    const api = await startHooks({ hooks: { mappings } });
    const mail = { source: "mail", messages: [{ from: "a@b.example", subject: "Hi", snippet: "…" }] };
    expect((await api.post("/hooks/mail", mail)).status).toBe(202);
    expect(JSON.parse(plain(agents(api)[0]!.message))).toEqual(mail);
  });
});
