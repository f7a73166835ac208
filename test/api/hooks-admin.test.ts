/** Operators' requests about deliveries, with the gateway token; through a real socket. */
import { expect, test } from "bun:test";
import { eventually } from "../e2e/hearth.ts";
import { GATEWAY_TOKEN, HOOK_TOKEN, json, startGateway, type GatewayWorld } from "../gateway/operate/world.ts";

const WAIT = { headers: { prefer: "wait=60" } };
/** Starts no heartbeat, because it would call the model, too. */
const ALONE = { wakeMode: "next-heartbeat" };
const send = async (world: GatewayWorld, n: number, more: object = {}): Promise<string> =>
  (await json(await world.hook("agent", { message: `question ${n}`, ...more }, WAIT))).runId;

const ENDPOINTS: [string, string][] = [
  ["GET", "deliveries"],
  ["GET", "deliveries/x"],
  ["POST", "deliveries/x/replay"],
  ["POST", "deliveries/x/cancel"],
  ["POST", "replay"],
  ["GET", "mail"],
  ["GET", "mappings"],
  ["GET", "findings"],
  ["POST", "pause"],
  ["POST", "resume"],
  ["POST", "mappings/x/test"],
];

test.each(ENDPOINTS)(
  "%s /hooks-admin/%s: 401 without the gateway token, also with the hook token",
  async (method, path) => {
    const world = await startGateway();
    expect((await world.admin(path, { method, token: "" })).status).toBe(401);
    expect((await world.admin(path, { method, token: HOOK_TOKEN })).status).toBe(401);
    expect((await world.admin(path, { method, token: `${GATEWAY_TOKEN}x` })).status).toBe(401);
  },
);

test.each(ENDPOINTS)("%s /hooks-admin/%s: 404 without a configured gateway.token", async (method, path) => {
  const world = await startGateway({ settings: { gateway: {} } });
  expect((await world.admin(path, { method, token: "undefined" })).status).toBe(404);
});

test("twenty failed attempts lock an address out with 429, but the right token still works", async () => {
  const world = await startGateway();
  for (let i = 0; i < 20; i++) await world.admin("deliveries", { token: "wrong" });
  const locked = await world.admin("deliveries", { token: "wrong" });
  expect(locked.status).toBe(429);
  expect(await locked.json()).toEqual({
    ok: false,
    error: "too many failed attempts",
    code: "too_many_failures",
    requestId: locked.headers.get("x-request-id"),
  });
  expect(Number(locked.headers.get("retry-after"))).toBeWithin(1, 61);
  expect((await world.admin("deliveries")).status).toBe(200);
});

test("GET /hooks-admin/deliveries: lists the newest first, in pages, filtered by state and path", async () => {
  const world = await startGateway();
  const runs = [await send(world, 1), await send(world, 2), await send(world, 3)];
  await world.hook("wake", { text: "w", mode: "next-heartbeat" });
  const ids = (page: any): string[] => page.deliveries.map((each: any) => each.runs[0].id);
  const first = await json(await world.admin("deliveries?path=agent&limit=2"));
  expect(ids(first)).toEqual([runs[2]!, runs[1]!]);
  const second = await json(await world.admin(`deliveries?path=agent&limit=2&before=${first.next}`));
  expect([ids(second), second.next]).toEqual([[runs[0]!], null]);
  expect(ids(await json(await world.admin("deliveries?state=succeeded&path=agent")))).toHaveLength(3);
  expect(ids(await json(await world.admin("deliveries?path=/agent/")))).toHaveLength(3); // as `hooks list` shows it
  expect(ids(await json(await world.admin("deliveries?state=dead")))).toEqual([]);
});

test.each(["state=strange", "limit=0", "limit=501", "limit=x", "colour=red"])(
  "GET /hooks-admin/deliveries?%s: 400",
  async (query) => {
    const world = await startGateway();
    const response = await world.admin(`deliveries?${query}`);
    expect(response.status).toBe(400);
    expect(await json(response)).toEqual({ error: expect.any(String) });
  },
);

test("GET /hooks-admin/deliveries/:id: shows everything but credentials, and also accepts the id of a run", async () => {
  const world = await startGateway({ settings: { hooks: { queue: { keepBodies: true } } } });
  const runId = await send(world, 7);
  const details = await json(await world.admin(`deliveries/${runId}`));
  expect(details).toMatchObject({
    path: "agent",
    authKind: "token",
    body: { encoding: "utf8", data: '{"message":"question 7"}' },
    title: "question 7",
    runs: [{ id: runId, state: "succeeded", answer: "Done it.", action: { kind: "agent" } }],
  });
  expect(details.runs[0].prompt).toMatch(/^What stands between[\s\S]*>>>question 7<<</);
  expect(JSON.stringify(details)).not.toContain(HOOK_TOKEN);
  expect((await world.admin("deliveries/none")).status).toBe(404);
});

