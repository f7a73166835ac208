import { afterEach, expect, test } from "bun:test";
import { makeHeartbeat, type Heartbeat } from "../../../src/runtime/processes/heartbeat.ts";
import { eventually } from "../../e2e/hearth.ts";

const LIMIT_MS = 200;

let heartbeat: Heartbeat | undefined;
afterEach(() => heartbeat?.stop());

/** A runner that answers each ping with the result of `turns`; undefined: not at all. */
function watch(turns: () => number | undefined): { pings: number; hangs: number; awaited: boolean; beat: Heartbeat } {
  const seen = { pings: 0, hangs: 0, awaited: true, beat: undefined as unknown as Heartbeat };
  seen.beat = heartbeat = makeHeartbeat({
    timeoutMs: LIMIT_MS,
    isAwaited: () => seen.awaited,
    ping: () => {
      seen.pings++;
      const answer = turns();
      if (answer !== undefined) setTimeout(() => seen.beat.pong(answer), 1);
    },
    onHang: () => seen.hangs++,
  });
  return seen;
}

test("a runner that does not answer its ping is reported as hung once", async () => {
  const seen = watch(() => undefined);
  seen.beat.wake();
  expect(await eventually(() => seen.hangs > 0)).toBe(true);
  await Bun.sleep(LIMIT_MS * 1.5);
  expect([seen.pings, seen.hangs]).toEqual([1, 1]);
});

test("a runner that answers pings but finishes no step is reported as hung", async () => {
  const seen = watch(() => 7);
  seen.beat.wake();
  expect(await eventually(() => seen.hangs > 0)).toBe(true);
  expect(seen.pings).toBeGreaterThan(2);
});

test("a runner that steps or sends messages is not reported as hung", async () => {
  let turns = 0;
  const stepping = watch(() => Math.floor(turns++ / 3));
  stepping.beat.wake();
  await Bun.sleep(LIMIT_MS * 3);
  expect(stepping.hangs).toBe(0);
  stepping.beat.stop();
  const talking = watch(() => undefined);
  talking.beat.wake();
  for (let i = 0; i < 10; i++, await Bun.sleep(LIMIT_MS / 5)) talking.beat.progress();
  expect(talking.hangs).toBe(0);
});

test("a runner without requests gets no ping after its answer until the next request", async () => {
  const seen = watch(() => 1);
  seen.beat.wake();
  seen.awaited = false;
  await Bun.sleep(LIMIT_MS * 2);
  expect([seen.pings, seen.hangs]).toEqual([1, 0]);
  seen.beat.wake();
  expect(seen.pings).toBe(2);
});
