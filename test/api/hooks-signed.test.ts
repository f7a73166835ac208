/** Mapped endpoints whose senders sign requests or check the URL first: there, the signature replaces the token. */
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { hooksSchema } from "../../src/gateway/hooks/config.ts";
import { signRequest } from "../../src/gateway/hooks/ingress/signatures/index.ts";
import { TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { type Api, json, refusal, startHooks } from "./hooks-api.ts";
import { queryAll } from "../../src/gateway/database/store.ts";

const github = { scheme: "github", secrets: "github-secret" } as const;
const standard = { scheme: "standard-webhooks", secrets: "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=" } as const;
const wake = { action: "wake", textTemplate: "{{payload}}" } as const;

type Signature = typeof github | typeof standard | { readonly scheme: "slack" | "discord"; readonly secrets: string };

/** The headers of an honest sender. */
function signed(auth: Signature, body: string, { id = "d1", nowMs = Date.now() } = {}): Record<string, string> {
  const [mapping] = hooksSchema.parse({ mappings: [{ auth }] }).mappings;
  const rawBody = new TextEncoder().encode(body);
  return signRequest(mapping!.auth!, { rawBody, headers: {}, url: "", method: "POST", nowMs, id });
}

const sendSigned = (api: Api, path: string, body: string, headers = signed(github, body)): Promise<Response> =>
  api.send(path, body, { headers });

describe("a mapping with a signature", () => {
  const mappings = [
    { id: "gh", match: { path: "gh" }, auth: github, ...wake },
    { id: "std", match: { path: "std" }, auth: standard, ...wake },
  ];

  test("accepts a request that its sender signed", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const response = await sendSigned(api, "/hooks/gh", '{"a":1}');
    expect([response.status, await json(response)]).toMatchObject([200, { ok: true, mode: "now" }]);
    const [row] = await api.world.store.read(() => queryAll("SELECT auth_kind, auth_id, mapping_id FROM deliveries"));
    expect(row).toEqual({ auth_kind: "signature", auth_id: "gh", mapping_id: "gh" });
  });

  test("refuses the hook token, alone and beside a wrong signature", async () => {
    const api = await startHooks({ hooks: { mappings } });
    expect(await refusal(await api.post("/hooks/gh", {}))).toEqual([401, "unauthorized"]);
    const wrong = { ...signed(github, "[1]"), authorization: `Bearer ${TOKEN}` };
    expect(await refusal(await sendSigned(api, "/hooks/gh", "[2]", wrong))).toEqual([401, "unauthorized"]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("refuses a changed byte, reformatted JSON and an old signature with the same answer", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const body = '{"a": 1}';
    const old = signed(standard, body, { nowMs: Date.now() - 301_000 });
    const all = [
      await sendSigned(api, "/hooks/gh", '{"a": 2}', signed(github, body)),
      await sendSigned(api, "/hooks/gh", JSON.stringify(JSON.parse(body)), signed(github, body)),
      await sendSigned(api, "/hooks/std", body, old),
      await sendSigned(api, "/hooks/gh", "no json", { "x-hub-signature-256": "sha256=00" }),
    ];
    const bodies = await Promise.all(all.map((response) => json(response.clone())));
    for (const response of all) expect(await refusal(response)).toEqual([401, "unauthorized"]);
    expect(new Set(bodies.map(({ error }) => error)).size).toBe(1);
    expect(api.logs.at(-2)?.["reason"]).toMatch(/too old/);
  });

  test("answers 400 to a signed body that is not JSON", async () => {
    const api = await startHooks({ hooks: { mappings } });
    expect(await refusal(await sendSigned(api, "/hooks/gh", "{"))).toEqual([400, "invalid_json"]);
  });

  test("runs a captured body once, even under another unsigned delivery id", async () => {
    const off = { id: "off", match: { path: "off" }, auth: github, dedupeBody: false, ...wake };
    const plain = { id: "plain", match: { path: "plain" }, dedupeBody: true, ...wake };
    const api = await startHooks({ hooks: { mappings: [...mappings, off, plain] } });
    for (const id of ["d1", "d2"]) {
      const answer = await sendSigned(api, "/hooks/gh", "{}", signed(github, "{}", { id }));
      expect([answer.status, answer.headers.get("idempotency-replayed")]).toEqual([200, id === "d1" ? null : "true"]);
    }
    expect(await api.world.actions()).toHaveLength(1);
    for (const id of ["d1", "d2"]) await sendSigned(api, "/hooks/off", "{}", signed(github, "{}", { id }));
    expect(await api.world.actions()).toHaveLength(3);
    for (const body of ["[1]", "[1]", "[2]"]) await api.post("/hooks/plain", body);
    expect(await api.world.actions()).toHaveLength(5);
    await sendSigned(api, "/hooks/gh", "{ }", signed(github, "{ }", { id: "d3" }));
    expect(await api.world.actions()).toHaveLength(6);
  });

  test("answers a repeated delivery as the first time, and runs it once", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const first = await sendSigned(api, "/hooks/std", "{}", signed(standard, "{}", { id: "msg_1" }));
    const again = await sendSigned(api, "/hooks/std", "{}", signed(standard, "{}", { id: "msg_1" }));
    expect(await json(again.clone())).toEqual(await json(first));
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await api.world.actions()).toHaveLength(1);
    await sendSigned(api, "/hooks/std", "{}", signed(standard, "{}", { id: "msg_2" }));
    expect(await api.world.actions()).toHaveLength(2);
  });

  test("counts wrong signatures as failed attempts, which a right one clears", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const wrong = () => sendSigned(api, "/hooks/gh", "{}", { "x-hub-signature-256": `sha256=${"0".repeat(64)}` });
    for (let i = 0; i < 20; i++) expect((await wrong()).status).toBe(401);
    expect(await refusal(await wrong())).toEqual([429, "too_many_failures"]);
    expect((await sendSigned(api, "/hooks/gh", "{}")).status).toBe(200);
    expect((await wrong()).status).toBe(401);
  });

  test("verifies the signature of a gzip body over the uncompressed bytes", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const headers = { ...signed(github, '{"a":1}'), "content-encoding": "gzip" };
    const body = Bun.gzipSync(new TextEncoder().encode('{"a":1}'));
    const response = await fetch(`${api.url}/hooks/gh`, { method: "POST", body, headers });
    expect(response.status).toBe(200);
  });
});

