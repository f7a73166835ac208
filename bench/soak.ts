/**
 * Short generations over three models, a fifth of them aborted at random moments; compares the resources of the server
 * and its runners before and after: memory, processes, threads, files, slots.
 *
 *   bun bench/soak.ts [--requests 10000] [--clients 16] [--model FILE.gguf] [--record]
 *
 * The goal: memory within 10 % of the start, no other growth.
 */
import { resolve } from "node:path";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startHearth } from "../test/e2e/hearth.ts";
import { heldBy, installCopies, slotsAreFree, soak, type Held } from "../test/hostile/soak.ts";
import { writeRecord } from "./report/record.ts";

/** Requests until caches are full. */
const WARM_UP = 1500;
/** Time after which idle processes have returned their memory. */
const REST_MS = 5000;
const SLOTS = 4;

const { values: flags } = parseArgs({
  options: {
    requests: { type: "string", default: "10000" },
    clients: { type: "string", default: "16" },
    record: { type: "boolean", default: false },
    model: { type: "string", default: resolve(import.meta.dir, "../models/hearth/hearth.gguf") },
  },
});
const [requests, clients] = [Number(flags.requests), Number(flags.clients)];

const hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: String(SLOTS) } });
try {
  const models = await installCopies(join(hearth.home, ".hearth", "models"), flags.model, 3);
  const run = (count: number, seed: number) => soak(hearth, { models, requests: count, clients, seed });
  await run(WARM_UP, 1);
  const atRest = async (): Promise<Held> => {
    await Bun.sleep(REST_MS);
    return heldBy(hearth);
  };
  const before = await atRest();
  show("start", before);
  const startMs = performance.now();
  const parts = 5;
  const sum = { ended: 0, aborted: 0, failed: 0 };
  for (let part = 1; part <= parts; part++) {
    const { ended, aborted, failed, failure } = await run(Math.ceil(requests / parts), part + 1);
    sum.ended += ended;
    sum.aborted += aborted;
    sum.failed += failed;
    if (failure) console.log(`failed: ${failure}`);
    show(`${Math.round((requests * part) / parts)}`, await atRest());
  }
  const seconds = (performance.now() - startMs) / 1000;
  const free = await slotsAreFree(hearth, models, SLOTS);
  const after = await atRest();
  show("end", after);
  const { ended, aborted, failed } = sum;
  console.log(`${ended} ended, ${aborted} aborted, ${failed} failed, in ${seconds.toFixed(0)} s`);
  console.log(
    `memory ${(after.bytes / before.bytes).toFixed(3)} of the start (within 0.9 … 1.1 is wanted), ` +
      `processes ${before.processes} → ${after.processes}, slots ${free ? "all free" : "LEAKED"}`,
  );
  if (flags.record) {
    const what = `${ended + aborted} generations, ${aborted} of them aborted`;
    const change = { what, measure: "memory at rest", unit: "times that before", ours: [after.bytes / before.bytes] };
    const failures = { what, measure: "failed", unit: "", ours: [failed], goal: { of: "value", atMost: 0 } } as const;
    const more = [after.processes - before.processes];
    const figures = [
      { ...change, goal: { of: "value", atMost: 1.1 } } as const,
      { ...failures, measure: "processes more than before", ours: more },
      failures,
    ];
    writeRecord("soak", { title: "Three models for long", figures });
  }
} finally {
  await hearth.stop();
}

function show(when: string, { bytes, processes, threads, files }: Held): void {
  const memory = `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  console.log(`${when.padStart(6)}: ${memory.padStart(9)}, ${processes} processes, ${threads} threads, ${files} files`);
}
