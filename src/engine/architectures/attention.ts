/**
 * Attention of decoders: projections, norms, RoPE, attention, output. Optional parts are read from the file: biases,
 * QK-norm, fused matrices, sinks. Semantics: build_qkv and build_attn of llama-graph.cpp.
 */
import type { Activation, Buf, RopeScaling, Step, Weight } from "../program/step.ts";
import { normSteps, type NormKind } from "./decoder.ts";
import { attnOutput, buffersOf, qkv, type Model } from "./model.ts";
import { withoutBias } from "./tensors.ts";

/** The steps that choose positions, and their result. */
export interface Choice {
  readonly steps: readonly Step[];
  readonly chosen: Buf;
  readonly chosenBlock: number;
}

export interface AttentionOptions {
  /** The input; default `h`. */
  readonly from?: Buf;
  /** RoPE of query and key; undefined: none. */
  readonly rope: RopeScaling | undefined;
  /** 0: all positions. */
  readonly window?: number;
  readonly chunked?: boolean;
  /** Rows attend in both directions; a window then has the same width on both sides. */
  readonly bidirectional?: boolean;
  /** 1 / sqrt(headDim) */
  readonly scale?: number;
  readonly softCap?: number;
  readonly alibi?: number;
  /** The kind of QK-norm, if the file has weights for it; null: `queries` computes it. */
  readonly qkNorm?: NormKind | null;
  /** Refuses a file without norms of query and key, which every file of the family has; default: false. */
  readonly needsQkNorm?: boolean;
  /** QK-norm after RoPE. */
  readonly normLast?: boolean;
  /** Limit of the values of query, key and value; 0: no limit. */
  readonly clamp?: number;
  /** Steps on the final query. */
  readonly queries?: readonly Step[];
  /** Omits the bias of the output projection, as llama.cpp does; default false. */
  readonly bareResult?: boolean;
  /** Tensor name, without `blk.N.`, of the norm of the attention output before its projection. */
  readonly resultNorm?: string;
  /** Gates the attention output by act(`attn_gate` · input), per head or per value. */
  readonly gate?: Activation;
  /** Default: the model's sizes. */
  readonly sizes?: AttentionSizes;
  /** Omits biases of query, key and value, as llama.cpp does; default false. */
  readonly bareQkv?: boolean;
  /** Steps that choose the positions to attend to; default: all. */
  readonly choice?: Choice | undefined;
  /** Number of the KV cache, if several runs share a layer's weights; default: the layer. */
  readonly cache?: number;
}

