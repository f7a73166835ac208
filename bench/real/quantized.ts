/**
 * Rounding judged on trained weights: the weights quantized to each type by Hearth and by llama.cpp, and a KV cache of
 * each type. The reference is llama.cpp with float32 weights and cache.
 *
 * A file is judged by one reader, llama.cpp, with a goal. Each program also reads the same file, without a goal: that
 * compares the programs, as the part `logits` does. They round activations to 8 bits, and which of two such KL
 * divergences is the larger is chance: the standard error of their ratio is 0.08 in 1,024 positions. Squared errors of
 * logits, compared position by position, say it with a tenth of that.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { quantizeFile } from "../../src/library/create/quantize.ts";
import { fileTypeId, parseFileType } from "../../src/library/create/quantize-mix.ts";
import type { Goal } from "../report/record.ts";
import { tidy, type Bench } from "./bench.ts";
import { Differences, ratioOfMeans, ratioOfSums, type Difference } from "./compare.ts";
import type { LogitsFile } from "./peer.ts";
import { LOSSES } from "./recorded.ts";
import { openSide } from "./side.ts";

/** All types that Hearth writes. */
const TYPES = "F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 Q3_K_L Q3_K_M Q3_K_S Q2_K".split(
  " ",
);
const CACHES = ["f16", "q8_0", "q4_0"] as const;
/** Two sliding windows of attention. */
const LENGTH = 1024;
/** Parts of the text, each read for itself. */
const PARTS = 4;
const CHUNK = 128;
/** Maximum difference for float weights, in nats: Hearth multiplies prompts with them as 16-bit integers. */
const EQUAL_KL = 1e-4;
const SAME: Goal = { of: "ratio", atMost: 1.005 };

/** @param types of the files, and of the caches after a plus sign: `Q4_K_M,+q8_0`; empty: all */
export async function compareRounded(bench: Bench, types: readonly string[]): Promise<void> {
  const isWanted = (name: string): boolean => types.length === 0 || types.includes(name);
  const tokens = bench.encode(await Bun.file(LOSSES.text).text());
  const parts = Array.from({ length: PARTS }, (_, i) => {
    const start = 1 + i * (LENGTH - 1);
    return Int32Array.of(tokens[0]!, ...tokens.subarray(start, start + LENGTH - 1));
  });
  const cache = { ctxLen: LENGTH, kv: "f32" } as const;
  const reference = await bench.peer.logits(await bench.wide("f32"), parts, cache);
  const text: Text = { bench, parts, reference };
  const folder = mkdtempSync(join(tmpdir(), "hearth-real-"));
  try {
    for (const kv of CACHES.filter((type) => isWanted(`+${type}`))) await compareCache(text, kv);
    for (const type of TYPES.filter(isWanted)) await compareType(text, type, folder);
  } finally {
    rmSync(folder, { recursive: true });
    reference.remove();
  }
}

interface Text {
  readonly bench: Bench;
  readonly parts: readonly Int32Array[];
  readonly reference: LogitsFile;
}

async function compareType(text: Text, type: string, folder: string): Promise<void> {
  const { bench } = text;
  const [ours, theirs] = [join(folder, "ours.gguf"), join(folder, "theirs.gguf")];
  await quantizeFile({ from: await bench.wide("f32"), to: ours, type });
  await bench.peer.quantize(await bench.wide("f32"), theirs, fileTypeId(parseFileType(type)));
  const what = `quantized to ${type}`;
  const unlike = differences(ours, theirs);
  const goal = { of: "value", atMost: 0 } as const;
  bench.tell({ what, measure: "tensors unlike llama.cpp's", unit: "", ours: [unlike], goal });
  const scored = await theirScore(text, theirs, "f16");
  const judged = unlike === 0 ? scored : await theirScore(text, ours, "f16");
  tellBoth(text, `${what}, both read by llama.cpp`, judged, scored);
  tellBoth(text, `${what}, each by its program`, await ourScore(text, ours, "simd"), scored, {});
}

