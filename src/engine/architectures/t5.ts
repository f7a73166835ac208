/**
 * T5's encoder: norms before each block, scores that are not scaled, and a bias of scores by distance, which layers
 * share unless each has its own (UMT5). Semantics: src/models/t5encoder.cpp of llama.cpp, modeling_t5.py of
 * transformers.
 */
import type { DistanceBias, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { normSteps } from "./decoder.ts";
import { buffersOf, embedding, type Model } from "./model.ts";

/** Distance from which on all keys share a bucket. No GGUF key has it. */
const DISTANCE_MAX = 128;
/** Four times the number of published models. */
const BUCKETS_MAX = 128;

export function t5Encoder(model: Model): Step[] {
  const { x, last } = buffersOf(model);
  const count = model.keys.count("attention.relative_buckets_count", { min: 4, max: BUCKETS_MAX });
  const shared = distanceBias(model, 0, count);
  if (!shared) {
    const path = `${model.path}: tensor '${biasName(0)}.weight'`;
    throw new AppError("bad_file", `${path}: expected (${model.nHeads}, ${count}), got none`);
  }
  return [
    { op: "embed", out: x, table: embedding(model), scale: 1 },
    ...Array.from({ length: model.nLayers }, (_, layer) => {
      const bias = layer === 0 ? shared : (distanceBias(model, layer, count) ?? shared);
      return [...attention(model, layer, bias), ...feedForward(model, layer)];
    }).flat(),
    { op: "takeRows", out: last, x },
    ...normSteps(model, "rms", { out: last, x: last, name: "enc.output_norm" }),
    ...dense(model),
  ];
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

/** x += attention(norm(x)) */
function attention(model: Model, layer: number, bias: DistanceBias): Step[] {
  const { dim, nHeads, nKvHeads, headDim } = model;
  const { x, h, q, k, v, heads, y } = buffersOf(model);
  const blk = `enc.blk.${layer}`;
  const part = (name: string, outDim: number) => model.matrix(`${blk}.attn_${name}`, { inDim: dim, outDim });
  return [
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.attn_norm` }),
    { op: "linear", out: q, x: h, w: part("q", q.dim) },
    { op: "linear", out: k, x: h, w: part("k", k.dim) },
    { op: "linear", out: v, x: h, w: part("v", v.dim) },
    {
      op: "bidirectionalAttention",
      out: heads,
      q,
      k,
      v,
      nHeads,
      ...(nKvHeads !== nHeads && { nKvHeads }),
      headDim,
      scale: 1,
      bias,
    },
    { op: "linear", out: y, x: heads, w: model.matrix(`${blk}.attn_o`, { inDim: heads.dim, outDim: dim }) },
    { op: "add", out: x, a: x, b: y, scale: 1 },
  ];
}

/** x += mlp(norm(x)); as of version 1.1 the MLP has a gate. */
function feedForward(model: Model, layer: number): Step[] {
  const { dim, ffnDim } = model;
  const { x, h, y } = buffersOf(model);
  const blk = `enc.blk.${layer}`;
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

const biasName = (layer: number): string => `enc.blk.${layer}.attn_rel_b`;

/** The biases of a layer by distance, from its table of buckets; undefined if the layer has no table. */
function distanceBias(model: Model, layer: number, count: number): DistanceBias | undefined {
  const { nHeads } = model;
  const buckets = model.values(biasName(layer), nHeads, count);
  if (!buckets) return undefined;
  const width = 2 * DISTANCE_MAX + 1;
  const values = new Float32Array(nHeads * width);
  for (let i = 0; i < width; i++) {
    const bucket = bucketOf(i - DISTANCE_MAX, count);
    for (let head = 0; head < nHeads; head++) values[head * width + i] = buckets[bucket * nHeads + head]!;
  }
  return { values, far: DISTANCE_MAX };
}

/**
 * The bucket of a distance. Half of all buckets is for keys after the row. The first half of either part has a bucket
 * for each distance; the others share the rest by its logarithm, in float32 like the original.
 */
function bucketOf(distance: number, count: number): number {
  const half = Math.floor(count / 2);
  const base = distance > 0 ? half : 0;
  const exact = Math.floor(half / 2);
  const far = Math.abs(distance);
  if (far < exact) return base + far;
  const { fround } = Math;
  const share = fround(fround(Math.log(fround(far / exact))) / fround(Math.log(DISTANCE_MAX / exact)));
  return base + Math.min(half - 1, exact + Math.floor(fround(share * (half - exact))));
}
