/**
 * Perplexity of the embedded model with each format of the KV cache, on texts of its own corpus that training never
 * saw. Each text is read as a prompt, and again in steps of one token, which read the cache in its own format. Needs
 * `python3`, which makes the texts.
 *
 *   bun bench/kv-perplexity.ts [--texts 96] [--tokens 1024] [--level LEVEL] [--record]
 *
 * The goal: `q4_0` within 0.5 % of f16. Predictions count from position 32 on, where the text before them is known.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { loadOptionsFor } from "../src/engine/backends/small.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../src/engine/text/tokenizer/load.ts";
import type { Session } from "../src/engine/program/backend.ts";
import { writeRecord, type Figure } from "./report/record.ts";

const MODELS = join(import.meta.dir, "../models/hearth");
const FIRST_SEED = 1_000_000_000; // training used smaller ones
const FIRST_COUNTED = 32;
const TYPES = ["f16", "q8_0", "q4_0"] as const;
/** Prints documents of the corpus until they have the wanted number of characters. */
const DOCUMENTS = `
import sys
from corpus import document
seed, wanted = int(sys.argv[1]), int(sys.argv[2])
while wanted > 0:
    text = document(seed)
    sys.stdout.write(text)
    seed, wanted = seed + 1, wanted - len(text)
`;

const { values: flags } = parseArgs({
  options: {
    texts: { type: "string", default: "96" },
    tokens: { type: "string", default: "1024" },
    level: { type: "string" },
    record: { type: "boolean", default: false },
  },
});
const [count, length] = [Number(flags.texts), Number(flags.tokens)];
const path = join(MODELS, "hearth.gguf");
const gguf = openGguf(path);
const program = loadProgram(gguf);
const tokenizer = loadTokenizer(gguf.metadata, path, gguf.texts);
const texts = Array.from({ length: count }, (_, i) => textAt(FIRST_SEED + 10_000 * i));
const backend = makeSimdBackend({ level: flags.level });

/** Mean cost of a text's tokens, by format and way of reading, in the order of `texts`. */
const costs = new Map<string, number[]>();
const figures: Figure[] = [];
for (const kvType of TYPES) {
  const options = { ctxLen: length, slots: 1, precise: false, threads: 0, cacheDir: undefined };
  const session = await backend.load(program, loadOptionsFor(program, { ...options, kvType }));
  for (const [how, each] of [
    ["prompts", length],
    ["steps", 1],
  ] as const) {
    const ours: number[] = [];
    for (const tokens of texts) ours.push(await costOf(session, tokens, each));
    costs.set(`${kvType} ${how}`, ours);
    report(`${kvType} cache, ${how}`, ours, costs.get(`f16 ${how}`)!);
  }
  session.close();
}
if (flags.record) writeRecord("kv-perplexity", { title: "Perplexity by the KV cache's format", figures });
process.exit(0);

async function costOf(session: Session, tokens: Int32Array, each: number): Promise<number> {
  let sum = 0;
  for (let start = 0; start < length; start += each) {
    const rows = [{ slot: 0, start, tokens: tokens.subarray(start, start + each), logits: "all" as const }];
    const logits = await session.run(rows);
    const size = logits.length / each;
    for (let row = 0; row < each; row++) {
      const [position, next] = [start + row, tokens[start + row + 1]];
      if (position < FIRST_COUNTED || next === undefined) continue;
      sum -= logProbability(logits.subarray(row * size, (row + 1) * size), next);
    }
  }
  return sum / (length - 1 - FIRST_COUNTED);
}

function report(what: string, ours: readonly number[], f16: readonly number[]): void {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const differences = ours.map((cost, i) => cost - f16[i]!);
  const more = mean(differences);
  const error = Math.sqrt(mean(differences.map((each) => (each - more) ** 2)) / (count - 1));
  const [perplexity, base] = [Math.exp(mean(ours)), Math.exp(mean(f16))];
  const percent = (value: number): string => (value * 100).toFixed(2);
  console.log(`${what.padEnd(20)} ${perplexity.toFixed(3)}, ${percent(perplexity / base - 1)} ± ${percent(error)} %`);
  if (ours === f16) return;
  const peer = { name: "an f16 cache", rounds: [base] };
  const goal = { of: "ratio" as const, atMost: 1.005 };
  figures.push({ what, measure: "perplexity", unit: "", ours: [perplexity], peer, error, goal });
}

function textAt(seed: number): Int32Array {
  const given = ["-c", DOCUMENTS, String(seed), String(8 * length)];
  const { stdout, stderr, success } = Bun.spawnSync(["python3", ...given], { cwd: join(MODELS, "recipe") });
  if (!success) throw new Error(`python3: ${stderr.toString()}`);
  const tokens = tokenizer.encode(stdout.toString(), { addSpecial: false, parseSpecial: true }).slice(0, length);
  if (tokens.length < length) throw new Error(`expected ${length} tokens, got ${tokens.length}`);
  return Int32Array.from(tokens);
}

function logProbability(logits: Float32Array, token: number): number {
  const max = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - max);
  return logits[token]! - max - Math.log(sum);
}
