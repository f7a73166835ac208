/**
 * How fast the gateway takes requests in, each of them on the disk before it is answered: requests per second and
 * their latency, for several numbers of senders at once, while a worker posts their events. HTTP is not part of it.
 *
 *   bun bench/hooks.ts [--seconds 3] [--senders 1,16,64,256] [--rounds 3] [--dir FOLDER]
 *
 * The disk decides: put --dir where the gateway's database would be.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openDatabase } from "../src/gateway/database/database.ts";
import { SqliteStore } from "../src/gateway/database/sqlite-store.ts";
import { alone } from "../src/gateway/database/peers.ts";
import { makeDeliveries, type Deliveries } from "../src/gateway/hooks/queue/deliveries/deliveries.ts";
import { deliveryMigrations } from "../src/gateway/hooks/queue/deliveries/tables.ts";
import { Worker } from "../src/gateway/hooks/queue/worker/worker.ts";
import { request, wake } from "../test/gateway/hooks/queue/deliveries/fixtures.ts";
import { makeParts, partMigrations } from "../test/gateway/hooks/queue/worker/parts.ts";

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    senders: { type: "string", default: "1,16,64,256" },
    rounds: { type: "string", default: "3" },
    dir: { type: "string", default: tmpdir() },
  },
});
const seconds = Number(flags.seconds);
const rounds = Number(flags.rounds);

interface Sample {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

for (const senders of flags.senders.split(",").map(Number)) {
  const samples: Sample[] = [];
  for (let round = 0; round < rounds; round++) samples.push(await measure(senders));
  const of = (key: keyof Sample): number => median(samples.map((sample) => sample[key]));
  const rate = Math.round(of("perSecond")).toString().padStart(6);
  console.log(
    `${senders.toString().padStart(4)} senders: ${rate} accepted/s, p50 ${of("p50").toFixed(1)} ms, p99 ${of("p99").toFixed(1)} ms`,
  );
}

async function measure(senders: number): Promise<Sample> {
  const folder = mkdtempSync(join(flags.dir, "hearth-bench-hooks-"));
  const store = new SqliteStore(openDatabase(join(folder, "gateway.db"), [...deliveryMigrations, ...partMigrations]));
  const worker = new Worker({
    peers: alone(),
    store,
    ports: makeParts(store).ports,
    settings: () => ({
      maxConcurrent: 4,
      maxConcurrentOf: () => undefined,
      maxAttempts: 5,
      callbacks: { secret: undefined, allowPrivate: false },
    }),
    log: { debug: () => {}, info: () => {}, warn: console.warn, error: console.error },
    now: Date.now,
    random: Math.random,
  });
  const deliveries = makeDeliveries({
    store,
    settings: () => ({ maxQueued: 10_000, maxQueuedOf: () => 10_000, keysMs: 86_400_000, retentionMs: 86_400_000 }),
    sessionKeyOf: ({ runId }) => runId,
    posting: () => worker.posting(),
    now: Date.now,
  });
  worker.start();
  try {
    return await load(deliveries, senders);
  } finally {
    await worker.stop(0);
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Every sender waits for its answer before it sends again. */
async function load(deliveries: Deliveries, senders: number): Promise<Sample> {
  const latencies: number[] = [];
  let refused = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  const sender = async (id: number): Promise<void> => {
    for (let n = 0; performance.now() < until; n++) {
      const at = performance.now();
      const actions = [wake(`event ${n} of sender ${id}: ${"x".repeat(500)}`)];
      const { kind } = await deliveries.accept(request({ actions, idempotencyKey: `${id}-${n}`, now: Date.now() }));
      if (kind === "accepted") latencies.push(performance.now() - at);
      else refused++;
    }
  };
  await Promise.all(Array.from({ length: senders }, (_, id) => sender(id)));
  const perSecond = (latencies.length / (performance.now() - began)) * 1000;
  const sorted = latencies.toSorted((a, b) => a - b);
  if (refused > 0) console.warn(`${refused} refused: the worker did not keep up`);
  return { perSecond, p50: sorted[sorted.length >> 1]!, p99: sorted[Math.floor(sorted.length * 0.99)]! };
}