test("a github push larger than hooks.maxBodyBytes reaches the preset; such a body gets 413 elsewhere", async () => {
  const presetSettings = { github: { secrets: github.secrets } };
  const api = await startHooks({ hooks: { presets: ["github"], presetSettings } });
  const commits = Array.from({ length: 2048 }, (_, i) => ({ id: `${i}`.padStart(40, "0"), message: "m".repeat(1000) }));
  const body = JSON.stringify({ ref: "refs/heads/main", repository: { full_name: "a/b" }, commits });
  expect(body.length).toBeGreaterThan(2_000_000);
  const headers = { ...signed(github, body), "x-github-event": "push" };
  expect((await sendSigned(api, "/hooks/github", body, headers)).status).toBe(202);
  expect(await refusal(await api.post("/hooks/agent", body))).toEqual([413, "payload_too_large"]);
});

describe("mappings that share a path", () => {
  const mappings = [
    { id: "shop", match: { path: "in", source: "shop" }, auth: github, ...wake },
    { id: "std", match: { path: "in", source: "std" }, auth: standard, ...wake },
    { id: "rest", match: { path: "in" }, ...wake },
  ];
  const reach = async (source: string, headers: (body: string) => Record<string, string>): Promise<number> => {
    const api = await startHooks({ hooks: { mappings } });
    const body = JSON.stringify({ source });
    return (await sendSigned(api, "/hooks/in", body, headers(body))).status;
  };
  const byGithub = (body: string) => signed(github, body);
  const byToken = () => ({ authorization: `Bearer ${TOKEN}` });

  test("each require their own credential, whichever mapping the body selects", async () => {
    expect(await reach("shop", byGithub)).toBe(200);
    expect(await reach("std", (body) => signed(standard, body))).toBe(200);
    expect(await reach("else", byToken)).toBe(200);
    expect(await reach("shop", byToken)).toBe(401);
    expect(await reach("std", byGithub)).toBe(401);
    expect(await reach("else", byGithub)).toBe(401);
    expect(await reach("else", () => ({}))).toBe(401);
  });
});

