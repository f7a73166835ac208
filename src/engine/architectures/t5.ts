/**
 * T5: norms before each block, scores that are not scaled, and a bias of scores by distance, which layers share unless
 * each has its own (UMT5). The encoder alone is `t5encoder`. In the whole model, `t5`, it reads the prompt, and the
 * decoder attends to its rows. Semantics: src/models/t5.cpp of llama.cpp, modeling_t5.py of transformers.
 */
import type { MemoryProgram } from "../program/backend.ts";
import type { DistanceBias, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { decoder, normSteps } from "./decoder.ts";
import { LAYERS_MAX } from "./hparams.ts";
import { buffersOf, embedding, type Model } from "./model.ts";

type Side = "enc" | "dec";

/** Distance from which on all keys share a bucket. No GGUF key has it. */
const DISTANCE_MAX = 128;
/** Four times the number of published models. */
const BUCKETS_MAX = 128;

/** Bounds of the longest prompt, whose keys and values each slot has room for: that of any context, and 8 · 512. */
const [PROMPT_MIN, PROMPT_MAX] = [4, 4096];
const promptRows = ({ ctxLen }: Model): number => Math.max(PROMPT_MIN, Math.min(ctxLen, PROMPT_MAX));

const ID_MAX = 2 ** 24;

export function t5Encoder(model: Model): Step[] {
  return [...encode(model), ...dense(model)];
}

function encode(model: Model): Step[] {
  const { x, last } = buffersOf(model);
  const biases = distanceBiases(model, "enc");
  return [
    { op: "embed", out: x, table: embedding(model), scale: 1 },
    ...Array.from({ length: model.nLayers }, (_, layer) => [
      ...selfAttention(model, { side: "enc", layer, bias: biases[layer]! }),
      ...feedForward(model, `enc.blk.${layer}`),
    ]).flat(),
    { op: "takeRows", out: last, x },
    ...normSteps(model, "rms", { out: last, x: last, name: "enc.output_norm" }),
  ];
}

/** The decoder of the whole model, whose rows attend to the encoder's. */
export function t5(model: Model): Step[] {
  const side = decoderSide(model);
  const biases = distanceBiases(side, "dec");
  const block = (layer: number): Step[] => [
    ...selfAttention(side, { side: "dec", layer, bias: biases[layer]! }),
    ...crossAttention(side, layer),
    ...feedForward(side, `dec.blk.${layer}`),
  ];
  // a model whose embedding is the output was trained with smaller states there; llama.cpp leaves this factor out
  const logitScale = side.has("output.weight") ? 1 : side.dim ** -0.5;
  return decoder(side, { block, outputNorm: "dec.output_norm", logitScale });
}

/** Keys and values of the encoder's rows, for all layers of the decoder. */
export function t5Memory(model: Model): MemoryProgram {
  const { dim, nLayers, nKvHeads, headDim } = decoderSide(model);
  const { h, k, v } = buffersOf(model);
  const steps = Array.from({ length: nLayers }, (_, layer): Step[] => {
    const matrix = (name: string) => model.matrix(`dec.blk.${layer}.cross_attn_${name}`, { inDim: dim, outDim: k.dim });
    return [
      { op: "linear", out: k, x: h, w: matrix("k") },
      { op: "linear", out: v, x: h, w: matrix("v") },
      { op: "remember", k, v, layer, nKvHeads, headDim },
    ];
  });
  return { rows: promptRows(model), steps: [{ op: "input", out: h }, ...steps.flat()] };
}

/** The encoder, and the id that begins an answer. */
export function t5Reader(model: Model): { readonly steps: Step[]; readonly start: number } {
  const start = model.keys.count("decoder_start_token_id", { min: 0, max: ID_MAX, fallback: 0 });
  if (start < model.embeddedTokens) return { steps: encode(model), start };
  const expected = `an id below ${model.embeddedTokens}`;
  const key = `${model.keys.arch}.decoder_start_token_id`;
  throw new AppError("bad_file", `${model.path}: '${key}': expected ${expected}, got ${start}`);
}

/** The model with the number of the decoder's layers. */
function decoderSide(model: Model): Model {
  const { keys, nLayers: fallback } = model;
  return { ...model, nLayers: keys.count("decoder_block_count", { min: 1, max: LAYERS_MAX, fallback }) };
}

/** The matrix that sentence-transformers applies after the pooling, if the file has it. Linear steps may come first. */
function dense(model: Model): Step[] {
  const { dim: inDim } = model;
  const outDim = model.rows("dense_2");
  if (outDim === undefined) return [];
  const { last } = buffersOf(model);
  return [
    { op: "linear", out: { name: "dense", dim: outDim }, x: last, ...model.linear("dense_2", { inDim, outDim }) },
  ];
}

interface SelfAttention {
  readonly side: Side;
  readonly layer: number;
  readonly bias: DistanceBias;
}

/** x += attention(norm(x)), in both directions in the encoder. */
function selfAttention(model: Model, { side, layer, bias }: SelfAttention): Step[] {
  const { nHeads, nKvHeads, headDim } = model;
  const { x, h, q, k, v, heads, y } = buffersOf(model);
  const blk = `${side}.blk.${layer}`;
  const part = projections(model, `${blk}.attn`);
  const same = { out: heads, q, k, v, nHeads, headDim, scale: 1, bias };
  return [
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.attn_norm` }),
    { op: "linear", out: q, x: h, w: part.in("q", q.dim) },
    { op: "linear", out: k, x: h, w: part.in("k", k.dim) },
    { op: "linear", out: v, x: h, w: part.in("v", v.dim) },
    side === "enc"
      ? { op: "bidirectionalAttention", ...same, ...(nKvHeads !== nHeads && { nKvHeads }) }
      : { op: "attention", ...same, layer, nKvHeads, window: 0, softCap: 0, rope: undefined },
    { op: "linear", out: y, x: heads, w: part.out() },
    { op: "add", out: x, a: x, b: y, scale: 1 },
  ];
}

/** x += attention of norm(x) to the encoder's rows */
function crossAttention(model: Model, layer: number): Step[] {
  const { nHeads, nKvHeads, headDim } = model;
  const { x, h, q, heads, y } = buffersOf(model);
  const blk = `dec.blk.${layer}`;
  const part = projections(model, `${blk}.cross_attn`);
  // old files have such a table, which neither llama.cpp nor transformers reads
  model.values(`${blk}.cross_attn_rel_b`, nHeads, bucketCount(model));
  const rows = promptRows(model);
  return [
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.cross_attn_norm` }),
    { op: "linear", out: q, x: h, w: part.in("q", q.dim) },
    { op: "crossAttention", out: heads, q, layer, nHeads, nKvHeads, headDim, scale: 1, rows },
    { op: "linear", out: y, x: heads, w: part.out() },
    { op: "add", out: x, a: x, b: y, scale: 1 },
  ];
}

