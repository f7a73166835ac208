/**
 * What a LoRA adapter on every matrix of the layers costs: the same file with and without, both in memory, a few tokens
 * of each in turn, so that whatever else the machine does meets both alike; medians.
 *
 *   ORT_DISABLE_TELEMETRY=1 bun bench/adapter.ts [q4_0 …] [--rank 16] [--turns 60] [--threads N] [--out FOLDER]
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import type { Session } from "../src/engine/program/backend.ts";
import { onnxBackend } from "../src/engine/backends/onnx/index.ts";
import { physicalCores } from "../src/engine/backends/onnx/threads.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { makeAdapter, shapesOf } from "../test/engine/architectures/adapters.ts";
import { ensureModel, MIXES, type Mix } from "./make-model.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rank: { type: "string", default: "16" },
    turns: { type: "string", default: "60" },
    threads: { type: "string", default: String(physicalCores()) },
    out: { type: "string", default: join(import.meta.dir, "out") },
  },
});

/** Tokens of one turn, and the length of a prompt. */
const DECODED_TOKENS = 4;
const PROMPT_TOKENS = 128;
const CTX_LEN = 1024;
const prompt = Int32Array.from({ length: PROMPT_TOKENS }, (_, i) => 300 + ((i * 7919) % 700));

for (const mix of positionals.length > 0 ? positionals : ["q4_0"]) {
  if (!Object.hasOwn(MIXES, mix)) throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
  await compare(mix as Mix); // looked up above
}
process.exit(0);

async function compare(mix: Mix): Promise<void> {
  const file = await ensureModel(mix, flags.out);
  const adapterPath = join(flags.out, `rank-${flags.rank}.gguf`);
  const base = openGguf(file);
  const rank = Number(flags.rank);
  await writeGguf(adapterPath, makeAdapter(shapesOf(base), { rank, alpha: rank, seed: 1, targets: /^blk/ }));
  const threads = Number(flags.threads);
  const options = { ctxLen: CTX_LEN, slots: 1, precise: false, threads, cacheDir: join(flags.out, "cache") };
  const plain = await onnxBackend.load(loadProgram(base), options);
  const laid = await onnxBackend.load(loadProgram(base, [openGguf(adapterPath)]), options);
  const sides = [plain, laid].map((session) => ({ session, decodeMs: [] as number[], prefillMs: [] as number[] }));
  for (let turn = -1; turn < Number(flags.turns); turn++) {
    for (const { session, decodeMs, prefillMs } of turn % 2 === 0 ? sides : sides.toReversed()) {
      const prefill = turn % 6 === 0 ? await timeOf(() => feed(session, 0, prompt)) : undefined;
      if (turn < 0) await feed(session, 0, prompt);
      const decode = await timeOf(async () => {
        for (let i = 0; i < DECODED_TOKENS; i++) await feed(session, PROMPT_TOKENS + i, prompt.subarray(i, i + 1));
      });
      if (turn >= 0) decodeMs.push(decode / DECODED_TOKENS);
      if (prefill !== undefined) prefillMs.push(prefill);
    }
  }
  rmSync(adapterPath);
  console.log(`\n${mix}, rank ${rank}, ${threads} threads, ${flags.turns} turns: medians (and a fifth is faster)`);
  const [without, adapted] = sides.map(({ decodeMs, prefillMs }) => ({
    "decode, ms per token": `${at(decodeMs, 0.5).toFixed(1)} (${at(decodeMs, 0.2).toFixed(1)})`,
    "prefill of 128, ms": `${at(prefillMs, 0.5).toFixed(0)} (${at(prefillMs, 0.2).toFixed(0)})`,
  }));
  console.table({ without, with: adapted });
}

function feed(session: Session, start: number, tokens: Int32Array): Promise<Float32Array> {
  return session.run([{ slot: 0, start, tokens, logits: "last" }]);
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** The value that this share of all lies below. */
function at(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!;
}
