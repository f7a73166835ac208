/** The rows of "Gateway Webhook Ingress" for mapped endpoints, each through a real socket. */
import { describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import { plain } from "../../src/gateway/agent/boundary/tainted-text.ts";
import { TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { agents, json, refusal, startHooks, wakes } from "./hooks-api.ts";

describe("POST {hooks.path}/<name>", () => {
  const mappings = [
    { id: "ci", match: { path: "ci" }, action: "wake", textTemplate: "CI: {{payload}}" },
    { match: { path: "team/alerts" }, messageTemplate: "Alert {{payload}}", name: "Alerts", channel: "telegram" },
    { match: { path: "in", source: "shop" }, action: "wake", wakeMode: "next-heartbeat", textTemplate: "shop" },
    { match: { path: "in", source: "crm" }, action: "wake", textTemplate: "crm" },
  ];

  const transformed = { id: "t", match: { path: "t" }, transform: { module: "a.ts" }, messageTemplate: "x" };

  test("a wake mapping answers 200 with its mode, as /wake does", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const response = await api.post("/hooks/ci", { job: 7 });
    expect([response.status, await json(response)]).toEqual([
      200,
      { ok: true, mode: "now", runId: expect.any(String), requestId: expect.any(String) },
    ]);
    expect(plain((await wakes(api))[0]!.text)).toBe('CI: {"job":7}');
  });

  test("an agent mapping answers 202 with the run, as /agent does", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const response = await api.post("/hooks/team/alerts/", [1]);
    expect([response.status, await json(response)]).toEqual([
      202,
      { ok: true, runId: expect.any(String), requestId: expect.any(String) },
    ]);
    expect((await agents(api))[0]).toMatchObject({ name: "Alerts", channel: "telegram" });
  });

  test("response: the mapping's status and body answer runs, repeats and excluded requests", async () => {
    const twiml = "<Response/>";
    const own = [
      { match: { path: "teams" }, messageTemplate: "x", response: { body: { type: "message", text: "On it." } } },
      { match: { path: "sms" }, messageTemplate: "x", response: { body: twiml, contentType: "text/xml" } },
      { match: { path: "mail" }, messageTemplate: "x", response: {} },
      { match: { path: "none" }, messageTemplate: "x", response: { status: 204 } },
      {
        match: { path: "left", when: { at: "payload.x", exists: true } },
        messageTemplate: "x",
        response: { body: "ok" },
      },
    ];
    const api = await startHooks({ hooks: { mappings: own } });
    const answerTo = async (path: string, headers = {}): Promise<unknown[]> => {
      const response = await api.post(`/hooks/${path}`, {}, headers);
      return [response.status, response.headers.get("content-type"), await response.text()];
    };
    const json = "application/json; charset=utf-8";
    const key = { "idempotency-key": "one" };
    const teams = [200, json, '{"type":"message","text":"On it."}'];
    expect(await answerTo("teams", key)).toEqual(teams);
    expect(await answerTo("teams", key)).toEqual(teams); // a repeat too
    expect(await answerTo("sms")).toEqual([200, "text/xml", twiml]);
    expect(await answerTo("mail")).toEqual([200, "text/plain; charset=utf-8", ""]);
    expect((await answerTo("none"))[0]).toBe(204);
    expect(await answerTo("left")).toEqual([200, "text/plain; charset=utf-8", "ok"]); // accepted without action
    expect((await agents(api)).length).toBe(4);
    expect((await api.post("/hooks/teams", {}, { authorization: "Bearer x" })).status).toBe(401);
  });

  test("match.source selects the mapping by the body", async () => {
    const api = await startHooks({ hooks: { mappings } });
    expect(await json(await api.post("/hooks/in", { source: "shop" }))).toMatchObject({ mode: "next-heartbeat" });
    expect(await json(await api.post("/hooks/in", { source: "crm" }))).toMatchObject({ mode: "now" });
    expect((await wakes(api)).map(({ text }) => plain(text))).toEqual(["shop", "crm"]);
  });

  test.each(["/hooks/nobody", "/hooks/in", "/hooks", "/hooks/", "/hooks/%77ake"])(
    "%s matches no mapping and gets 404",
    async (path) => {
      const api = await startHooks({ hooks: { mappings } });
      expect(await refusal(await api.post(path, { source: "x" }))).toEqual([404, "not_found"]);
    },
  );

  test("lists, texts, numbers, booleans and null as a JSON body reach the mapping", async () => {
    const api = await startHooks({ hooks: { mappings } });
    for (const body of ["[1,2]", '"text"', "5", "null", "true"]) {
      expect((await api.post("/hooks/ci", body)).status).toBe(200);
    }
    expect((await wakes(api)).map(({ text }) => plain(text))).toEqual([
      "CI: [1,2]",
      "CI: text",
      "CI: 5",
      "CI: ",
      "CI: true",
    ]);
  });

  test("a transform that returns null gets 204 without a body", async () => {
    const api = await startHooks({ hooks: { mappings: [transformed] } });
    api.world.transform = () => null;
    const response = await api.post("/hooks/t", {});
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("several items become one delivery, answered 202 with every run", async () => {
    const api = await startHooks({
      hooks: { mappings: [{ match: { path: "l" }, messageTemplate: "{{item}}", forEach: "items" }] },
    });
    const response = await api.post("/hooks/l", { items: ["a", "b", "c"] });
    const body = await json(response);
    expect([response.status, body.dispatched, body.runIds.length]).toEqual([202, 3, 3]);
    expect(body.runId).toBe(body.runIds[0]);
    expect((await agents(api)).map(({ message }) => plain(message))).toEqual(["a", "b", "c"]);
    expect((await api.post("/hooks/l", { items: [] })).status).toBe(204);
  });

  test("only the first 200 items run; the answer and the main session report how many were left out", async () => {
    const api = await startHooks({
      hooks: { mappings: [{ id: "l", match: { path: "l" }, messageTemplate: "{{item}}", forEach: "items" }] },
    });
    const response = await api.post("/hooks/l", { items: Array.from({ length: 230 }, (_, i) => i) });
    const body = await json(response);
    expect([response.status, body.dispatched, body.runIds.length]).toEqual([202, 200, 200]);
    expect(body.warnings).toEqual(["30 of 230 items were left out: at most 200 at once"]);
    expect((await agents(api)).map(({ message }) => plain(message))).toEqual(
      Array.from({ length: 200 }, (_, i) => `${i}`),
    );
    expect((await wakes(api)).map(({ text }) => plain(text))).toEqual([
      "Mapping 'l' got more items in one request than it takes: 30 were left out.",
    ]);
  });

  test("a request that renders no valid action gets 400; a mapping that throws gets 500 and logs the reason", async () => {
    const api = await startHooks({ hooks: { mappings: [transformed] } });
    api.world.transform = () => ({ message: "  " });
    expect(await refusal(await api.post("/hooks/t", {}))).toEqual([400, "mapping_rejected"]);
    api.world.transform = () => {
      throw new AppError("runner", "boom at line 3");
    };
    const response = await api.post("/hooks/t", {});
    expect(await json(response.clone())).toMatchObject({ error: "hook mapping failed" });
    expect(await refusal(response)).toEqual([500, "mapping_failed"]);
    expect(api.logs.at(-1)).toMatchObject({ status: 500, reason: "boom at line 3", mapping: "t" });
  });

  test("503 with Retry-After if all transforms are busy", async () => {
    const api = await startHooks({ hooks: { mappings: [transformed] } });
    api.world.transform = () => {
      throw new AppError("busy", "256 calls wait already");
    };
    const response = await api.post("/hooks/t", {});
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await refusal(response)).toEqual([503, "too_busy"]);
  });

  test("agent, model, channel and session key of a mapping are checked like those of a request", async () => {
    const api = await startHooks({ hooks: { mappings: [transformed] } });
    for (const [more, code] of [
      [{ agentId: "nobody" }, "agent_not_allowed"],
      [{ model: "big" }, "model_not_allowed"],
      [{ channel: "pigeon" }, "mapping_rejected"],
      [{ sessionKey: "main" }, "session_key_not_allowed"],
    ] as const) {
      api.world.transform = () => ({ message: "hi", ...more });
      expect(await refusal(await api.post("/hooks/t", {}))).toEqual([400, code]);
    }
    expect(await api.world.actions()).toEqual([]);
    api.world.transform = () => ({ message: "hi", channel: "TG" });
    expect((await api.post("/hooks/t", {})).status).toBe(202);
    expect((await agents(api))[0]?.channel).toBe("telegram");
  });

  test("thinking: an unknown level from a template or a transform is ignored with a warning", async () => {
    const mappings = [
      { id: "m", match: { path: "m" }, messageTemplate: "x", thinking: "{{payload.level}}" },
      transformed,
    ];
    const api = await startHooks({ hooks: { mappings } });
    api.world.transform = () => ({ thinking: "very" });
    const answers = [await api.post("/hooks/m", { level: "much" }), await api.post("/hooks/t", {})];
    for (const answer of answers) {
      expect((await json(answer)).warnings).toEqual(["thinking: no such level; ignored"]);
      expect((await agents(api)).at(-1)).not.toHaveProperty("thinking");
    }
    expect(await json(await api.post("/hooks/m", { level: "high" }))).not.toHaveProperty("warnings");
    expect((await agents(api)).at(-1)?.thinking).toBe("high");
  });

  test("a template cannot show a credential", async () => {
    const textTemplate =
      "{{headers.authorization}}|{{headers.x-gateway-token}}|{{headers.cookie}}|{{query.token}}|{{headers.x-event}}";
    const api = await startHooks({ hooks: { mappings: [{ match: { path: "ci" }, action: "wake", textTemplate }] } });
    const headers = { "x-gateway-token": TOKEN, cookie: "a=b", "x-event": "push" };
    expect((await api.post(`/hooks/ci?token=${TOKEN}`, {}, headers)).status).toBe(200);
    expect(plain((await wakes(api))[0]!.text)).toBe("||||push");
  });
});

test("a preset finds the sender's delivery id, so that a repeat gets the first answer", async () => {
  const api = await startHooks({ hooks: { presets: ["github"] } });
  const headers = { "x-github-event": "issues", "x-github-delivery": "d-1" };
  const body = {
    action: "opened",
    repository: { full_name: "a/b" },
    issue: { number: 1, title: "t", html_url: "https://example.com", body: "b", user: { login: "u" } },
    sender: { login: "u" },
  };
  const first = await api.post("/hooks/github", body, headers);
  const again = await api.post("/hooks/github", body, headers);
  expect([again.status, await again.text()]).toEqual([first.status, await first.text()]);
  expect([first.ok, again.headers.get("idempotency-replayed")]).toEqual([true, "true"]);
  expect(await api.world.actions()).toHaveLength(1);
});

describe("mail mapping request", () => {
  test("preset mail: every message of a batch becomes a run with its own session", async () => {
    const api = await startHooks({ hooks: { presets: ["mail"] } });
    const messages = [
      { id: "1", from: "a@b.example", subject: "Hi", snippet: "one" },
      { id: "2", from: "c@d.example", subject: "Ho", snippet: "two" },
    ];
    const response = await api.post("/hooks/mail", { source: "mail", messages });
    const body = await json(response);
    expect([response.status, body.dispatched]).toEqual([202, 2]);
    const texts = (await agents(api)).map(({ message }) => plain(message));
    for (const [i, message] of messages.entries()) {
      for (const part of [message.from, message.subject, message.snippet]) expect(texts[i]).toContain(part);
    }
    expect(new Set((await agents(api)).map(({ sessionKey }) => sessionKey)).size).toBe(2);
  });
});

describe("a text that is too long for a condition fails the request", () => {
  const mapping = (when: object) => ({ id: "m", match: { path: "m", when }, action: "wake", textTemplate: "x" });
  const anyone = { id: "n", match: { path: "m" }, action: "wake", textTemplate: "anyone" };

  test.each<[object, string]>([
    [{ at: "payload.x", matches: "^[a-z]+$" }, `${"a".repeat(65_536)}!`],
    [{ not: { at: "payload.x", matches: "DROP" } }, `${"a".repeat(100_000)}DROP`],
  ])("%j", async (when, x) => {
    const api = await startHooks({ hooks: { mappings: [mapping(when), anyone] } });
    expect(await refusal(await api.post("/hooks/m", { x }))).toEqual([413, "text_too_long"]);
    expect(await api.world.actions()).toEqual([]);
    expect(api.logs.at(-1)).toMatchObject({
      reason: expect.stringMatching(/^mapping 'm': pattern: expected a text of at most \d+ characters/),
    });
    expect((await api.post("/hooks/m", { x: "a".repeat(65_536) })).status).toBe(200);
  });
});
