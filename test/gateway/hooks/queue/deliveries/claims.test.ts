import { expect, test } from "bun:test";
import {
  claimTurns,
  leasedRuns,
  nextTurnAt,
  renewLeases,
  type ClaimOptions,
} from "../../../../../src/gateway/hooks/queue/deliveries/claims.ts";
import type { TurnRun } from "../../../../../src/gateway/hooks/queue/deliveries/runs.ts";
import { postgresUrl } from "../../../../stores.ts";
import { agent, makeBench, request, START, type Bench } from "./fixtures.ts";
import { execute } from "../../../../../src/gateway/database/store.ts";

const LEASE_MS = 30_000;

async function add(bench: Bench, sessionKey: string, mappingId?: string): Promise<string> {
  const accepted = await bench.deliveries.accept(request({ actions: [agent("x", { sessionKey })], mappingId }));
  return "runIds" in accepted ? accepted.runIds[0]! : "";
}

const claim = (bench: Bench, changes: Partial<ClaimOptions> = {}): Promise<TurnRun[]> =>
  bench.store.write(() =>
    claimTurns({
      owner: "me",
      now: START,
      leaseUntil: START + LEASE_MS,
      free: 8,
      limitOf: () => undefined,
      ...changes,
    }),
  );

test("a claim takes the first run of each session from the lanes in turn, within all limits", async () => {
  await using bench = makeBench();
  const a = [await add(bench, "s1", "a"), await add(bench, "s1", "a"), await add(bench, "s2", "a")];
  const b = [await add(bench, "s2", "b"), await add(bench, "s3", "b"), await add(bench, "s4", "b")];
  const ids = (runs: readonly TurnRun[]): string[] => runs.map(({ id }) => id);
  expect(ids(await claim(bench, { free: 3 }))).toEqual([a[0]!, b[1]!, a[2]!]);
  expect(ids(await claim(bench, { limitOf: (id) => (id === "b" ? 1 : undefined) }))).toEqual([]); // s2 and b are busy
  expect(ids(await claim(bench))).toEqual([b[2]!]);
});

test("the database refuses a second running turn in a session", async () => {
  await using bench = makeBench();
  await add(bench, "same");
  const second = await add(bench, "same");
  await claim(bench);
  const forced = bench.store.write(() => execute("UPDATE runs SET state = 'running' WHERE id = $1", second));
  await expect(forced).rejects.toThrow(/unique/i);
});

test("only the owner renews leases, and gets the runs that were lost or cancelled", async () => {
  await using bench = makeBench();
  const [kept, taken, unwanted] = [await add(bench, "s1"), await add(bench, "s2"), await add(bench, "s3")];
  await claim(bench);
  await bench.store.write(() => execute("UPDATE runs SET lease_owner = 'other' WHERE id = $1", taken));
  await bench.store.write(() => execute("UPDATE runs SET cancel_at = 1 WHERE id = $1", unwanted));
  const until = START + 3 * LEASE_MS;
  const renewed = await bench.store.write(() => renewLeases([kept, taken, unwanted], { owner: "me", until }));
  expect(renewed).toEqual({ unwanted: [unwanted], lost: [taken] });
  const leases = (await bench.store.read(() => leasedRuns())).map(({ id, leaseUntil }) => [id, leaseUntil]);
  expect(leases).toEqual([
    [kept, until],
    [taken, START + LEASE_MS],
    [unwanted, until],
  ]);
});

test("the time of a claim does not grow with the number of waiting runs", async () => {
  await using small = makeBench();
  await using large = makeBench();
  const fill = async (bench: Bench, count: number): Promise<void> => {
    Object.assign(bench.settings, { maxQueued: 1e6, maxQueuedOf: () => 1e6 });
    const actions = Array.from({ length: 500 }, () => agent("x"));
    for (let at = 0; at < count; at += 500) await bench.deliveries.accept(request({ mappingId: "m", actions }));
  };
  const msOfClaim = async (bench: Bench): Promise<number> => {
    const undone = new Error("undone");
    let tookMs = 0;
    const claimed = bench.store.write(function* () {
      const began = performance.now();
      const lease = { owner: "me", now: START, leaseUntil: START + LEASE_MS };
      expect(yield* claimTurns({ ...lease, free: 8, limitOf: () => undefined })).toHaveLength(8);
      yield* nextTurnAt(START);
      tookMs = performance.now() - began;
      throw undone;
    });
    await expect(claimed).rejects.toBe(undone);
    return tookMs;
  };
  await fill(small, 500);
  await fill(large, postgresUrl === undefined ? 20_000 : 5000);
  // in turn, the quickest of many, so that a machine that becomes busy does not matter
  let [few, many] = [Infinity, Infinity];
  for (let i = 0; i < 40; i++) {
    few = Math.min(few, await msOfClaim(small));
    many = Math.min(many, await msOfClaim(large));
  }
  expect(many).toBeLessThan(5 * few); // reading all took fifty times as long
}, 60_000);
