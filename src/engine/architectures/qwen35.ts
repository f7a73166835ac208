/**
 * Qwen 3.5 and relatives, dense or with experts, and Qwen 3 Next: three of four layers are a gated delta rule, the
 * fourth is attention with a gated output. Semantics: src/models/qwen35.cpp, qwen35moe.cpp, qwen3next.cpp and
 * delta-net-base.cpp of llama.cpp.
 */
import type { Buf, Step } from "../program/step.ts";
import { decoder, moeOrFeedForward, sequentialBlock, type Frame } from "./decoder.ts";
import { LAYERS_MAX, readSsm, type SsmHparams } from "./hparams.ts";
import { attnOutput, buffersOf, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

const FULL_ATTENTION_INTERVAL = 4;

/** Projections of a delta rule layer's input, (rows, dim) each. */
interface Projections {
  /** Query, key and value, before the convolution. */
  readonly mixed: Buf;
  /** The gate of the output. */
  readonly z: Buf;
  readonly alpha: Buf;
  readonly beta: Buf;
  readonly steps: readonly Step[];
}

/** The differences between the architectures. */
interface Variant {
  readonly project: (model: Model, layer: number, ssm: SsmHparams) => Projections;
  readonly heads: "modulo" | "repeat";
}

export const qwen35 = (model: Model, frame?: Frame): Step[] =>
  hybrid(model, { project: projectApart, heads: "modulo" }, frame);

export const qwen3next = (model: Model, frame?: Frame): Step[] =>
  hybrid(model, { project: projectTogether, heads: "repeat" }, frame);

function hybrid(model: Model, variant: Variant, frame = decoder): Step[] {
  const { nLayers, keys } = model;
  const interval = keys.count("full_attention_interval", {
    min: 1,
    max: LAYERS_MAX,
    fallback: FULL_ATTENTION_INTERVAL,
  });
  const flags = keys.find("attention.recurrent_layers");
  const recurs = (layer: number): boolean =>
    layer < nLayers && (typeof flags === "object" ? Boolean(flags[layer]) : (layer + 1) % interval !== 0);
  const attend = fullAttention(model);
  return frame(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        ffnNorm: "post_attention_norm",
        attention: recurs(layer) ? deltaLayer(model, layer, variant) : attend(layer),
        ffn: moeOrFeedForward(model, layer, { act: "silu", normalize: true }),
      }),
  });
}

