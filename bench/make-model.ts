/**
 * Makes random-weight llama GGUFs of 1.2 B parameters (2048 dim, 16 layers, 32/8 heads, 8192 ffn, 128,256 tokens, tied
 * embedding), for measuring speed: random blocks with plausible scales, written directly in each type, in the mix of
 * llama.cpp's quantizer (llama_tensor_get_type, llama-quant.cpp). Their output is noise.
 *
 *   bun bench/make-model.ts [q4_0 q8_0 q4_k_m f16 …] [--size 1.2b] [--out FOLDER] [--vocabulary FILE.gguf]
 *
 * --vocabulary takes the tokenizer from a file, as many tokens as the embedding has rows.
 */
import { existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { floatToHalf } from "../src/engine/formats/half.ts";
import { makeRng, type Rng } from "../src/engine/text/rng.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import type { MetadataValue } from "../src/engine/formats/gguf/gguf.ts";
import { writeGguf, type WriteModel, type WriteTensor, type WriteValue } from "../src/engine/formats/files/write.ts";
import { quants } from "../src/engine/formats/quant/index.ts";
import type { Quant } from "../src/engine/formats/quant/quant.ts";

/** Llamas of 1.2 B and 8 B weights, and small ones: `two` has the rows of a real model in two layers. */
export const SHAPES = {
  tiny: { dim: 256, nLayers: 4, nHeads: 4, nKvHeads: 2, ffnDim: 768, vocabSize: 1024, ctxLen: 4096 },
  two: { dim: 1024, nLayers: 2, nHeads: 8, nKvHeads: 2, ffnDim: 2816, vocabSize: 2048, ctxLen: 4096 },
  /** Narrow, but with as many dispatches as a large model. */
  deep: { dim: 256, nLayers: 40, nHeads: 4, nKvHeads: 2, ffnDim: 256, vocabSize: 1024, ctxLen: 4096 },
  "135m": { dim: 576, nLayers: 30, nHeads: 9, nKvHeads: 3, ffnDim: 1536, vocabSize: 49_152, ctxLen: 8192 },
  "1.2b": { dim: 2048, nLayers: 16, nHeads: 32, nKvHeads: 8, ffnDim: 8192, vocabSize: 128_256, ctxLen: 131_072 },
  /** Six layers of Qwen 3 30B-A3B: 128 experts, 8 per row. */
  moe: {
    dim: 2048,
    nLayers: 6,
    nHeads: 32,
    nKvHeads: 4,
    headDim: 128,
    ffnDim: 768,
    experts: 128,
    expertsUsed: 8,
    vocabSize: 128_256,
    ctxLen: 32_768,
  },
  "8b": { dim: 4096, nLayers: 32, nHeads: 32, nKvHeads: 8, ffnDim: 14_336, vocabSize: 128_256, ctxLen: 131_072 },
} as const;
export type Size = keyof typeof SHAPES;
/** Standard deviation of the weights: activations keep their size from layer to layer. */
const DEVIATION = 0.02;
const CHUNK_BLOCKS = 32_768;

/** The type of each tensor: the quantizer gives more bits to the most sensitive ones. */
export const MIXES = {
  q4_0: (name: string) => (name === "token_embd.weight" ? quants.q6_K : quants.q4_0),
  q8_0: () => quants.q8_0,
  q4_k_m: (name: string, layer: number, nLayers: number) => {
    if (name === "token_embd.weight") return quants.q6_K;
    const wantsMore = /attn_v|ffn_down/.test(name);
    return wantsMore && usesMoreBits(layer, nLayers) ? quants.q6_K : quants.q4_K;
  },
  f16: () => quants.f16,
} as const satisfies Record<string, (name: string, layer: number, nLayers: number) => Quant>;

export type Mix = keyof typeof MIXES;

/** `use_more_bits`, llama-quant.cpp. */
function usesMoreBits(layer: number, nLayers: number): boolean {
  const eighth = Math.floor(nLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * nLayers) / 8) || (layer - eighth) % 3 === 2;
}

interface Variant {
  /** Number of layers to keep. */
  readonly layers?: number | undefined;
  /** File of the tokenizer. */
  readonly vocabulary?: string | undefined;
}

