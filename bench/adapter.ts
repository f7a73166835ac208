/**
 * What a LoRA adapter on every matrix costs: the same file with and without, Hearth and llama.cpp, alternated, each run
 * in a process of its own; medians.
 *
 *   bun bench/adapter.ts [q4_0 …] [--rank 16] [--rounds 3] [--threads N] [--out FOLDER]
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { physicalCores } from "../src/backend/onnx/threads.ts";
import { openGguf } from "../src/gguf/read.ts";
import { writeGguf } from "../src/gguf/write.ts";
import { makeAdapter, shapesOf } from "../test/arch/adapters.ts";
import { ensureModel, MIXES, type Mix } from "./make-model.ts";
import type { Measurement, SideName } from "./sides.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rank: { type: "string", default: "16" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(physicalCores()) },
    out: { type: "string", default: join(import.meta.dir, "out") },
  },
});
for (const mix of positionals.length > 0 ? positionals : ["q4_0"]) {
  if (!Object.hasOwn(MIXES, mix)) throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
  await compare(mix as Mix); // looked up above
}

async function compare(mix: Mix): Promise<void> {
  const file = await ensureModel(mix, flags.out);
  const adapter = join(flags.out, `rank-${flags.rank}.gguf`);
  const base = openGguf(file);
  const rank = Number(flags.rank);
  await writeGguf(adapter, makeAdapter(shapesOf(base), { rank, alpha: rank, seed: 1, targets: /^blk/ }));
  base.close();
  const cacheDir = join(flags.out, "cache");
  mkdirSync(cacheDir, { recursive: true });
  const found = new Map<string, Measurement[]>();
  for (let round = 0; round <= Number(flags.rounds); round++) {
    for (const side of ["hearth", "llama"] as const) {
      for (const [what, more] of [["without", []] as const, ["with", [adapter]] as const]) {
        const measured = await measure(side, [file, cacheDir, flags.threads, ...more]);
        console.error(
          `${side} ${what}: ${measured.decode.toFixed(1)} decoded, ${measured.prefill.toFixed(0)} prefilled`,
        );
        if (round > 0) found.set(`${side} ${what}`, [...(found.get(`${side} ${what}`) ?? []), measured]); // 0 packs
      }
    }
  }
  rmSync(cacheDir, { recursive: true, force: true });
  console.log(`\n${mix}, rank ${rank}, ${flags.rounds} rounds, medians, tokens/s`);
  console.table(
    Object.fromEntries(
      [...found].map(([name, all]) => [
        name,
        {
          "prefill 512": median(all.map(({ prefill }) => prefill)).toFixed(1),
          "decode 64": median(all.map(({ decode }) => decode)).toFixed(1),
          "four at once": median(all.map(({ decodeFour }) => decodeFour ?? NaN)).toFixed(1), // JSON has no NaN
          "load, s": median(all.map(({ loadMs }) => loadMs / 1000)).toFixed(1),
        },
      ]),
    ),
  );
}

/** Runs one side in a process of its own. */
async function measure(side: SideName, options: readonly string[]): Promise<Measurement> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "sides.ts"), side, ...options], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1", MALLOC_MMAP_THRESHOLD_: "65536" }, // as for runners
    stdout: "pipe",
    stderr: "inherit",
  });
  const line = (await new Response(child.stdout).text()).trim().split("\n").at(-1) ?? "";
  if ((await child.exited) !== 0 || !line.startsWith("{")) throw new Error(`${side} failed: ${line}`);
  return JSON.parse(line) as Measurement; // what sides.ts prints
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
