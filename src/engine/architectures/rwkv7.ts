/**
 * RWKV 7 (Goose), and Qwen 2 with such layers in place of attention (ARWKV): a state that decays by channel and forgets
 * the old value of a key. Semantics: src/models/rwkv7-base.cpp, rwkv7.cpp and arwkv7.cpp of llama.cpp.
 */
import type { Activation, Buf, Step, Weight } from "../program/step.ts";
import { decoder, feedForward, sequentialBlock } from "./decoder.ts";
import { buffersOf, type Model } from "./model.ts";
import { addBonus, buffersOfRwkv, checkShifts, copy, embeddingNorm, headNorm, headsOf, mix } from "./rwkv.ts";
import { project, shift, vectorsOf, type Heads } from "./rwkv.ts";

/** Mixtures of a row and the previous one, in the order of the file; the last one is the gate's. */
const MIXTURES = ["r", "w", "k", "v", "a", "g"] as const;
type Mixture = (typeof MIXTURES)[number];
const RANK_MAX = 4096;
/** The largest decay is exp(−e^−½). */
const BOUND = -0.606531;
/** The square of 1e-12, ggml's minimum length of a vector. */
const KEY_EPS = 1e-24;

export function rwkv7(model: Model): Step[] {
  checkShifts(model, 2);
  return decoder(model, {
    norm: "layer",
    start: embeddingNorm(model),
    block: (layer) =>
      sequentialBlock(model, layer, {
        norm: "layer",
        ffnNorm: "attn_norm_2",
        attention: timeMix(model, layer),
        ffn: channelMix(model, layer),
      }),
  });
}

export function arwkv7(model: Model): Step[] {
  checkShifts(model, 1);
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: timeMix(model, layer),
        ffn: feedForward(model, layer, { act: "silu", bare: true }),
      }),
  });
}

/** By vector: the key of the rank of its low-rank product. */
const RANKS = { w: "decay", a: "iclr", v: "value_residual_mix", g: "gate" } as const;

/** Low-rank product: `time_mix_N1` times `mixed`, act, then times `time_mix_N2`. */
function lowRank(
  model: Model,
  name: keyof typeof RANKS,
  { blk, out, b, act }: { blk: string; out: Buf; b?: Weight; act?: Activation },
): Step[] {
  const { mixed } = buffersOfRwkv(model);
  const rank = model.keys.count(`attention.${RANKS[name]}_lora_rank`, { min: 1, max: RANK_MAX });
  const low = { name: `rwkv.low.${name}`, dim: rank };
  return [
    project(model, `${blk}.time_mix_${name}1`, { out: low, x: mixed }),
    ...(act ? [{ op: "activate", x: low, act } as const] : []),
    project(model, `${blk}.time_mix_${name}2`, { out, x: low, b }),
  ];
}

/** Steps that compute y from h. */
function timeMix(model: Model, layer: number): Step[] {
  const { y } = buffersOf(model);
  const { r, w, k, v, out, gate, mixed } = buffersOfRwkv(model);
  const blk = `blk.${layer}`;
  const heads = headsOf(model);
  const isGated = model.has(`${blk}.time_mix_g1.weight`);
  if (!isGated) model.keys.count("attention.gate_lora_rank", { min: 0, max: RANK_MAX, fallback: 0 });
  const amounts = vectorsOf(model, `${blk}.time_mix_lerp_fused`, isGated ? MIXTURES.length : MIXTURES.length - 1);
  const mixture = (name: Mixture): Step[] => mix(model, amounts[MIXTURES.indexOf(name)]!); // one per mixture
  const w0 = model.vector(`${blk}.time_mix_w0`, model.dim);
  const rk = model.vector(`${blk}.time_mix_r_k`, model.dim);
  const [a, b] = [
    { name: "rwkv.a", dim: model.dim },
    { name: "rwkv.b", dim: model.dim },
  ];
  return [
    ...shift(model, layer),
    ...mixture("r"),
    project(model, `${blk}.time_mix_receptance`, { out: r, x: mixed }),
    ...mixture("w"),
    ...lowRank(model, "w", { blk, out: w, b: w0, act: "tanh" }),
    ...mixture("k"),
    project(model, `${blk}.time_mix_key`, { out: k, x: mixed }),
    ...mixture("v"),
    ...values(model, layer),
    ...mixture("a"),
    ...rates(model, blk, { a, b, heads }),
    ...(isGated ? [...mixture("g"), ...lowRank(model, "g", { blk, out: gate, act: "sigmoid" })] : []),
    { op: "wkv", out, r, w, k, v, a, b, layer, ...heads, nKeyHeads: heads.nHeads, bound: BOUND },
    ...(model.has(`${blk}.time_mix_ln.weight`) ? [headNorm(model, blk, heads)] : []),
    ...addBonus(model, rk, heads),
    ...(isGated ? [{ op: "multiply", out, a: out, b: gate } as const] : []),
    project(model, `${blk}.time_mix_output`, { out: y, x: out }),
  ];
}