test("POST /hooks-admin/deliveries/:id/replay: runs a new delivery; 409 for an open one, 404 for an unknown one", async () => {
  const open = Promise.withResolvers<void>();
  const world = await startGateway({
    script: (_, i) => ({ text: `answer ${i}`, ...(i === 1 ? { until: open.promise } : {}) }),
  });
  const runId = await send(world, 1, ALONE);
  const replayed = await json(await world.admin(`deliveries/${runId}/replay`, { method: "POST" }));
  const [again] = replayed.runIds;
  expect((await world.admin(`deliveries/${again}/replay`, { method: "POST" })).status).toBe(409);
  open.resolve();
  await (await world.hook(`runs/${again}/events`)).text();
  expect((await json(await world.hook(`runs/${again}`))).run).toMatchObject({ answer: "answer 1", replayOf: runId });
  expect((await world.admin("deliveries/none/replay", { method: "POST" })).status).toBe(404);
});

test("POST /hooks-admin/deliveries/:id/replay: 503 with Retry-After while the queue is full", async () => {
  const open = Promise.withResolvers<void>();
  const world = await startGateway({
    settings: { hooks: { queue: { max: 1 } } },
    script: (_, i) => ({ text: "x", ...(i === 1 ? { until: open.promise } : {}) }),
  });
  const runId = await send(world, 1, ALONE);
  expect((await world.hook("agent", { message: "takes the only place" })).status).toBe(202);
  const full = await world.admin(`deliveries/${runId}/replay`, { method: "POST" });
  expect([full.status, await json(full)]).toEqual([503, { error: "the queue is full" }]);
  expect(Number(full.headers.get("retry-after"))).toBeWithin(1, 301);
  open.resolve();
});

test("POST /hooks-admin/deliveries/:id/cancel: stops the model", async () => {
  const world = await startGateway({ script: () => ({ text: "never said", until: new Promise(() => {}) }) });
  const { runId } = await json(await world.hook("agent", { message: "hi" }));
  const events = await world.hook(`runs/${runId}/events`);
  for await (const bytes of events.body!) {
    if (!new TextDecoder().decode(bytes).includes('"state":"running"')) continue;
    expect(await eventually(() => world.runtime.requests.length === 1)).toBe(true); // a run begins before its request
    const answer = await json(await world.admin(`deliveries/${runId}/cancel`, { method: "POST" }));
    expect(answer).toEqual({ runs: [{ runId, result: "stopping" }] });
    break;
  }
  await (await world.hook(`runs/${runId}/events`)).text();
  expect((await json(await world.hook(`runs/${runId}`))).run).toMatchObject({ state: "cancelled" });
  expect(world.runtime.stopped).toHaveLength(1);
  const over = await json(await world.admin(`deliveries/${runId}/cancel`, { method: "POST" }));
  expect(over.runs).toEqual([{ runId, result: "over" }]);
});

test("POST /hooks-admin/mappings/:id/test: returns the rendered action and dispatches nothing", async () => {
  const mappings = [
    {
      id: "first",
      match: { path: "ci", when: { at: "payload.kind", equals: "pr" } },
      deliver: false,
      messageTemplate: "PR",
    },
    { id: "ci", match: { path: "ci" }, messageTemplate: "Build {{payload.n}} by {{headers.x-who}} failed" },
    { id: "refused", match: { path: "r" }, messageTemplate: "x", model: "un{{ payload.x }}known" },
  ];
  const world = await startGateway({ settings: { hooks: { mappings } } });
  const body = { payload: { n: 7 }, headers: { "X-Who": "Ann", Authorization: "Bearer secret" } };
  const run = await json(await world.admin("mappings/ci/test", { body }));
  expect(run).toMatchObject({ mapping: "ci", reaches: "ci", outcome: "actions" });
  expect(run.actions[0].prompt).toMatch(
    /^What stands between .*\n[\s\S]*Build <<<.*>>>7<<<.*>>> by <<<.*>>>Ann<<<.*>>> failed$/,
  );
  expect(run.actions[0].reply).toEqual({ reason: expect.any(String) }); // no channel is configured
  expect((await json(await world.admin("mappings/ci/test", { body: { payload: { kind: "pr" } } }))).reaches).toBe(
    "first",
  );
  const refused = await json(await world.admin("mappings/refused/test", { body: { payload: {} } }));
  expect(refused.actions[0].refused).toContain("no such model");
  const bad = await world.admin("mappings/ci/test", { body: { payload: {}, headers: { "x-n": 5 } } });
  expect([bad.status, await json(bad)]).toEqual([400, { error: "headers.x-n: expected a text, got number" }]);
  expect((await world.admin("mappings/none/test", { body: { payload: {} } })).status).toBe(404);
  expect((await json(await world.admin("deliveries"))).deliveries).toEqual([]);
  expect(world.runtime.requests).toEqual([]);
});

