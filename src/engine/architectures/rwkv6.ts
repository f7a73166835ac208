/**
 * RWKV 6 (Finch), and Qwen 2 with such layers in place of attention: token shifts and the decay of the state depend on
 * the row. Semantics: src/models/rwkv6-base.cpp, rwkv6.cpp and rwkv6qwen2.cpp of llama.cpp.
 */
import type { Buf, Step, Weight } from "../program/step.ts";
import { decoder, feedForward, sequentialBlock } from "./decoder.ts";
import { LAYERS_MAX } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { withoutBias } from "./tensors.ts";
import { addBonus, buffersOfRwkv, checkShifts, embeddingNorm, headNorm, headsOf, mix } from "./rwkv.ts";
import { project, shift, vectorsOf, type Heads } from "./rwkv.ts";

/** Mixtures of a row and the previous one, in the order of the file. */
const MIXTURES = ["w", "k", "v", "r", "g"] as const;
const RANK_MAX = 4096;

export function rwkv6(model: Model): Step[] {
  const { keys } = model;
  const { x } = buffersOf(model);
  checkShifts(model, 2);
  const halvedEvery = keys.count("rescale_every_n_layers", { min: 0, max: LAYERS_MAX, fallback: 0 });
  const heads = headsOf(model);
  return decoder(model, {
    norm: "layer",
    start: embeddingNorm(model),
    block: (layer) => [
      ...sequentialBlock(model, layer, {
        norm: "layer",
        ffnNorm: "attn_norm_2",
        attention: rwkvTimeMix(model, layer, heads),
        ffn: channelMix(model, layer),
      }),
      ...(halvedEvery > 0 && (layer + 1) % halvedEvery === 0 ? [{ op: "scale", x, by: 0.5 } as const] : []),
    ],
  });
}

export function rwkv6qwen2(model: Model): Step[] {
  checkShifts(model, 1);
  const heads = headsOf(model);
  const nKeyHeads = model.keys.count("attention.head_count_kv", { min: 0, max: heads.nHeads, fallback: 0 });
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: linearAttention(model, layer, { ...heads, nKeyHeads: nKeyHeads || heads.nHeads }),
        ffn: feedForward(model, layer, { act: "silu", bare: true }),
      }),
  });
}

/** Steps that compute y from h. */
function rwkvTimeMix(model: Model, layer: number, heads: Heads): Step[] {
  const { y } = buffersOf(model);
  const { r, w, k, v, out, gate } = buffersOfRwkv(model);
  const blk = `blk.${layer}`;
  const first = model.matrix(`${blk}.time_mix_first`, { inDim: heads.headDim, outDim: heads.nHeads });
  return [
    ...projections(model, layer, { k, v }),
    { op: "wkv", out, r, w, k, v, layer, ...heads, nKeyHeads: heads.nHeads, early: true },
    ...addBonus(model, first, heads),
    headNorm(model, blk, heads),
    { op: "multiply", out, a: out, b: gate, act: "silu" },
    project(model, `${blk}.time_mix_output`, { out: y, x: out }),
  ];
}

/** Computes y from h: keys are reduced as far as the state is kept, and heads may share keys and values. */
function linearAttention(model: Model, layer: number, heads: Heads & { readonly nKeyHeads: number }): Step[] {
  const { y } = buffersOf(model);
  const { r, w, out, gate, k: wide, v: wideV } = buffersOfRwkv(model);
  const keyDim = heads.nKeyHeads * heads.headDim;
  const [k, v] = [
    { ...wide, dim: keyDim },
    { ...wideV, dim: keyDim },
  ];
  return [
    ...projections(model, layer, { k, v, biased: true }),
    { op: "scale", x: r, by: 1 / Math.sqrt(heads.headDim) },
    { op: "wkv", out, r, w, k, v, layer, ...heads, complement: true },
    { op: "multiply", out, a: out, b: gate, act: "sigmoid" },
    project(model, `blk.${layer}.time_mix_output`, { out: y, x: out }),
  ];
}