/** Attention of h to y: each head of `attn_q` is a query followed by a gate. */
function fullAttention(model: Model): (layer: number) => Step[] {
  const { nHeads, nKvHeads, headDim, eps, keys } = model;
  const { h, q, k, v, heads, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox", sections: "interleaved" });
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  const both = { name: "q.gate", dim: 2 * q.dim };
  const gate = { name: "gate", dim: q.dim };
  return (layer) => {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer, { qDim: both.dim });
    return [
      { op: "linear", out: both, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "slice", out: q, x: both, heads: nHeads, at: 0 },
      { op: "slice", out: gate, x: both, heads: nHeads, at: headDim },
      { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.attn_q_norm`, headDim), eps },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`${blk}.attn_k_norm`, headDim), eps },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window: 0, softCap: 0, rope },
      { op: "multiply", out: heads, a: heads, b: gate, act: "sigmoid" },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
    ];
  };
}

/** The gated delta rule of h to y. */
function deltaLayer(model: Model, layer: number, { project, heads }: Variant): Step[] {
  const { dim, eps, keys } = model;
  const { y } = buffersOf(model);
  const ssm = readSsm(keys);
  const { stateDim, nGroups, nHeads, convKernel } = ssm;
  const [keyDim, valueDim] = [nGroups * stateDim, nHeads * stateDim];
  const { mixed, z, alpha, beta, steps } = project(model, layer, ssm);
  const [q, k] = [
    { name: "delta.q", dim: keyDim },
    { name: "delta.k", dim: keyDim },
  ];
  const [v, out] = [
    { name: "delta.v", dim: valueDim },
    { name: "delta.out", dim: valueDim },
  ];
  const blk = `blk.${layer}`;
  const conv = model.matrix(`${blk}.ssm_conv1d`, { inDim: convKernel, outDim: mixed.dim });
  const a = model.plain(`${blk}.ssm_a`, { inDim: nHeads, outDim: 1 });
  const rule = { layer, nHeads, nKeyHeads: nGroups, headDim: stateDim, heads, scale: 1 / Math.sqrt(stateDim) };
  const dt = model.plain(`${blk}.ssm_dt.bias`, { inDim: nHeads, outDim: 1 });
  return [
    ...steps,
    { op: "causalConv", out: mixed, x: mixed, w: conv, act: "silu", layer },
    { op: "slice", out: q, x: mixed, heads: 1, at: 0 },
    { op: "slice", out: k, x: mixed, heads: 1, at: keyDim },
    { op: "slice", out: v, x: mixed, heads: 1, at: 2 * keyDim },
    { op: "l2Norm", out: q, x: q, run: stateDim, eps },
    { op: "l2Norm", out: k, x: k, run: stateDim, eps },
    { op: "deltaRule", out, q, k, v, alpha, beta, a, dt, ...rule },
    { op: "rmsNorm", out, x: out, w: model.vector(`${blk}.ssm_norm`, stateDim), eps },
    { op: "multiply", out, a: out, b: z, act: "silu" },
    { op: "linear", out: y, x: out, w: model.matrix(`${blk}.ssm_out`, { inDim: valueDim, outDim: dim }) },
  ];
}

const buffersOfDelta = ({ stateDim, nGroups, nHeads }: SsmHparams) => ({
  mixed: { name: "delta.mixed", dim: (2 * nGroups + nHeads) * stateDim },
  z: { name: "delta.z", dim: nHeads * stateDim },
  alpha: { name: "delta.alpha", dim: nHeads },
  beta: { name: "delta.beta", dim: nHeads },
});

/** A matrix per projection. */
function projectApart(model: Model, layer: number, ssm: SsmHparams): Projections {
  const { h } = buffersOf(model);
  const bufs = buffersOfDelta(ssm);
  const project = (out: Buf, name: string): Step => {
    return { op: "linear", out, x: h, ...model.linear(`blk.${layer}.${name}`, { inDim: h.dim, outDim: out.dim }) };
  };
  const steps = [
    project(bufs.mixed, "attn_qkv"),
    project(bufs.z, "attn_gate"),
    project(bufs.beta, "ssm_beta"),
    project(bufs.alpha, "ssm_alpha"),
  ];
  return { ...bufs, steps };
}

/** Fused per key head, parts in sequence: beta, alpha; in older files also query, key, value and gate. */
function projectTogether(model: Model, layer: number, ssm: SsmHparams): Projections {
  const { h } = buffersOf(model);
  const { stateDim, nGroups, nHeads } = ssm;
  const bufs = buffersOfDelta(ssm);
  const each = nHeads / nGroups;
  const project = (out: Buf, name: string): Step => {
    return { op: "linear", out, x: h, w: model.matrix(`blk.${layer}.${name}`, { inDim: h.dim, outDim: out.dim }) };
  };
  const both = { name: "delta.beta.alpha", dim: 2 * nHeads };
  const rates: Step[] = [
    project(both, "ssm_ba"),
    { op: "slice", out: bufs.beta, x: both, heads: nGroups, at: 0 },
    { op: "slice", out: bufs.alpha, x: both, heads: nGroups, at: each },
  ];
  const all = { name: "delta.all", dim: bufs.mixed.dim + bufs.z.dim };
  const older = model.has(`blk.${layer}.ssm_in.weight`) ? [project(all, "ssm_in")] : [];
  if (model.has(`blk.${layer}.attn_qkv.weight`)) {
    // overrides the older form, which some writers also store
    return { ...bufs, steps: [project(bufs.mixed, "attn_qkv"), project(bufs.z, "attn_gate"), ...rates] };
  }
  const [q, k, v] = ["delta.q", "delta.k", "delta.v"].map((name, i) => {
    return { name, dim: (i < 2 ? nGroups : nHeads) * stateDim };
  }) as [Buf, Buf, Buf]; // one per name
  const qk = { name: "delta.qk", dim: 2 * q.dim };
  return {
    ...bufs,
    steps: [
      ...older,
      { op: "slice", out: q, x: all, heads: nGroups, at: 0 },
      { op: "slice", out: k, x: all, heads: nGroups, at: stateDim },
      { op: "slice", out: v, x: all, heads: nGroups, at: 2 * stateDim },
      { op: "slice", out: bufs.z, x: all, heads: nGroups, at: (2 + each) * stateDim },
      { op: "join", out: qk, a: q, b: k, heads: 1 },
      { op: "join", out: bufs.mixed, a: qk, b: v, heads: 1 },
      ...rates,
    ],
  };
}