/**
 * Values of `mixed`; from the second layer on, interpolated with the first layer's values by a weight that depends on
 * the row.
 */
function values(model: Model, layer: number): Step[] {
  const { dim } = model;
  const { v, mixed } = buffersOfRwkv(model);
  const blk = `blk.${layer}`;
  const own = project(model, `${blk}.time_mix_value`, { out: v, x: mixed });
  const [first, away, amount] = ["first", "away", "amount"].map((name) => ({ name: `rwkv.${name}`, dim })) as [
    Buf,
    Buf,
    Buf,
  ]; // one per name
  if (layer === 0) {
    skipValueMix(model);
    return [own, copy(first, v)];
  }
  return [
    own,
    ...lowRank(model, "v", { blk, out: amount, b: model.vector(`${blk}.time_mix_v0`, dim) }),
    { op: "add", out: away, a: first, b: v, scale: -1 },
    { op: "multiply", out: away, a: away, b: amount, act: "sigmoid" },
    { op: "add", out: v, a: v, b: away, scale: 1 },
  ];
}

/** Files name tensors of the first layer that stay unused; their shapes vary. */
function skipValueMix(model: Model): void {
  const { dim } = model;
  const rank = model.rows("blk.0.time_mix_v1");
  if (rank === undefined) return;
  model.vector("blk.0.time_mix_v0", dim);
  model.matrix("blk.0.time_mix_v1", { inDim: dim, outDim: rank });
  model.matrix("blk.0.time_mix_v2", { inDim: rank, outDim: dim });
}

/** a: keys of length 1; b: a times the rate at which the state forgets. Changes k by that rate. */
function rates(model: Model, blk: string, { a, b, heads }: { a: Buf; b: Buf; heads: Heads }): Step[] {
  const { k, mixed } = buffersOfRwkv(model);
  const vector = (name: string): Weight => model.vector(`${blk}.time_mix_${name}`, model.dim);
  return [
    ...lowRank(model, "a", { blk, out: b, b: vector("a0") }),
    { op: "activate", x: b, act: "sigmoid" },
    copy(a, k),
    { op: "multiplyVector", x: a, w: vector("k_k") },
    { op: "l2Norm", out: a, x: a, run: heads.headDim, eps: KEY_EPS },
    // k += k_a ⊙ k ⊙ (rate − 1)
    { op: "multiply", out: mixed, a: k, b },
    { op: "add", out: mixed, a: mixed, b: k, scale: -1 },
    { op: "multiplyVector", x: mixed, w: vector("k_a") },
    { op: "add", out: k, a: k, b: mixed, scale: 1 },
    { op: "multiply", out: b, a, b },
  ];
}

/** The MLP, from h to y. */
function channelMix(model: Model, layer: number): Step[] {
  const { dim, ffnDim } = model;
  const { y } = buffersOf(model);
  const { mixed } = buffersOfRwkv(model);
  const blk = `blk.${layer}.channel_mix`;
  const up = model.matrix(`${blk}_key`, { inDim: dim, outDim: ffnDim });
  const down = model.matrix(`${blk}_value`, { inDim: ffnDim, outDim: dim });
  return [
    ...shift(model, layer),
    ...mix(model, model.vector(`${blk}_lerp_k`, dim)),
    { op: "mlp", out: y, x: mixed, up, down, act: "relu_sqr" },
  ];
}