/** Computes decay, keys, values, receptance and gate from h. */
function projections(
  model: Model,
  layer: number,
  { k, v, biased = false }: { k: Buf; v: Buf; biased?: boolean },
): Step[] {
  const { dim, keys } = model;
  const { h } = buffersOf(model);
  const { change, mixed, r, w, gate } = buffersOfRwkv(model);
  const blk = `blk.${layer}`;
  const rank = (key: string): number => keys.count(key, { min: 1, max: RANK_MAX });
  const amounts = { name: "rwkv.amounts", dim: MIXTURES.length * dim };
  const low = { name: "rwkv.low", dim: MIXTURES.length * rank("time_mix_extra_dim") };
  const decayLow = { name: "rwkv.decay.low", dim: rank("time_decay_extra_dim") };
  const inner = { inDim: low.dim / MIXTURES.length, outDim: dim, experts: MIXTURES.length };
  const constants = mixtures(model, blk);
  const mixtureOf = (i: number): Step[] => [
    { op: "slice", out: mixed, x: amounts, heads: 1, at: i * dim },
    { op: "addVector", x: mixed, w: constants[i]! }, // one per mixture
    { op: "multiply", out: mixed, a: mixed, b: change },
    { op: "add", out: mixed, a: mixed, b: h, scale: 1 },
  ];
  const outDims = { key: k, value: v, receptance: r, gate };
  const named = (name: keyof typeof outDims): Step => {
    const out = outDims[name];
    const both = model.linear(`${blk}.time_mix_${name}`, { inDim: dim, outDim: out.dim });
    return { op: "linear", out, x: mixed, ...(biased && name !== "gate" ? both : withoutBias(both)) };
  };
  return [
    ...shift(model, layer),
    ...mix(model, vector(model, `${blk}.time_mix_lerp_x`)),
    project(model, `${blk}.time_mix_w1`, { out: low, x: mixed }),
    { op: "activate", x: low, act: "tanh" },
    { op: "headLinear", out: amounts, x: low, w: model.matrix(`${blk}.time_mix_w2`, inner), transposed: false },
    ...mixtureOf(0),
    project(model, `${blk}.time_mix_decay_w1`, { out: decayLow, x: mixed }),
    { op: "activate", x: decayLow, act: "tanh" },
    project(model, `${blk}.time_mix_decay_w2`, { out: w, x: decayLow, b: vector(model, `${blk}.time_mix_decay`) }),
    ...(["key", "value", "receptance", "gate"] as const).flatMap((name, i) => [...mixtureOf(i + 1), named(name)]),
  ];
}

const vector = (model: Model, name: string): Weight => model.vector(name, model.dim);

/** The constant parts of the mixtures; older files have a tensor for each. */
function mixtures(model: Model, blk: string): readonly Weight[] {
  if (model.has(`${blk}.time_mix_lerp_fused.weight`)) {
    return vectorsOf(model, `${blk}.time_mix_lerp_fused`, MIXTURES.length);
  }
  return MIXTURES.map((name) => vector(model, `${blk}.time_mix_lerp_${name}`));
}

/** The MLP, from h to y: gated, with a mixture of its own. */
function channelMix(model: Model, layer: number): Step[] {
  const { dim, ffnDim } = model;
  const { y } = buffersOf(model);
  const { mixed, gate } = buffersOfRwkv(model);
  const blk = `blk.${layer}.channel_mix`;
  const up = model.matrix(`${blk}_key`, { inDim: dim, outDim: ffnDim });
  const down = model.matrix(`${blk}_value`, { inDim: ffnDim, outDim: dim });
  return [
    ...shift(model, layer),
    ...mix(model, vector(model, `${blk}_lerp_k`)),
    { op: "mlp", out: y, x: mixed, up, down, act: "relu_sqr" },
    ...mix(model, vector(model, `${blk}_lerp_r`)),
    project(model, `${blk}_receptance`, { out: gate, x: mixed }),
    { op: "multiply", out: y, a: y, b: gate, act: "sigmoid" },
  ];
}