/** Attention of a layer, from `h` to `y`. */
export function attention(model: Model, layer: number, options: AttentionOptions): Step[] {
  const { nHeads, nKvHeads, headDim, valueDim } = sizesOf(model, options.sizes);
  const { h, y } = buffersOf(model);
  const { q, k, v, heads } = headBuffers(model, { nHeads, nKvHeads, headDim, valueDim });
  const {
    from = h,
    rope,
    window = 0,
    softCap = 0,
    clamp = 0,
    alibi,
    choice,
    qkNorm = "rms",
    needsQkNorm: isNeeded = false,
  } = options;
  const blk = `blk.${layer}`;
  const w = qkv(model, layer, { qDim: q.dim, kDim: k.dim, vDim: v.dim, bare: options.bareQkv ?? false });
  const turns: Step[] = rope
    ? [
        { op: "rope", x: q, heads: nHeads, headDim, rope },
        { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      ]
    : [];
  const norms = qkNorm
    ? [
        ...headNorm(model, qkNorm, { x: q, heads: nHeads, name: `${blk}.attn_q_norm`, isNeeded }),
        ...headNorm(model, qkNorm, { x: k, heads: nKvHeads, name: `${blk}.attn_k_norm`, isNeeded }),
      ]
    : [];
  const scale = options.scale ?? 1 / Math.sqrt(headDim);
  const ofValues = valueDim === headDim ? {} : { valueDim };
  const same = { out: heads, q, k, v, nHeads, nKvHeads, headDim, scale, ...(alibi !== undefined && { alibi }) };
  const sinks = model.has(`${blk}.attn_sinks.weight`) ? model.vector(`${blk}.attn_sinks`, nHeads) : undefined;
  const result = attnOutput(model, layer, heads.dim);
  return [
    { op: "linear", out: q, x: from, ...w.q },
    { op: "linear", out: k, x: from, ...w.k },
    { op: "linear", out: v, x: from, ...w.v },
    ...(clamp > 0 ? [q, k, v].map((x) => ({ op: "clamp", x, min: -clamp, max: clamp }) as const) : []),
    ...(options.normLast ? [...turns, ...norms] : [...norms, ...turns]),
    ...(options.queries ?? []),
    ...(choice?.steps ?? []),
    options.bidirectional
      ? { op: "bidirectionalAttention", ...same, ...(window > 0 && { window }) }
      : {
          op: "attention",
          ...same,
          ...ofValues,
          layer: options.cache ?? layer,
          window,
          softCap,
          rope,
          ...(sinks && { sinks }),
          ...(options.chunked && { chunked: true }),
          ...(choice && { chosen: choice.chosen, chosenBlock: choice.chosenBlock }),
        },
    ...(options.gate ? resultGate(model, layer, { heads, nHeads, from, act: options.gate }) : []),
    ...(options.resultNorm
      ? normSteps(model, "rms", { out: heads, x: heads, name: `${blk}.${options.resultNorm}` })
      : []),
    { op: "linear", out: y, x: heads, ...(options.bareResult ? withoutBias(result) : result) },
  ];
}

export interface AttentionSizes {
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim?: number;
  /** `headDim` */
  readonly valueDim?: number;
}

function sizesOf(model: Model, sizes: AttentionSizes | undefined): Required<AttentionSizes> {
  const headDim = sizes?.headDim ?? model.headDim;
  const { nHeads, nKvHeads } = sizes ?? model;
  return { nHeads, nKvHeads, headDim, valueDim: sizes?.valueDim ?? headDim };
}

/** Query, key, value and output of a layer. Buffers of unusual widths have the width in their name. */
function headBuffers(model: Model, { nHeads, nKvHeads, headDim, valueDim }: Required<AttentionSizes>) {
  const usual = buffersOf(model);
  const sized = (buf: Buf, dim: number): Buf => (buf.dim === dim ? buf : { name: `${buf.name}.${dim}`, dim });
  return {
    q: sized(usual.q, nHeads * headDim),
    k: sized(usual.k, nKvHeads * headDim),
    v: sized(usual.v, nKvHeads * valueDim),
    heads: sized(usual.heads, nHeads * valueDim),
  };
}

/** heads ⊙ act(gate · from) */
export function resultGate(
  model: Model,
  layer: number,
  { heads, nHeads, from, act }: { heads: Buf; nHeads: number; from: Buf; act: Activation },
): Step[] {
  const name = `blk.${layer}.attn_gate`;
  const dim = (model.rows(name) ?? 1) === nHeads ? nHeads : heads.dim;
  const gate = { name: `attn.gate.${dim}`, dim };
  return [
    { op: "linear", out: gate, x: from, w: model.matrix(name, { inDim: from.dim, outDim: dim }) },
    { op: "multiply", out: heads, a: heads, b: gate, act },
  ];
}

interface HeadNorm {
  readonly x: Buf;
  readonly heads: number;
  readonly name: string;
  readonly isNeeded: boolean;
}

/** A norm per head with a shared or separate weight, or a norm over all heads, depending on the weight's shape. */
function headNorm(model: Model, kind: NormKind, { x, heads, name, isNeeded }: HeadNorm): Step[] {
  const headDim = x.dim / heads;
  const shape = model.shape(name) ?? (isNeeded ? [headDim] : undefined);
  if (shape === undefined) return [];
  const [inDim, outDim] = shape.length > 1 ? [headDim, heads] : [shape[0] === headDim ? headDim : x.dim, 1];
  const w: Weight = shape.length > 1 ? model.matrix(name, { inDim, outDim }) : model.vector(name, inDim);
  if (kind === "rms") return [{ op: "rmsNorm", out: x, x, w, eps: model.eps }];
  const b = model.bias(name, inDim);
  return [{ op: "layerNorm", out: x, x, w, ...(b && { b }), eps: model.layerEps }];
}
