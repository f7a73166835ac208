/** A clock that was ahead and is corrected: runs accepted meanwhile do not wait for the wrong time. */
import { expect, test } from "bun:test";
import { eventually } from "../../../../e2e/hearth.ts";
import { alone } from "../../../../../src/gateway/database/peers.ts";
import { nextCallbackAt } from "../../../../../src/gateway/hooks/queue/worker/callback-queue.ts";
import { agent } from "../deliveries/fixtures.ts";
import { ended, makeWorkerBench, ok, send } from "./parts.ts";

const DAY_MS = 24 * 3_600_000;
const same = { sessionKey: "hook:order" };

test("runs accepted while the clock was ahead, and later ones, run once it is set back", async () => {
  await using at = makeWorkerBench();
  await at.worker.setPaused(true);
  at.bench.clock.now += DAY_MS;
  const first = await send(at, agent("a", same));
  at.bench.clock.now -= DAY_MS;
  const second = await send(at, agent("b", same));
  await at.worker.setPaused(false);
  expect((await at.settled(second)).state).toBe("succeeded");
  expect((await at.settled(first)).state).toBe("succeeded");
  expect(at.parts.turns.map(({ runId }) => runId)).toEqual([first, second]);
});

test("a retry scheduled while the clock was ahead runs once it is set back", async () => {
  await using at = makeWorkerBench();
  at.bench.clock.now += DAY_MS;
  at.parts.answer = async () => ended({ status: "error", error: "the model crashed", isTemporary: true });
  const runId = await send(at, agent("a"));
  await at.until(runId, ({ state, attempts }) => state === "queued" && attempts === 1);
  at.parts.answer = async () => ok("there");
  at.bench.clock.now -= DAY_MS;
  at.worker.poke();
  expect((await at.settled(runId)).state).toBe("succeeded");
});

test("runs accepted while the clock was ahead run at a start after it is set back", async () => {
  await using at = makeWorkerBench();
  await at.worker.stop(0);
  at.bench.clock.now += DAY_MS;
  const runId = await send(at, agent("a"));
  at.bench.clock.now -= DAY_MS;
  at.worker = at.anotherWorker(alone());
  at.worker.start();
  expect((await at.settled(runId)).state).toBe("succeeded");
});

test("a callback scheduled while the clock was ahead is sent once it is set back", async () => {
  await using at = makeWorkerBench();
  let isUp = false;
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(null, { status: isUp ? 204 : 503 }),
  });
  const runId = await send(at, agent("x", { callbackUrl: `http://127.0.0.1:${server.port}/done` }));
  /** An outcome is stored a moment after the receiver has answered. */
  const isPutOff = async (until: number): Promise<boolean> =>
    ((await at.bench.store.read(nextCallbackAt)) ?? 0) > until;
  expect(await eventually(() => isPutOff(at.bench.clock.now))).toBe(true);
  at.bench.clock.now += DAY_MS / 2;
  at.worker.poke();
  expect(await eventually(() => isPutOff(at.bench.clock.now))).toBe(true);
  isUp = true;
  at.bench.clock.now -= DAY_MS / 2;
  const isSent = async (): Promise<boolean> => {
    at.worker.poke();
    return (await at.deliveries.run(runId))?.callback === "sent";
  };
  expect(await eventually(isSent)).toBe(true);
});
