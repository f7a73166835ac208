/**
 * Rounding judged on trained weights: the weights quantized to each type by Hearth and by llama.cpp, and a KV cache of
 * each type. Each program runs its own file. The reference is llama.cpp with float32 weights and cache.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { quantizeFile } from "../../src/library/create/quantize.ts";
import { fileTypeId, parseFileType } from "../../src/library/create/quantize-mix.ts";
import type { Goal } from "../report/record.ts";
import { tidy, type Bench } from "./bench.ts";
import { Differences, type Difference } from "./compare.ts";
import type { LogitsFile } from "./peer.ts";
import { LOSSES } from "./recorded.ts";
import { openSide } from "./side.ts";

/** All types that Hearth writes. */
const TYPES = "F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 Q3_K_L Q3_K_M Q3_K_S Q2_K".split(
  " ",
);
const CACHES = ["f16", "q8_0", "q4_0"] as const;
/** Two sliding windows. */
const LENGTH = 1024;
const CHUNK = 128;
/** Maximum difference for float weights, in nats: Hearth multiplies prompts with them as 16-bit integers. */
const EQUAL_KL = 1e-4;

/** @param types of the files, and of the caches after a plus sign: `Q4_K_M,+q8_0`; empty: all */
export async function compareRounded(bench: Bench, types: readonly string[]): Promise<void> {
  const isWanted = (name: string): boolean => types.length === 0 || types.includes(name);
  const tokens = bench.encode(await Bun.file(LOSSES.text).text());
  const ids = tokens.slice(0, LENGTH);
  const cache = { ctxLen: LENGTH, kv: "f32" } as const;
  const reference = await bench.peer.logits(await bench.wide("f32"), [ids], cache);
  const text: Text = { bench, ids, reference };
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
  readonly ids: Int32Array;
  readonly reference: LogitsFile;
}

async function compareType(text: Text, type: string, folder: string): Promise<void> {
  const { bench } = text;
  const [ours, theirs] = [join(folder, "ours.gguf"), join(folder, "theirs.gguf")];
  await quantizeFile({ from: await bench.wide("f32"), to: ours, type });
  await bench.peer.quantize(await bench.wide("f32"), theirs, fileTypeId(parseFileType(type)));
  bench.tell({
    what: `quantized to ${type}`,
    measure: "tensors unlike llama.cpp's",
    unit: "",
    ours: [differences(ours, theirs)],
    goal: { of: "value", atMost: 0 },
  });
  tellBoth(text, `quantized to ${type}`, await ourScore(text, ours, "simd"), await theirScore(text, theirs, "f16"));
}

async function compareCache(text: Text, kv: (typeof CACHES)[number]): Promise<void> {
  const wide = await text.bench.wide("f32");
  const ours = await ourScore(text, wide, kv === "f16" ? "simd" : `simd+${kv}`);
  tellBoth(text, `float32 weights, ${kv} cache`, ours, await theirScore(text, wide, kv));
}

function tellBoth({ bench }: Text, what: string, ours: Difference, theirs: Difference): void {
  const versus = (value: number) => ({ name: "llama.cpp", rounds: [tidy(value)] });
  const ratio: Goal = { of: "ratio", atMost: 1.005 };
  const isExact = theirs.kl < EQUAL_KL;
  const common = { what: `${what}, ${ours.positions} positions` };
  bench.tell({
    ...common,
    measure: "perplexity",
    unit: "",
    ours: [tidy(ours.perplexity)],
    peer: versus(theirs.perplexity),
    goal: ratio,
  });
  bench.tell({
    ...common,
    measure: "KL divergence",
    unit: "millinats",
    ours: [tidy(1000 * ours.kl)],
    peer: versus(1000 * theirs.kl),
    goal: isExact ? { of: "value", atMost: 1000 * EQUAL_KL } : ratio,
  });
}

async function ourScore({ ids, reference, bench }: Text, file: string, name: string): Promise<Difference> {
  const side = await openSide(file, name, { ctxLen: LENGTH, threads: bench.threads });
  const sum = new Differences(side.vocabSize);
  let at = 0;
  await side.logits(ids, async (rows) => {
    const count = rows.length / side.vocabSize;
    sum.add(rows, await reference.read(0, at, count), ids.subarray(at + 1));
    at += count;
  });
  side.close();
  return sum.result();
}

async function theirScore({ bench, ids, reference }: Text, file: string, kv: "f16" | "q8_0" | "q4_0") {
  const theirs = await bench.peer.logits(file, [ids], { ctxLen: LENGTH, kv });
  const sum = new Differences(bench.tokenizer.vocabSize);
  for (let at = 0; at < ids.length; at += CHUNK) {
    const [got, expected] = await Promise.all([theirs.read(0, at, CHUNK), reference.read(0, at, CHUNK)]);
    sum.add(got, expected, ids.subarray(at + 1));
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