async function compareCache(text: Text, kv: (typeof CACHES)[number]): Promise<void> {
  const wide = await text.bench.wide("f32");
  const ours = await ourScore(text, wide, kv === "f16" ? "simd" : `simd+${kv}`);
  tellBoth(text, `float32 weights, ${kv} cache`, ours, await theirScore(text, wide, kv));
}

/** @param judged the goal of all figures; none: they are only told */
function tellBoth(
  { bench }: Text,
  what: string,
  ours: Difference,
  theirs: Difference,
  judged: { readonly goal?: Goal } = { goal: SAME },
): void {
  const versus = (value: number) => ({ name: "llama.cpp", rounds: [tidy(value)] });
  const isExact = theirs.kl < EQUAL_KL;
  const common = { what: `${what}, ${ours.positions} positions` };
  bench.tell({
    ...common,
    measure: "perplexity",
    unit: "",
    ours: [tidy(ours.perplexity)],
    peer: versus(theirs.perplexity),
    error: tidy(ratioOfMeans(ours.each.loss, theirs.each.loss).error),
    ...judged,
  });
  bench.tell({
    ...common,
    measure: "KL divergence",
    unit: "millinats",
    ours: [tidy(1000 * ours.kl)],
    peer: versus(1000 * theirs.kl),
    ...(isExact
      ? { goal: { of: "value", atMost: 1000 * EQUAL_KL } }
      : { error: tidy(ratioOfSums(ours.each.kl, theirs.each.kl).error), ...judged }),
  });
  if (isExact || ours === theirs) return;
  const [a, b] = [ours, theirs].map(({ each }) => each.error.map(Math.log));
  bench.tell({
    ...common,
    measure: "squared error of logits, geometric mean",
    unit: "",
    ours: [tidy(Math.exp(mean(a!)))],
    peer: versus(Math.exp(mean(b!))),
    error: tidy(ratioOfMeans(a!, b!).error),
    ...judged,
  });
}

const mean = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0) / list.length;

async function ourScore({ parts, reference, bench }: Text, file: string, name: string): Promise<Difference> {
  const side = await openSide(file, name, { ctxLen: LENGTH, threads: bench.threads });
  const sum = new Differences(side.vocabSize);
  for (const [i, ids] of parts.entries()) {
    let at = 0;
    await side.logits(ids, async (rows) => {
      const count = rows.length / side.vocabSize;
      sum.add(rows, await reference.read(i, at, count), ids.subarray(at + 1));
      at += count;
    });
  }
  side.close();
  return sum.result();
}

async function theirScore({ bench, parts, reference }: Text, file: string, kv: "f16" | "q8_0" | "q4_0") {
  const theirs = await bench.peer.logits(file, parts, { ctxLen: LENGTH, kv });
  const sum = new Differences(bench.tokenizer.vocabSize);
  for (const [i, ids] of parts.entries()) {
    for (let at = 0; at < LENGTH; at += CHUNK) {
      const [got, expected] = await Promise.all([theirs.read(i, at, CHUNK), reference.read(i, at, CHUNK)]);
      sum.add(got, expected, ids.subarray(at + 1));
    }
  }
  theirs.remove();
  return sum.result();
}

/** Tensors that only one file has, or that differ in type or bytes. */
function differences(...paths: [string, string]): number {
  const [ours, theirs] = [openGguf(paths[0]), openGguf(paths[1])];
  const names = new Set([...ours.tensors.keys(), ...theirs.tensors.keys()]);
  const isEqual = (name: string): boolean =>
    ours.tensors.get(name)?.quant === theirs.tensors.get(name)?.quant &&
    Buffer.compare(ours.read(name), theirs.read(name)) === 0;
  const count = [...names].filter((name) => !isEqual(name)).length;
  ours.close();
  theirs.close();
  return count;
}
