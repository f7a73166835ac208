/** `POST /hooks-admin/replay`: all runs that were given up, and all failed replies, again; through a real socket. */
import { expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import { eventually } from "../e2e/hearth.ts";
import { startChat } from "../gateway/operate/fixtures.ts";
import { GATEWAY_TOKEN, json, startGateway, type GatewayWorld } from "../gateway/operate/world.ts";

const agent = { wakeMode: "next-heartbeat", deliver: false };
const WAIT = { headers: { prefer: "wait=60" } };

const replay = async (world: GatewayWorld, body: object): Promise<any> =>
  json(await world.admin("replay", { method: "POST", body }));
const page = (more: object) => ({ found: 0, replayed: 0, skipped: [], next: null, retryAfterMs: null, ...more });

/** A gateway whose model fails until `mend`, and whose runs are given up at once. */
async function startBroken(queue: object = {}) {
  const model = { isBroken: true, open: Promise.resolve() as Promise<unknown> };
  const world = await startGateway({
    settings: {
      hooks: {
        queue: { maxAttempts: 1, ...queue },
        mappings: [{ id: "ci", match: { path: "ci" }, messageTemplate: "Build {{payload.n}}", deliver: false }],
      },
    },
    script: () =>
      model.isBroken ? { error: new AppError("upstream", "the model fell over") } : { text: "done", until: model.open },
  });
  const send = async (n: number, path = "agent"): Promise<string> => {
    const body = path === "agent" ? { message: `question ${n}`, ...agent } : { n };
    const { runId, run } = await json(await world.hook(path, body, WAIT));
    expect(run).toMatchObject({ state: "dead" });
    return runId;
  };
  const listed = async (): Promise<any[]> => (await json(await world.admin("deliveries?limit=500"))).deliveries;
  const replaysOf = async (runId: string): Promise<any[]> => {
    const { id } = await json(await world.admin(`deliveries/${runId}`));
    return (await listed()).filter(({ replayOf }) => replayOf === id);
  };
  return { world, model, send, replaysOf };
}

test("runs that were given up are counted, run again once, oldest first, and not a second time", async () => {
  const { world, model, send, replaysOf } = await startBroken();
  const runIds = [await send(1), await send(2), await send(3)];
  model.isBroken = false;
  expect(await replay(world, { what: "dead", dryRun: true })).toEqual(page({ found: 3 }));
  expect(world.runtime.requests).toHaveLength(3);
  expect(await replay(world, { what: "dead" })).toEqual(page({ found: 3, replayed: 3 }));
  expect(await replay(world, { what: "dead" })).toEqual(page({}));
  for (const runId of runIds) {
    const isDone = async () => (await replaysOf(runId))[0]?.runs[0].state === "succeeded";
    expect([await eventually(isDone), (await replaysOf(runId)).length]).toEqual([true, 1]);
  }
  const prompts = world.runtime.requests
    .slice(3)
    .map(({ messages }) => /question \d/.exec(messages.at(-1)!.content)?.[0]);
  expect(prompts.toSorted()).toEqual(["question 1", "question 2", "question 3"]);
  const ids = await Promise.all(runIds.map(async (runId) => (await replaysOf(runId))[0].id));
  expect(ids).toEqual(ids.toSorted()); // ids begin with the time; workers may run them in another order
});

test("two operators at the same time replay each run once", async () => {
  const { world, model, send } = await startBroken();
  for (let n = 0; n < 5; n++) await send(n);
  model.isBroken = false;
  const pages = await Promise.all([1, 2, 3].map(() => replay(world, { what: "dead" })));
  expect(pages.reduce((sum, { replayed }) => sum + replayed, 0)).toBe(5);
  const reasons = pages.flatMap(({ skipped }) => skipped.map(({ reason }: any) => reason));
  expect(new Set([...reasons, "it was replayed before"])).toEqual(new Set(["it was replayed before"]));
});

test("filters choose by mapping, path and time of the end", async () => {
  const { world, send } = await startBroken();
  await send(1);
  await send(2, "ci");
  const between = Date.now() + 1;
  await Bun.sleep(2);
  await send(3, "ci");
  const count = async (more: object) => (await replay(world, { what: "dead", dryRun: true, ...more })).found;
  expect([await count({}), await count({ mapping: "ci" }), await count({ path: "/agent/" })]).toEqual([3, 2, 1]);
  expect([await count({ since: between }), await count({ mapping: "none" })]).toEqual([1, 0]);
});

test("replays leave half of the queue to new requests, and go on from where they stopped", async () => {
  const { world, model, send } = await startBroken({ max: 4 });
  for (let n = 0; n < 3; n++) await send(n);
  const open = Promise.withResolvers<void>();
  Object.assign(model, { isBroken: false, open: open.promise });
  const first = await replay(world, { what: "dead" });
  expect(first).toEqual(page({ found: 3, replayed: 2, next: expect.any(String), retryAfterMs: expect.any(Number) }));
  expect((await world.hook("agent", { message: "new", ...agent })).status).toBe(202);
  expect(await replay(world, { what: "dead", after: first.next })).toMatchObject({ found: 1, replayed: 0 });
  open.resolve();
  const goesOn = async () => (await replay(world, { what: "dead", after: first.next })).replayed === 1;
  expect(await eventually(goesOn)).toBe(true);
  expect(await replay(world, { what: "dead" })).toEqual(page({}));
});

test.each([
  [{}, "what"],
  [{ what: "everything" }, `what: expected "dead" or "replies", got "everything"`],
  [{ what: "dead", since: "yesterday" }, "since"],
  [{ what: "dead", since: 1.5 }, "since: expected a whole number of milliseconds"],
  [{ what: "dead", hook: "ci" }, "unknown field 'hook'; known: what, mapping, path, since, after, dryRun"],
])("%j is 400", async (body, problem) => {
  const world = await startGateway();
  const response = await world.admin("replay", { method: "POST", body });
  expect([response.status, await json(response)]).toEqual([400, { error: expect.stringContaining(problem) }]);
  expect((await world.admin("replay", { method: "POST", body, token: `${GATEWAY_TOKEN}x` })).status).toBe(401);
});

/** A gateway whose replies go to a chat, cut at the end of a paragraph. */
async function startChatting() {
  const chat = startChat();
  const world = await startGateway({
    settings: {
      channels: {
        telegram: { botToken: "1:a", baseUrl: chat.url, defaultTo: "42", spacingMs: 0, textChunkLimit: 95 },
      },
    },
    script: (_, i) => ({ text: `${`answer ${i} `.repeat(10).trim()}\n\nend of ${i}` }),
  });
  const answer = async (): Promise<string> => {
    const message = { message: "hi", channel: "telegram", wakeMode: "next-heartbeat" };
    return (await json(await world.hook("agent", message, WAIT))).runId;
  };
  const reply = async (runId: string): Promise<any> => (await json(await world.hook(`runs/${runId}`))).run;
  const becomes = async (runId: string, state: string): Promise<void> => {
    expect(await eventually(async () => (await reply(runId)).reply === state)).toBe(true);
  };
  return { world, chat, answer, reply, becomes };
}

const refusal = () => Response.json({ ok: false, description: "chat not found" }, { status: 400 });
const taken = () => Response.json({ ok: true, result: { message_id: 1 } });

test("failed replies are sent again without a new turn, and without the parts that have arrived", async () => {
  const { world, chat, answer, reply, becomes } = await startChatting();
  const good = await answer();
  await becomes(good, "sent");
  chat.answer = refusal;
  const whole = await answer();
  await becomes(whole, "failed");
  let parts = 0;
  chat.answer = () => (parts++ === 0 ? taken() : refusal());
  const half = await answer();
  await becomes(half, "failed");
  chat.answer = taken;
  chat.sent.length = 0;
  expect(await replay(world, { what: "replies", dryRun: true })).toEqual(page({ found: 2 }));
  expect(await replay(world, { what: "replies" })).toEqual(page({ found: 2, replayed: 2 }));
  await becomes(whole, "sent");
  await becomes(half, "sent");
  expect(chat.sent).toEqual([`42: ${"answer 1 ".repeat(10).trim()}`, "42: end of 1", "42: end of 2"]);
  expect(await reply(half)).toMatchObject({ state: "succeeded", replyReason: null });
  expect(world.runtime.requests).toHaveLength(3);
  expect(await replay(world, { what: "replies" })).toEqual(page({}));
});

test("a reply that fails again can be sent once more; a recalled one cannot", async () => {
  const { world, chat, answer, becomes, reply } = await startChatting();
  chat.answer = refusal;
  const runId = await answer();
  await becomes(runId, "failed");
  expect(await replay(world, { what: "replies" })).toMatchObject({ replayed: 1 });
  await becomes(runId, "failed");
  expect((await reply(runId)).replyReason).toBe("telegram: answered 400: chat not found");
  chat.answer = () => Response.json({ ok: false, description: "Unauthorized" }, { status: 401 });
  const recalled = await answer();
  await becomes(recalled, "pending");
  await world.admin(`deliveries/${recalled}/cancel`, { method: "POST", body: {} });
  await becomes(recalled, "failed");
  expect(await replay(world, { what: "replies", dryRun: true })).toEqual(page({ found: 1 }));
});

test("a reply that may have arrived is listed with the failed ones, and never sent again", async () => {
  const { world, chat, answer, becomes } = await startChatting();
  chat.answer = () => new Response("<html>maintenance");
  const runId = await answer();
  await becomes(runId, "unknown");
  const { deliveries } = await json(await world.admin("deliveries?state=failed"));
  expect(deliveries.map(({ runs }: any) => runs[0].id)).toEqual([runId]);
  expect(await replay(world, { what: "replies" })).toEqual(page({}));
});