/** Path of the file of a mix, made if it is missing. */
export async function ensureModel(
  mix: Mix,
  folder: string,
  size: Size = "1.2b",
  { layers, vocabulary }: Variant = {},
): Promise<string> {
  const marks = [
    layers === undefined ? "" : `-${layers}-layers`,
    vocabulary ? `-${basename(vocabulary, ".gguf")}` : "",
  ];
  const path = join(folder, `random-${size}-${mix}${marks.join("")}.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const shape = { ...SHAPES[size], ...(layers !== undefined && { nLayers: layers }) };
  const own = modelOf(mix, { shape, name: `random ${size}` });
  const tokenizer = vocabulary === undefined ? {} : tokenizerOf(vocabulary, shape.vocabSize);
  await writeGguf(path, { ...own, metadata: { ...own.metadata, ...tokenizer } });
  return path;
}

/** The file's content; weights are made when they are written. */
export function modelOf(mix: Mix, { shape, name }: { shape: Shape; name: string }): WriteModel {
  return { metadata: metadataOf(shape, name), tensors: [...tensorsOf(mix, shape, makeRng(1))] };
}

type Shape = Readonly<Record<keyof (typeof SHAPES)["8b"], number>> & {
  readonly headDim?: number;
  readonly experts?: number;
  readonly expertsUsed?: number;
};

function metadataOf(shape: Shape, name: string): Record<string, WriteValue> {
  const { dim, nLayers, nHeads, nKvHeads, ffnDim, vocabSize, ctxLen, experts, expertsUsed = 0 } = shape;
  const { headDim = dim / nHeads } = shape;
  const arch = experts ? "qwen3moe" : "llama";
  return {
    "general.architecture": arch,
    "general.name": name,
    [`${arch}.context_length`]: { u32: ctxLen },
    [`${arch}.embedding_length`]: { u32: dim },
    [`${arch}.block_count`]: { u32: nLayers },
    [`${arch}.feed_forward_length`]: { u32: ffnDim },
    [`${arch}.attention.head_count`]: { u32: nHeads },
    [`${arch}.attention.head_count_kv`]: { u32: nKvHeads },
    [`${arch}.attention.layer_norm_rms_epsilon`]: { f32: 1e-5 },
    [`${arch}.rope.freq_base`]: { f32: 500_000 },
    [`${arch}.rope.dimension_count`]: { u32: headDim },
    [`${arch}.vocab_size`]: { u32: vocabSize },
    ...(experts && {
      [`${arch}.expert_count`]: { u32: experts },
      [`${arch}.expert_used_count`]: { u32: expertsUsed },
      [`${arch}.expert_feed_forward_length`]: { u32: ffnDim },
      [`${arch}.attention.key_length`]: { u32: headDim },
      [`${arch}.attention.value_length`]: { u32: headDim },
    }),
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "default",
    "tokenizer.ggml.tokens": vocabulary(vocabSize),
    "tokenizer.ggml.token_type": new Int32Array(vocabSize).fill(1), // LLAMA_TOKEN_TYPE_NORMAL
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.bos_token_id": { u32: vocabSize - 2 },
    "tokenizer.ggml.eos_token_id": { u32: vocabSize - 1 },
    "tokenizer.ggml.add_bos_token": false,
  };
}

function tokenizerOf(path: string, vocabSize: number): Record<string, WriteValue> {
  const { metadata } = openGguf(path);
  const keys = [...metadata].filter(([key]) => key.startsWith("tokenizer."));
  const pieces = metadata.get("tokenizer.ggml.tokens");
  if (!Array.isArray(pieces) || pieces.length !== vocabSize) throw new Error(`${path}: expected ${vocabSize} tokens`);
  const write = (value: MetadataValue): WriteValue =>
    typeof value === "number" || typeof value === "bigint" ? { u32: value } : value;
  return Object.fromEntries(keys.map(([key, value]) => [key, write(value)]));
}

/** One token per byte, as byte-level BPE writes them, then names that no text contains. */
function vocabulary(size: number): string[] {
  let unprintable = 256;
  const bytes = Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCodePoint(printable ? byte : unprintable++);
  });
  return [...bytes, ...Array.from({ length: size - 256 }, (_, i) => `<token ${i + 256}>`)];
}

function* tensorsOf(mix: Mix, shape: Shape, rng: Rng): Generator<WriteTensor> {
  const { dim, nLayers, nHeads, nKvHeads, ffnDim, vocabSize, experts, headDim = dim / nHeads } = shape;
  const kvDim = headDim * nKvHeads;
  const matrix = (name: string, layer: number, size: readonly [number, number, number?]): WriteTensor => {
    const quant = MIXES[mix](name, layer, nLayers);
    const [inDim, outDim, count = 1] = size;
    const blocks = (inDim * outDim * count) / quant.blockLen;
    return { name, shape: size.filter((each) => each !== undefined), quant, data: randomBlocks(quant, blocks, rng) };
  };
  const floats = (name: string, shape: readonly number[], value: () => number): WriteTensor => {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, value);
    return { name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
  };
  const norm = (name: string, width = dim): WriteTensor => floats(name, [width], () => 1);
  yield matrix("token_embd.weight", -1, [dim, vocabSize]);
  yield norm("output_norm.weight");
  for (let i = 0; i < nLayers; i++) {
    yield norm(`blk.${i}.attn_norm.weight`);
    yield norm(`blk.${i}.ffn_norm.weight`);
    yield matrix(`blk.${i}.attn_q.weight`, i, [dim, headDim * nHeads]);
    yield matrix(`blk.${i}.attn_k.weight`, i, [dim, kvDim]);
    yield matrix(`blk.${i}.attn_v.weight`, i, [dim, kvDim]);
    yield matrix(`blk.${i}.attn_output.weight`, i, [headDim * nHeads, dim]);
    if (experts) {
      yield norm(`blk.${i}.attn_q_norm.weight`, headDim);
      yield norm(`blk.${i}.attn_k_norm.weight`, headDim);
      const router = () => DEVIATION * (2 * rng.float() - 1);
      yield floats(`blk.${i}.ffn_gate_inp.weight`, [dim, experts], router);
      yield matrix(`blk.${i}.ffn_gate_exps.weight`, i, [dim, ffnDim, experts]);
      yield matrix(`blk.${i}.ffn_up_exps.weight`, i, [dim, ffnDim, experts]);
      yield matrix(`blk.${i}.ffn_down_exps.weight`, i, [ffnDim, dim, experts]);
      continue;
    }
    yield matrix(`blk.${i}.ffn_gate.weight`, i, [dim, ffnDim]);
    yield matrix(`blk.${i}.ffn_up.weight`, i, [dim, ffnDim]);
    yield matrix(`blk.${i}.ffn_down.weight`, i, [ffnDim, dim]);
  }
}

/** Offsets of a block's float16 scales, and their values for the wanted deviation of the weights. */
const SCALES: Readonly<Record<string, readonly (readonly [at: number, value: number])[]>> = {
  q4_0: [[0, DEVIATION / 4.6]], // uniform nibbles have a deviation of 4.6
  q8_0: [[0, DEVIATION / 74]], // uniform bytes have a deviation of 74
  q4_K: [
    [0, DEVIATION / 170],
    [2, (DEVIATION / 170) * 7.5],
  ], // the mean 6-bit scale is 31.5; minima centre the values
  q6_K: [[208, DEVIATION / 1370]], // values deviate by 18.5, signed scales by 74
};

function* randomBlocks(quant: Quant, blocks: number, rng: Rng): Generator<Uint8Array> {
  const scales = SCALES[quant.name];
  const random = new Uint32Array(Math.ceil((CHUNK_BLOCKS * quant.blockBytes) / 4));
  const bytes = new Uint8Array(random.buffer);
  let state = rng.uint32() | 1;
  for (let done = 0; done < blocks; done += CHUNK_BLOCKS) {
    const count = Math.min(CHUNK_BLOCKS, blocks - done);
    for (let i = 0; i < random.length; i++) {
      state ^= state << 13; // xorshift32: a gigabyte in two seconds
      state ^= state >>> 17;
      state ^= state << 5;
      random[i] = state;
    }
    if (scales) for (const [at, value] of scales) setHalves(bytes, { at, step: quant.blockBytes, count, value });
    else fillHalves(bytes, count * quant.blockLen);
    yield bytes.subarray(0, count * quant.blockBytes);
  }
}

type Halves = { at: number; step: number; count: number; value: number };

function setHalves(bytes: Uint8Array, { at, step, count, value }: Halves): void {
  const half = floatToHalf(value);
  for (let i = 0; i < count; i++) {
    bytes[at + i * step] = half & 255;
    bytes[at + i * step + 1] = half >> 8;
  }
}

/** Turns random 16-bit patterns into halves between −2 and 2 deviations. */
function fillHalves(bytes: Uint8Array, count: number): void {
  const patterns = new Uint16Array(bytes.buffer, 0, count);
  const table = Uint16Array.from({ length: 256 }, (_, i) => floatToHalf(((i - 127.5) / 74) * DEVIATION));
  for (let i = 0; i < count; i++) patterns[i] = table[patterns[i]! & 255]!;
}

if (import.meta.main) {
  const options = {
    out: { type: "string" },
    size: { type: "string", default: "1.2b" },
    vocabulary: { type: "string" },
  } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  if (!Object.hasOwn(SHAPES, values.size))
    throw new Error(`size '${values.size}': expected one of ${Object.keys(SHAPES)}`);
  const folder = values.out ?? join(import.meta.dir, "out");
  const wanted = positionals.length > 0 ? positionals : ["q4_0", "q8_0", "q4_k_m"];
  for (const mix of wanted) {
    if (!Object.hasOwn(MIXES, mix)) throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
    const { vocabulary } = values;
    console.log(await ensureModel(mix as Mix, folder, values.size as Size, { vocabulary })); // checked above
  }
}