describe("a request that match.when excludes", () => {
  const when = { at: "payload.action", equals: "opened" };
  const slack = { scheme: "slack", secrets: "slack-signing-secret-of-tests" } as const;
  const mappings = [
    { id: "gh", match: { path: "gh", when }, auth: github, rateLimit: { perSecond: 0.001, burst: 3 }, ...wake },
    { id: "token", match: { path: "token", when }, ...wake },
    { id: "shop", match: { path: "shop", source: "shop", when }, ...wake },
    { id: "slack", match: { path: "slack", when }, auth: slack, handshake: "slack", ...wake },
    { id: "both", match: { path: "both", when }, auth: github, ...wake },
    { id: "rest", match: { path: "both", source: "rest" }, ...wake },
  ];

  test("gets 204 with a valid credential, and 401 without", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const left = await sendSigned(api, "/hooks/gh", '{"action":"closed"}', signed(github, '{"action":"closed"}'));
    expect([left.status, await left.text()]).toEqual([204, ""]);
    expect(api.logs.at(-1)).toMatchObject({ mapping: "gh", runs: 0 });
    expect(await refusal(await api.post("/hooks/gh", { action: "closed" }))).toEqual([401, "unauthorized"]);
    const taken = '{"action":"opened"}';
    expect((await sendSigned(api, "/hooks/gh", taken, signed(github, taken))).status).toBe(200);
    expect((await api.post("/hooks/token", { action: "closed" })).status).toBe(204);
    expect(await api.world.actions()).toHaveLength(1);
  });

  test("gets 200 with an empty body if it is a Slack form", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const body = "command=%2Fask&action=closed";
    const headers = { ...signed(slack, body), "content-type": "application/x-www-form-urlencoded" };
    const left = await api.send("/hooks/slack", body, { headers });
    expect([left.status, await left.text()]).toEqual([200, ""]);
  });

  test("counts against the mapping's rate limit", async () => {
    const api = await startHooks({ hooks: { mappings } });
    const send = () => sendSigned(api, "/hooks/gh", "{}", signed(github, "{}"));
    for (let i = 0; i < 3; i++) expect((await send()).status).toBe(204);
    expect(await refusal(await send())).toEqual([429, "rate_limited"]);
  });

  test("gets 404 if match.source differs too, or the credential belongs to another mapping", async () => {
    const api = await startHooks({ hooks: { mappings } });
    expect(await refusal(await api.post("/hooks/shop", { source: "else" }))).toEqual([404, "not_found"]);
    expect((await api.post("/hooks/shop", { source: "shop" })).status).toBe(204);
    expect(await refusal(await api.post("/hooks/both", { source: "else" }))).toEqual([404, "not_found"]);
  });
});

