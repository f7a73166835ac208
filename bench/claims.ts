/**
 * What it costs to take the next turns from a long queue: 22,000 runs wait, of which a part belongs to one session.
 *
 *   bun bench/claims.ts [--rounds 200] [--of 20000]… [--postgres]
 *
 * `--postgres`: in a server of its own, from Debian's package; else in SQLite.
 */
import { parseArgs } from "node:util";
import { claimTurns } from "../src/gateway/hooks/queue/deliveries/claims.ts";
import { agent, makeBench, request, type Bench } from "../test/gateway/hooks/queue/deliveries/fixtures.ts";
import { startPostgres } from "../test/postgres-server.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "200" },
    postgres: { type: "boolean", default: false },
    of: { type: "string", multiple: true, default: ["0", "2000", "20000", "22000"] }, // of one session
  },
});
for (const of of values.postgres ? values.of : []) {
  const server = await startPostgres();
  const child = Bun.spawn([process.execPath, import.meta.path, "--rounds", values.rounds, "--of", of], {
    env: { ...process.env, HEARTH_TEST_POSTGRES: server.url },
    stdio: ["ignore", "inherit", "inherit"],
  });
  await child.exited;
  await server.remove();
}
if (values.postgres) process.exit();
const RUNS = 22_000;
const FREE = 8;

for (const ofOneSession of values.of.map(Number)) {
  await using bench = makeBench();
  Object.assign(bench.settings, { maxQueued: 10 * RUNS, maxQueuedOf: () => 10 * RUNS });
  await fill(bench, ofOneSession);
  const took: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) took.push(await claimOnce(bench));
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): string => sorted[Math.floor(sorted.length * share)]!.toFixed(2);
  console.log(`${RUNS} wait, ${ofOneSession} of one session: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

async function fill({ deliveries, clock }: Bench, ofOneSession: number): Promise<void> {
  const actions = Array.from({ length: RUNS }, (_, i) =>
    agent("x", i % Math.ceil(RUNS / Math.max(1, ofOneSession)) === 0 && ofOneSession > 0 ? { sessionKey: "busy" } : {}),
  );
  for (let at = 0; at < RUNS; at += 200) {
    const mappingId = `mapping ${(at / 200) % 5}`;
    await deliveries.accept(request({ now: clock.now, mappingId, actions: actions.slice(at, at + 200) }));
  }
}

/** Milliseconds. What it takes is put back. */
async function claimOnce({ store, clock }: Bench): Promise<number> {
  let tookMs = 0;
  const undone = new Error("put back");
  await store
    .write(function* () {
      const began = performance.now();
      const lease = { owner: "bench", now: clock.now, leaseUntil: clock.now + 30_000 };
      const claimed = yield* claimTurns({ ...lease, free: FREE, limitOf: () => undefined });
      tookMs = performance.now() - began;
      if (claimed.length === 0) throw new Error("nothing was claimed");
      throw undone;
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error;
    });
  return tookMs;
}
