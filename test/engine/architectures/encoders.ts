/**
 * BERT-like models made in code from seeded random numbers, with a WordPiece vocabulary of their own. `embeddings/`
 * holds llama.cpp's vectors for the tiny ones, written by bench/record-embeddings.ts.
 */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { gaussian } from "../../conformance/weights.ts";

export interface EncoderSpec {
  readonly arch: "bert" | "nomic-bert";
  readonly dim: number;
  readonly nLayers: number;
  readonly nHeads: number;
  readonly ffnDim: number;
  readonly ctxLen: number;
  /** Pieces of the vocabulary. */
  readonly vocabSize: number;
  /** `llama_pooling_type`: 1 mean, 2 cls, 3 last; undefined: absent in the file. */
  readonly pooling: 1 | 2 | 3 | undefined;
  /** The type of the matrices. */
  readonly quant: "f32" | "f16" | "q8_0";
}

const tiny = { dim: 64, nLayers: 2, nHeads: 4, ffnDim: 96, ctxLen: 64, vocabSize: 160, quant: "f32" } as const;

export const encoders = {
  "bert-mean": { ...tiny, arch: "bert", pooling: 1 },
  "bert-cls": { ...tiny, arch: "bert", pooling: 2 },
  "nomic-mean": { ...tiny, arch: "nomic-bert", pooling: 1 },
} as const satisfies Record<string, EncoderSpec>;

/** The texts of the recorded embeddings. */
export const RECORDED_TEXTS: readonly string[] = [
  "hello, world",
  "a",
  "The quick brown fox jumps over 13 lazy dogs!",
  "",
];

const SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const CHARACTERS = [..."abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"];
const SYLLABLES = ["the", "lo", "wor", "qui", "ck", "bro", "wn", "jum", "ps", "over", "la", "zy", "dog", "ing", "er"];

/** A model as in a file. Its tensors are made one by one, on demand. */
export function makeEncoder(spec: EncoderSpec): WriteModel {
  const { arch, dim, nLayers, nHeads, ffnDim, ctxLen, pooling } = spec;
  const u32 = (value: number): WriteValue => ({ u32: value });
  const own: Record<string, WriteValue> = {
    context_length: u32(ctxLen),
    embedding_length: u32(dim),
    block_count: u32(nLayers),
    feed_forward_length: u32(ffnDim),
    "attention.head_count": u32(nHeads),
    "attention.layer_norm_epsilon": { f32: 1e-12 },
    "attention.causal": false,
    ...(pooling && { pooling_type: u32(pooling) }),
    ...(arch === "nomic-bert" && { "rope.freq_base": { f32: 1000 } }),
  };
  const metadata: Record<string, WriteValue> = { "general.architecture": arch, ...vocabulary(spec.vocabSize) };
  for (const [key, value] of Object.entries(own)) metadata[`${arch}.${key}`] = value;
  return { metadata, tensors: tensorsOf(spec) };
}

/** Specials, characters, syllables, then words without a meaning. */
function vocabulary(size: number): Record<string, WriteValue> {
  const pieces = [...SPECIALS];
  for (const piece of [...CHARACTERS, ...SYLLABLES]) pieces.push(`▁${piece}`, piece);
  const taken = new Set(pieces);
  for (let i = 0; pieces.length < size; i++) if (!taken.has(`▁${wordOf(i)}`)) pieces.push(`▁${wordOf(i)}`);
  const types = Int32Array.from(pieces, (_, id) => (id < SPECIALS.length ? 3 : 1)); // CONTROL, NORMAL
  return {
    "tokenizer.ggml.model": "bert",
    "tokenizer.ggml.pre": "bert-bge",
    "tokenizer.ggml.tokens": pieces.slice(0, size),
    "tokenizer.ggml.token_type": types.slice(0, size),
    "tokenizer.ggml.token_type_count": { u32: 2 },
    "tokenizer.ggml.padding_token_id": { u32: 0 },
    "tokenizer.ggml.unknown_token_id": { u32: 1 },
    "tokenizer.ggml.bos_token_id": { u32: 2 },
    "tokenizer.ggml.cls_token_id": { u32: 2 },
    "tokenizer.ggml.seperator_token_id": { u32: 3 },
    "tokenizer.ggml.eos_token_id": { u32: 3 },
    "tokenizer.ggml.mask_token_id": { u32: 4 },
  };
}

/** The i-th word: three letters and more. */
export function wordOf(i: number): string {
  let word = "";
  for (let rest = i + 26 ** 2; rest > 0; rest = Math.floor(rest / 26)) word += String.fromCharCode(97 + (rest % 26));
  return word;
}

function tensorsOf(spec: EncoderSpec): WriteTensor[] {
  const { arch, dim, nLayers, ffnDim, ctxLen, vocabSize } = spec;
  const tensors: WriteTensor[] = [];
  const add = (name: string, shape: readonly number[], { mean = 0, size }: { mean?: number; size: number }): void => {
    const quant = shape.length === 1 || /position|types/.test(name) ? quants.f32 : quants[spec.quant];
    const data = {
      *[Symbol.iterator]() {
        const rng = makeRng(Bun.hash.crc32(name));
        const row = new Float32Array(shape[0]!);
        const bytes = new Uint8Array((row.length / quant.blockLen) * quant.blockBytes);
        for (let rows = shape[1] ?? 1; rows > 0; rows--) {
          for (let i = 0; i < row.length; i++) row[i] = mean + size * gaussian(rng);
          quant.quantize!(row, bytes); // these three have it
          yield bytes;
        }
      },
    };
    tensors.push({ name, shape, quant, data });
  };
  const norm = (name: string): void => {
    add(`${name}.weight`, [dim], { mean: 1, size: 0.2 });
    add(`${name}.bias`, [dim], { size: 0.2 });
  };
  const matrix = (name: string, [inDim, outDim]: readonly [number, number], bias: boolean): void => {
    add(`${name}.weight`, [inDim, outDim], { size: 1.3 / Math.sqrt(inDim) });
    if (bias) add(`${name}.bias`, [outDim], { size: 0.2 });
  };
  const isBert = arch === "bert";
  add("token_embd.weight", [dim, vocabSize], { size: 1 });
  add("token_types.weight", [dim, 2], { size: 0.5 });
  if (isBert) add("position_embd.weight", [dim, ctxLen], { size: 0.5 });
  norm("token_embd_norm");
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    if (isBert) for (const part of ["q", "k", "v"]) matrix(`${blk}.attn_${part}`, [dim, dim], true);
    else matrix(`${blk}.attn_qkv`, [dim, 3 * dim], false);
    matrix(`${blk}.attn_output`, [dim, dim], isBert);
    norm(`${blk}.attn_output_norm`);
    if (!isBert) matrix(`${blk}.ffn_gate`, [dim, ffnDim], false);
    matrix(`${blk}.ffn_up`, [dim, ffnDim], isBert);
    matrix(`${blk}.ffn_down`, [ffnDim, dim], isBert);
    norm(`${blk}.layer_output_norm`);
  }
  return tensors;
}