test("POST /hooks-admin/mappings/:id/test: returns the ingress's answer to a request that runs nothing", async () => {
  const when = { at: "payload.action", equals: "opened" };
  const secrets = "github-webhook-secret-of-tests";
  const mappings = [
    { id: "ci", match: { path: "ci", when }, messageTemplate: "x", handshake: "slack" },
    { id: "shop", match: { path: "shop", source: "shop" }, messageTemplate: "x" },
  ];
  const presetSettings = { github: { secrets, match: { when } } };
  const world = await startGateway({ settings: { hooks: { mappings, presets: ["github"], presetSettings } } });
  const tested = async (id: string, body: object): Promise<object> =>
    json(await world.admin(`mappings/${id}/test`, { body }));
  const leftOut = { outcome: "nothing", reason: "match.when leaves this request out", actions: [], warnings: [] };
  const closed = { payload: { action: "closed" } };
  expect(await tested("ci", closed)).toEqual({
    ...leftOut,
    mapping: "ci",
    reaches: "ci",
    answer: { status: 204, body: "" },
  });
  expect((await world.hook("ci", closed.payload)).status).toBe(204);
  const form = { "Content-Type": "application/x-www-form-urlencoded" };
  expect(await tested("ci", { ...closed, headers: form })).toMatchObject({ answer: { status: 200, body: "" } });
  const challenge = { payload: { type: "url_verification", challenge: "c-1" } };
  expect(await tested("ci", challenge)).toMatchObject({ outcome: "answered", answer: { status: 200, body: "c-1" } });
  const ping = { payload: {}, headers: { "X-GitHub-Event": "ping" } };
  expect(await tested("github", ping)).toEqual({
    mapping: "github",
    reaches: "github",
    outcome: "answered",
    answer: { status: 200, body: '{"ok":true,"ping":true}' },
    actions: [],
    warnings: [],
  });
  expect(await tested("shop", { payload: {} })).toMatchObject({ reaches: null, outcome: "actions" }); // 404
});

test("POST /hooks-admin/mappings/:id/test: parses a raw body as the ingress does", async () => {
  const mappings = [
    { id: "ci", action: "wake", textTemplate: "{{payload.text}}" },
    { id: "small", action: "wake", textTemplate: "x", maxBodyBytes: 10 },
  ];
  const test = async (strict: boolean) => {
    const world = await startGateway({ settings: { hooks: { mappings, strict } } });
    return (body: object, id = "ci"): Promise<Response> => world.admin(`mappings/${id}/test`, { body });
  };
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const lenient = await test(false);
  const text = async (body: string, type?: string): Promise<unknown> => {
    const headers = type === undefined ? {} : { "Content-Type": type };
    return (await json(await lenient({ body: base64(body), headers }))).actions[0]?.action.text.at(-1)?.text;
  };
  expect(await text("text=a+b%21&other=1", "application/x-www-form-urlencoded")).toBe("a b!");
  const form = '--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nfrom a form\r\n--x--\r\n';
  expect(await text(form, "multipart/form-data; boundary=x")).toBe("from a form");
  expect(await text('{"text": 12345678901234567890}')).toBe("12345678901234567890");
  const refused = async (response: Response): Promise<unknown[]> => {
    const { outcome, reason } = await json(response);
    return [outcome, reason];
  };
  expect(await refused(await lenient({ body: base64("{") }))).toEqual(["refused", "invalid JSON"]);
  expect(await refused(await lenient({ body: base64('{"a":12345}') }, "small"))).toEqual([
    "refused",
    "payload too large",
  ]);
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  expect(await refused(await (await test(true))({ body: base64("text=a"), headers }))).toEqual([
    "refused",
    "unsupported content type: expected JSON",
  ]);
  for (const body of [{}, { payload: {}, body: "" }, { body: "no base64!" }]) {
    expect((await lenient(body)).status).toBe(400);
  }
});

test("POST /hooks-admin/pause: accepted requests wait, and run after resume", async () => {
  const world = await startGateway();
  expect(await json(await world.admin("pause", { method: "POST" }))).toEqual({ paused: true });
  const { runId } = await json(await world.hook("agent", { message: "later" }));
  const stateOf = async (): Promise<string> => (await json(await world.admin(`deliveries/${runId}`))).runs[0].state;
  await Bun.sleep(100); // a turn takes a few milliseconds
  expect([await stateOf(), await world.gateway.status()]).toEqual([
    "queued",
    expect.objectContaining({ paused: true }),
  ]);
  expect(await json(await world.admin("resume", { method: "POST" }))).toEqual({ paused: false });
  expect(await eventually(async () => (await stateOf()) === "succeeded")).toBe(true);
  expect(await world.gateway.status()).not.toHaveProperty("paused");
});

test("GET /hooks-admin/mappings: lists all mappings in their order, without secrets", async () => {
  const mappings = [
    {
      id: "ci",
      match: { path: "ci" },
      messageTemplate: "Build {{payload.n}}",
      auth: { scheme: "github", secrets: ["hush-hush-hush-hush-hush"] },
    },
    { id: "ping", action: "wake", textTemplate: "x" },
  ];
  const world = await startGateway({ settings: { hooks: { mappings } } });
  const body = await (await world.admin("mappings")).text();
  expect(body).not.toContain("hush");
  expect(JSON.parse(body).mappings).toEqual([
    { id: "ci", preset: null, path: "ci", action: "agent", channel: "last", problem: null },
    { id: "ping", preset: null, path: null, action: "wake", channel: null, problem: null },
  ]);
});