describe("handshakes:", () => {
  test("slack: commands and clicks get 200 with an empty body, whatever they run; events get 202", async () => {
    const auth = { scheme: "slack", secrets: "slack-signing-secret-of-tests" } as const;
    const mappings = [{ match: { path: "s" }, auth, handshake: "slack", transform: { module: "t.ts" } }];
    const api = await startHooks({ hooks: { mappings } });
    let made: unknown = { message: "x" };
    api.world.transform = () => made;
    const send = async (body: string, type: string): Promise<unknown> => {
      const headers = { ...signed(auth, body), "content-type": type };
      const response = await api.send("/hooks/s", body, { headers });
      return [response.status, await response.text()];
    };
    const form = "application/x-www-form-urlencoded; charset=utf-8";
    expect(await send("command=%2Fask&text=hi", form)).toEqual([200, ""]);
    expect(await send(`payload=${encodeURIComponent('{"type":"block_actions"}')}`, form)).toEqual([200, ""]);
    expect(await send('{"type":"event_callback"}', "application/json")).toEqual([
      202,
      expect.stringContaining("runId"),
    ]);
    made = null;
    expect(await send("command=%2Fask&text=nothing", form)).toEqual([200, ""]);
    made = { kind: "wake", text: "x" };
    expect(await send("command=%2Fask&text=wake", form)).toEqual([200, ""]);
    expect(await api.world.actions()).toHaveLength(4);
  });

  test("slack: a signed challenge is echoed, and an unsigned one gets 401", async () => {
    const mappings = [{ match: { path: "s" }, auth: github, handshake: "slack", ...wake }];
    const api = await startHooks({ hooks: { mappings } });
    const body = JSON.stringify({ type: "url_verification", challenge: "abc" });
    const response = await sendSigned(api, "/hooks/s", body);
    expect([response.status, await response.text()]).toEqual([200, "abc"]);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect((await api.send("/hooks/s", body)).status).toBe(401);
    expect(await api.world.actions()).toEqual([]);
  });

  test("slack and github: a handshake is answered regardless of conditions and other mappings", async () => {
    const slack = { scheme: "slack", secrets: "slack-signing-secret-of-tests" } as const;
    const mention = { at: "payload.event.type", equals: "app_mention" };
    const opened = { at: "payload.action", equals: "opened" };
    const mappings = [{ id: "rest", match: { path: "slack" }, auth: slack, ...wake }];
    const presetSettings = {
      slack: { secrets: slack.secrets, match: { when: mention } },
      github: { secrets: github.secrets, match: { when: opened } },
    };
    const api = await startHooks({ hooks: { mappings, presets: ["slack", "github"], presetSettings } });
    const challenge = JSON.stringify({ type: "url_verification", challenge: "abc" });
    const checked = await sendSigned(api, "/hooks/slack", challenge, signed(slack, challenge));
    expect([checked.status, await checked.text()]).toEqual([200, "abc"]);
    expect(await refusal(await sendSigned(api, "/hooks/slack", challenge))).toEqual([401, "unauthorized"]);
    const headers = { ...signed(github, "{}"), "x-github-event": "ping" };
    const ping = await sendSigned(api, "/hooks/github", "{}", headers);
    expect([ping.status, await ping.text()]).toEqual([200, '{"ok":true,"ping":true}']);
    expect(await refusal(await sendSigned(api, "/hooks/github", "{ }", headers))).toEqual([401, "unauthorized"]);
    expect(await api.world.actions()).toEqual([]);
  });

  test("github: a ping is answered and runs nothing", async () => {
    const mappings = [{ match: { path: "gh" }, auth: github, handshake: "github", ...wake }];
    const api = await startHooks({ hooks: { mappings } });
    const response = await sendSigned(api, "/hooks/gh", "{}", { ...signed(github, "{}"), "x-github-event": "ping" });
    expect([response.status, await response.text()]).toEqual([200, '{"ok":true,"ping":true}']);
    expect(await api.world.actions()).toEqual([]);
  });

  test("discord: signed pings of both endpoint types are answered, unsigned ones get 401, and events run", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const bytesOf = (key: KeyObject, type: "spki" | "pkcs8") =>
      key.export({ format: "der", type }).subarray(-32).toString("hex");
    const auth = { scheme: "discord", secrets: bytesOf(publicKey, "spki") };
    const sender = { scheme: "discord", secrets: bytesOf(privateKey, "pkcs8") } as const;
    const mappings = [{ match: { path: "d" }, auth, handshake: "discord", ...wake }];
    const api = await startHooks({ hooks: { mappings } });
    const send = async (payload: object) => {
      const body = JSON.stringify(payload);
      const response = await sendSigned(api, "/hooks/d", body, signed(sender, body));
      return [response.status, response.headers.get("content-type"), await response.text()];
    };
    const type = "application/json; charset=utf-8";
    expect(await send({ type: 1, version: 1 })).toEqual([200, type, '{"type":1}']);
    expect(await send({ type: 0, version: 1 })).toEqual([204, type, ""]);
    expect(await refusal(await api.send("/hooks/d", { type: 1 }))).toEqual([401, "unauthorized"]);
    expect(await api.world.actions()).toEqual([]);
    expect(await send({ type: 1, version: 1, event: { type: "ENTITLEMENT_CREATE" } })).toEqual([
      200,
      type,
      expect.stringContaining("runId"),
    ]);
    expect(await api.world.actions()).toHaveLength(1);
  });

  test("meta: GET with the verify token gets the challenge; other GETs get 401 or 405", async () => {
    const mappings = [{ match: { path: "m" }, auth: github, handshake: "meta", ...wake }];
    const api = await startHooks({ hooks: { mappings } });
    const get = (query: string) => api.send(`/hooks/m${query}`, undefined, { method: "GET" });
    const check = (token: string) => get(`?hub.mode=subscribe&hub.challenge=42&hub.verify_token=${token}`);
    const response = await check("github-secret");
    expect([response.status, await response.text()]).toEqual([200, "42"]);
    expect(await refusal(await check("wrong"))).toEqual([401, "unauthorized"]);
    expect(await refusal(await check(TOKEN))).toEqual([401, "unauthorized"]);
    const plain = await get("");
    expect(plain.headers.get("allow")).toBe("GET, POST");
    expect(await refusal(plain)).toEqual([405, "method_not_allowed"]);
  });

  test("meta: a mapping without a signature accepts the hook token as the verify token", async () => {
    const mappings = [{ match: { path: "m" }, handshake: "meta", ...wake }];
    const api = await startHooks({ hooks: { mappings } });
    const query = `?hub.mode=subscribe&hub.challenge=42&hub.verify_token=${TOKEN}`;
    const response = await api.send(`/hooks/m${query}`, undefined, { method: "GET" });
    expect([response.status, await response.text()]).toEqual([200, "42"]);
  });

  test("microsoft: the validation token is echoed as text, without a credential", async () => {
    const mappings = [{ match: { path: "ms" }, handshake: "microsoft", ...wake }];
    const api = await startHooks({ hooks: { mappings } });
    const response = await api.send("/hooks/ms?validationToken=%3Cb%3Ex", "");
    expect([response.status, await response.text()]).toEqual([200, "<b>x"]);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(await refusal(await api.send("/hooks/ms", "{}"))).toEqual([401, "unauthorized"]);
  });

  test("a mapping without a handshake setting answers no handshake", async () => {
    const api = await startHooks({ hooks: { mappings: [{ match: { path: "x" }, ...wake }] } });
    expect((await api.send("/hooks/x?validationToken=x", "")).status).toBe(401);
  });
});
