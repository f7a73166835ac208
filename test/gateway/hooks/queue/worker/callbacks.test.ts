import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { nextCallbackAt } from "../../../../../src/gateway/hooks/queue/worker/callback-queue.ts";
import { eventually } from "../../../../e2e/hearth.ts";
import { agent, request } from "../deliveries/fixtures.ts";
import { ended, makeWorkerBench, send, type WorkerBench } from "./parts.ts";

const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes ....").toString("base64")}`;
const HOUR_MS = 3_600_000;

interface Received {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A server that receives callbacks and answers with the given statuses, repeating the last one. */
function listen(...statuses: number[]) {
  const received: Received[] = [];
  const { promise: firstReceived, resolve } = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(incoming) {
      received.push({ headers: Object.fromEntries(incoming.headers), body: await incoming.text() });
      resolve();
      return new Response(null, { status: statuses[Math.min(received.length, statuses.length) - 1]! });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/done`,
    received,
    firstReceived,
    [Symbol.dispose]: () => void server.stop(true),
  };
}

/** Waits for a state of a run's callback, and advances the clock to each retry. */
async function callback(at: WorkerBench, runId: string, state: string): Promise<void> {
  const { store, clock } = at.bench;
  const is = async (): Promise<boolean> => {
    if ((await at.deliveries.run(runId))?.callback === state) return true;
    clock.now = Math.max(clock.now, (await store.read(nextCallbackAt)) ?? 0);
    at.worker.poke();
    return false;
  };
  if (!(await eventually(is, 30_000))) throw new Error(`it is ${(await at.deliveries.run(runId))?.callback}`);
}

test("callbackUrl: gets the signed outcome once the reply has ended", async () => {
  await using at = makeWorkerBench();
  using server = listen(204);
  at.settings.callbacks = { secret: SECRET, allowPrivate: true };
  at.bench.clock.now = Date.now(); // the signature's age is checked
  const runId = await send(at, agent("x", { deliver: true, callbackUrl: server.url }));
  await at.until(runId, (status) => status.reply === "pending");
  expect((await at.deliveries.run(runId))?.callback).toBe(null);
  await at.parts.settle(runId, { kind: "sent" });
  await server.firstReceived;
  const [{ headers, body }] = server.received as [Received];
  const said = new Webhook(SECRET).verify(body, headers);
  expect(said).toMatchObject({ type: "run.succeeded", data: { runId, state: "succeeded", reply: "sent" } });
  expect(headers["webhook-id"]).toBe(runId);
  await callback(at, runId, "sent");
  expect(server.received).toHaveLength(1);
});

test("callbackUrl: each attempt continues the request's trace with its own span", async () => {
  await using at = makeWorkerBench();
  using server = listen(500, 200);
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: "congo=t61rcWkgMzE" };
  const actions = [agent("x", { callbackUrl: server.url })];
  const accepted = await at.deliveries.accept(request({ actions, headers }));
  if (accepted.kind !== "accepted") throw new Error(accepted.kind);
  await callback(at, accepted.runIds[0]!, "sent");
  const given = server.received.map((each) => each.headers["traceparent"]!);
  expect(given.map((each) => each.replace(/-[0-9a-f]{16}-/, "-span-"))).toEqual([
    `00-${trace}-span-01`,
    `00-${trace}-span-01`,
  ]);
  expect(new Set([...given, headers.traceparent]).size).toBe(3);
  expect(server.received.map((each) => each.headers["tracestate"])).toEqual([headers.tracestate, headers.tracestate]);
});

test("callbackUrl: repeated failures and their end are logged once each", async () => {
  await using at = makeWorkerBench();
  const loggedTexts = () => at.logged.map((line) => line.replace(/ \{.*/, ""));
  using server = listen(500, 500, 500, 500, 200);
  const late = await send(at, agent("x", { callbackUrl: server.url }));
  await callback(at, late, "sent");
  await eventually(() => loggedTexts().length >= 2, 30_000); // it is reported after it is stored
  expect(loggedTexts()).toEqual([
    "hooks: a callback failed; it will be retried",
    "hooks: a callback arrived after a retry",
  ]);
  using closed = listen(500);
  const never = await send(at, agent("y", { callbackUrl: closed.url }));
  await callback(at, never, "failed");
  await eventually(() => loggedTexts().length >= 4, 30_000);
  expect(loggedTexts().slice(2)).toEqual([
    "hooks: a callback failed; it will be retried",
    "hooks: a callback failed for the last time and will not be retried",
  ]);
});

test("callbackUrl: Retry-After may have a fraction of a millisecond", async () => {
  await using at = makeWorkerBench();
  const answers = [new Response(null, { status: 503, headers: { "retry-after": "1.2345" } }), new Response("ok")];
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => answers.shift() ?? new Response("again") });
  const runId = await send(at, agent("x", { callbackUrl: server.url.href }));
  await callback(at, runId, "sent");
  expect(answers).toEqual([]);
  expect(at.logged.join()).not.toContain("cannot be stored");
});

test("callbackUrl: is retried with the same id until it succeeds", async () => {
  await using at = makeWorkerBench();
  using server = listen(500, 503, 200);
  const runId = await send(at, agent("x", { callbackUrl: server.url }));
  await callback(at, runId, "sent");
  expect(server.received.map(({ headers }) => headers["webhook-id"])).toEqual([runId, runId, runId]);
  expect(new Set(server.received.map(({ body }) => body)).size).toBe(1);
});

test.each([
  ["is not asked again after it refuses", [400], 1],
  ["is given up after twelve failures", [500], 12],
] as const)(
  "callbackUrl: a receiver %s",
  async (_, statuses, times) => {
    await using at = makeWorkerBench();
    using server = listen(...statuses);
    const runId = await send(at, agent("x", { callbackUrl: server.url }));
    await callback(at, runId, "failed");
    expect(server.received).toHaveLength(times);
  },
  60_000,
);

test("callbackUrl: addresses of this machine are refused unless they are allowed", async () => {
  await using at = makeWorkerBench();
  using server = listen(200);
  at.settings.callbacks = { secret: undefined, allowPrivate: false };
  const runId = await send(at, agent("x", { callbackUrl: server.url }));
  await callback(at, runId, "failed");
  expect(server.received).toEqual([]);
});

test("callbackUrl: gets the outcome of a failed run, also after a restart", async () => {
  await using at = makeWorkerBench();
  using server = listen(500, 200);
  at.parts.answer = async () => ended({ status: "error", error: "no such model" });
  const runId = await send(at, agent("x", { callbackUrl: server.url }));
  await server.firstReceived;
  await at.worker.stop(0);
  expect((await at.deliveries.run(runId))?.callback).toBe("pending");
  at.bench.clock.now += HOUR_MS;
  at.worker = at.anotherWorker();
  at.worker.start();
  await callback(at, runId, "sent");
  expect(JSON.parse(server.received.at(-1)!.body)).toMatchObject({
    type: "run.failed",
    data: { reason: "no such model" },
  });
});