function projections(model: Model, name: string) {
  const { dim } = model;
  const { heads } = buffersOf(model);
  return {
    in: (part: string, outDim: number): Weight => model.matrix(`${name}_${part}`, { inDim: dim, outDim }),
    out: (): Weight => model.matrix(`${name}_o`, { inDim: heads.dim, outDim: dim }),
  };
}

/** x += mlp(norm(x)); as of version 1.1 the MLP has a gate. */
function feedForward(model: Model, blk: string): Step[] {
  const { dim, ffnDim } = model;
  const { x, h, y } = buffersOf(model);
  const wide = (name: string) => model.matrix(`${blk}.ffn_${name}`, { inDim: dim, outDim: ffnDim });
  const up = wide("up");
  const down = model.matrix(`${blk}.ffn_down`, { inDim: ffnDim, outDim: dim });
  const gate = model.has(`${blk}.ffn_gate.weight`) ? wide("gate") : undefined;
  return [
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.ffn_norm` }),
    gate
      ? { op: "gatedMlp", out: y, x: h, gate, up, down, act: "gelu" }
      : { op: "mlp", out: y, x: h, up, down, act: "relu" },
    { op: "add", out: x, a: x, b: y, scale: 1 },
  ];
}

/** The biases of each layer. Layers without a table share the first layer's. */
function distanceBiases(model: Model, side: Side): DistanceBias[] {
  const count = bucketCount(model);
  const own = (layer: number): DistanceBias | undefined => distanceBias(model, { side, layer, count });
  const shared = own(0);
  if (!shared) {
    const path = `${model.path}: tensor '${biasName(side, 0)}.weight'`;
    throw new AppError("bad_file", `${path}: expected (${model.nHeads}, ${count}), got none`);
  }
  return Array.from({ length: model.nLayers }, (_, layer) => (layer === 0 ? shared : (own(layer) ?? shared)));
}

const bucketCount = ({ keys }: Model): number =>
  keys.count("attention.relative_buckets_count", { min: 4, max: BUCKETS_MAX });

const biasName = (side: Side, layer: number): string => `${side}.blk.${layer}.attn_rel_b`;

/** The biases of a layer by distance, from its table of buckets; undefined if the layer has no table. */
function distanceBias(
  model: Model,
  { side, layer, count }: { side: Side; layer: number; count: number },
): DistanceBias | undefined {
  const { nHeads } = model;
  const buckets = model.values(biasName(side, layer), nHeads, count);
  if (!buckets) return undefined;
  const width = 2 * DISTANCE_MAX + 1;
  const values = new Float32Array(nHeads * width);
  for (let i = 0; i < width; i++) {
    const bucket = bucketOf(i - DISTANCE_MAX, { count, side });
    for (let head = 0; head < nHeads; head++) values[head * width + i] = buckets[bucket * nHeads + head]!;
  }
  return { values, far: DISTANCE_MAX };
}

/**
 * The bucket of a distance. In the encoder, half of all buckets is for keys after the row; the decoder sees no such
 * keys. The first half of either part has a bucket for each distance; the others share the rest by its logarithm, in
 * float32 like the original.
 */
function bucketOf(distance: number, { count, side }: { count: number; side: Side }): number {
  const half = side === "enc" ? Math.floor(count / 2) : count;
  const base = side === "enc" && distance > 0 ? half : 0;
  const exact = Math.floor(half / 2);
  const far = side === "enc" ? Math.abs(distance) : Math.max(0, -distance);
  if (far < exact) return base + far;
  const { fround } = Math;
  const share = fround(fround(Math.log(fround(far / exact))) / fround(Math.log(DISTANCE_MAX / exact)));
  return base + Math.min(half - 1, exact + Math.floor(fround(share * (half - exact))));
}
