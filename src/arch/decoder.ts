/**
 * What decoders have in common, as pieces that architectures put together: a norm, attention, an MLP or a mixture of
 * experts, and how they join the residual stream. Every piece reads from the file what is optional in it: biases, norms
 * of query and key, fused matrices, shared experts. Meaning: build_qkv, build_attn, build_ffn and build_moe_ffn of
 * llama-graph.cpp.
 */
import type { Activation, Buf, Gating, RopeScaling, Routing, Step, Weight } from "../backend/step.ts";
import { attnOutput, buffersOf, embedding, fusedMlp, mlp, output, plainMlp, qkv, type Model } from "./model.ts";
import type { Linear } from "./tensors.ts";

/** `rms`; `layer` with its bias where there is one; `bare` for a layer norm without weights. */
export type NormKind = "rms" | "layer" | "bare";

interface DecoderOptions {
  /** Factor on embeddings; 1. */
  readonly embeddingScale?: number;
  /** What is done to embeddings before the first block. */
  readonly start?: readonly Step[];
  /** The steps of a layer: they change `x`. */
  readonly block: (layer: number) => readonly Step[];
  readonly norm?: NormKind;
  readonly outputNorm?: string;
  /** What is done to the normed stream of an encoder, which has no logits. */
  readonly encoder?: readonly Step[];
  /** A bias of the logits is left out, as llama.cpp leaves it out; false. */
  readonly bareLogits?: boolean;
  /** Factor on logits; 1. */
  readonly logitScale?: number;
  /** Limit of logits; 0 for none. */
  readonly logitCap?: number;
}

/** Embedding, blocks, the last norm and the logits. */
export function decoder(model: Model, options: DecoderOptions): Step[] {
  const { norm = "rms", outputNorm = "output_norm", logitCap = 0, logitScale = 1 } = options;
  const { x, last, logits } = buffersOf(model);
  return [
    { op: "embed", out: x, table: embedding(model), scale: options.embeddingScale ?? 1 },
    ...(options.start ?? []),
    ...Array.from({ length: model.nLayers }, (_, layer) => options.block(layer)).flat(),
    { op: "takeRows", out: last, x },
    ...normSteps(model, norm, { out: last, x: last, name: outputNorm }),
    ...(options.encoder ?? [{ op: "linear", out: logits, x: last, ...weightsOf(output(model), options.bareLogits) }]),
    ...(logitScale === 1 ? [] : [{ op: "scale", x: logits, by: logitScale } as const]),
    ...(logitCap > 0 ? [{ op: "softCap", x: logits, cap: logitCap } as const] : []),
  ];
}

/** A norm over whole rows, with the tensor `name`. */
export function normSteps(model: Model, kind: NormKind, { out, x, name }: { out: Buf; x: Buf; name: string }): Step[] {
  if (kind === "bare") return [{ op: "bareLayerNorm", out, x, eps: model.layerEps }];
  const w = model.vector(name, x.dim);
  const b = model.bias(name, x.dim);
  if (kind === "layer") return [{ op: "layerNorm", out, x, w, ...(b && { b }), eps: model.layerEps }];
  return [{ op: "rmsNorm", out, x, w, eps: model.eps }, ...(b ? [{ op: "addVector", x: out, w: b } as const] : [])];
}

interface BlockOptions {
  readonly norm?: NormKind;
  /** Tensor names of the norms, without `blk.N.`; null: the block reads `x` as it is. */
  readonly attnNorm?: string | null;
  readonly ffnNorm?: string | null;
  /** Norms of what attention and MLP give, before it joins the stream. */
  readonly attnPostNorm?: string;
  readonly ffnPostNorm?: string;
  /** Factor on what joins the stream; 1. */
  readonly residualScale?: number;
  /** From `h` to `y`. */
  readonly attention: readonly Step[];
  readonly ffn: readonly Step[];
}

/** x += attention(norm(x)); x += ffn(norm(x)) */
export function sequentialBlock(model: Model, layer: number, options: BlockOptions): Step[] {
  const { attnNorm = "attn_norm", ffnNorm = "ffn_norm", residualScale: scale = 1 } = options;
  const { x, y } = buffersOf(model);
  const join: Step = { op: "add", out: x, a: x, b: y, scale };
  return [
    ...input(model, layer, options.norm, attnNorm),
    ...options.attention,
    ...after(model, layer, options.norm, options.attnPostNorm),
    join,
    ...input(model, layer, options.norm, ffnNorm),
    ...options.ffn,
    ...after(model, layer, options.norm, options.ffnPostNorm),
    join,
  ];
}

/** x += attention(norm(x)) + ffn(norm(x)). Without a norm of its own, the MLP reads what attention reads. */
export function parallelBlock(model: Model, layer: number, options: BlockOptions): Step[] {
  const { attnNorm = "attn_norm", ffnNorm = null, residualScale: scale = 1 } = options;
  const { x, y } = buffersOf(model);
  const z = { name: "z", dim: y.dim };
  // The MLP first: what it reads may be what attention reads, and attention changes only `y`.
  return [
    ...input(model, layer, options.norm, ffnNorm ?? attnNorm),
    ...options.ffn,
    { op: "add", out: z, a: x, b: y, scale },
    ...(ffnNorm === null ? [] : input(model, layer, options.norm, attnNorm)),
    ...options.attention,
    { op: "add", out: x, a: z, b: y, scale },
  ];
}

function input(model: Model, layer: number, norm: NormKind = "rms", name: string | null): Step[] {
  const { x, h } = buffersOf(model);
  if (name === null) return [];
  return normSteps(model, norm, { out: h, x, name: `blk.${layer}.${name}` });
}

function after(model: Model, layer: number, norm: NormKind = "rms", name: string | undefined): Step[] {
  const { y } = buffersOf(model);
  return name === undefined ? [] : normSteps(model, norm, { out: y, x: y, name: `blk.${layer}.${name}` });
}

interface AttentionOptions {
  /** What is read; `h`. */
  readonly from?: Buf;
  /** How query and key turn; undefined: by no position. */
  readonly rope: RopeScaling | undefined;
  /** 0: all positions. */
  readonly window?: number;
  readonly chunked?: boolean;
  /** Every row sees all of its text; a window is as wide on both sides. */
  readonly bidirectional?: boolean;
  /** 1 / sqrt(headDim) */
  readonly scale?: number;
  readonly softCap?: number;
  readonly alibi?: number;
  /** The norm of query and key where the file has weights for them. */
  readonly qkNorm?: NormKind;
  /** Query and key are normed after they turned. */
  readonly normLast?: boolean;
  /** Limit of the values of query, key and value; 0 for none. */
  readonly clamp?: number;
  /** What is done to the query after all of it. */
  readonly queries?: readonly Step[];
  /** A bias of the projection back is left out, as llama.cpp leaves it out; false. */
  readonly bareResult?: boolean;
  /** What is done to what attention gives, before it is projected back. */
  readonly results?: readonly Step[];
}

/** Attention of a layer, from `h` to `y`. */
export function attention(model: Model, layer: number, options: AttentionOptions): Step[] {
  const { nHeads, nKvHeads, headDim } = model;
  const { h, q, k, v, heads, y } = buffersOf(model);
  const { from = h, rope, window = 0, softCap = 0, clamp = 0, alibi, qkNorm = "rms" } = options;
  const blk = `blk.${layer}`;
  const w = qkv(model, layer);
  const turns: Step[] = rope
    ? [
        { op: "rope", x: q, heads: nHeads, headDim, rope },
        { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      ]
    : [];
  const norms = [
    ...headNorm(model, qkNorm, { x: q, heads: nHeads, name: `${blk}.attn_q_norm` }),
    ...headNorm(model, qkNorm, { x: k, heads: nKvHeads, name: `${blk}.attn_k_norm` }),
  ];
  const scale = options.scale ?? 1 / Math.sqrt(headDim);
  const same = { out: heads, q, k, v, nHeads, nKvHeads, headDim, scale, ...(alibi !== undefined && { alibi }) };
  const sinks = model.has(`${blk}.attn_sinks.weight`) ? model.vector(`${blk}.attn_sinks`, nHeads) : undefined;
  return [
    { op: "linear", out: q, x: from, ...w.q },
    { op: "linear", out: k, x: from, ...w.k },
    { op: "linear", out: v, x: from, ...w.v },
    ...(clamp > 0 ? [q, k, v].map((x) => ({ op: "clamp", x, limit: clamp }) as const) : []),
    ...(options.normLast ? [...turns, ...norms] : [...norms, ...turns]),
    ...(options.queries ?? []),
    options.bidirectional
      ? { op: "bidirectionalAttention", ...same, ...(window > 0 && { window }) }
      : {
          op: "attention",
          ...same,
          layer,
          window,
          softCap,
          rope,
          ...(sinks && { sinks }),
          ...(options.chunked && { chunked: true }),
        },
    ...(options.results ?? []),
    { op: "linear", out: y, x: heads, ...weightsOf(attnOutput(model, layer), options.bareResult) },
  ];
}

/** A matrix and its bias, or without. */
function weightsOf({ w, b }: Linear, bare = false): Linear {
  return b && !bare ? { w, b } : { w };
}

/** A norm of every head, by one weight for all or by one each; or of all heads at once, as the weight's shape says. */
function headNorm(model: Model, kind: NormKind, { x, heads, name }: { x: Buf; heads: number; name: string }): Step[] {
  const shape = model.shape(name);
  if (shape === undefined) return [];
  const headDim = x.dim / heads;
  const [inDim, outDim] = shape.length > 1 ? [headDim, heads] : [shape[0] === headDim ? headDim : x.dim, 1];
  const w: Weight = shape.length > 1 ? model.matrix(name, { inDim, outDim }) : model.vector(name, inDim);
  if (kind === "rms") return [{ op: "rmsNorm", out: x, x, w, eps: model.eps }];
  const b = model.bias(name, inDim);
  return [{ op: "layerNorm", out: x, x, w, ...(b && { b }), eps: model.layerEps }];
}

interface FeedForwardOptions {
  readonly act: Activation;
  readonly ffnDim?: number;
  /** Applies `.scale` tensors, as llama.cpp does in some architectures only. */
  readonly scaled?: boolean;
  /** What is read; `h`. */
  readonly from?: Buf;
  /** Biases are left out, as llama.cpp leaves them out; false. */
  readonly bare?: boolean;
}

/** The MLP of a layer, from `h` to `y`: gated where the file has a gate, apart or fused in `ffn_up`. */
export function feedForward(model: Model, layer: number, options: FeedForwardOptions): Step[] {
  const { act, ffnDim, from, scaled = false } = options;
  const { h, y } = buffersOf(model);
  const x = from ?? h;
  const blk = `blk.${layer}`;
  const sizes = ffnDim === undefined ? model : { ...model, ffnDim };
  if (model.has(`${blk}.ffn_gate.weight`)) {
    const { gate, up, down, ...biases } = mlp(sizes, layer, { scaled });
    return [{ op: "gatedMlp", out: y, x, gate, up, down, ...(options.bare ? {} : biases), act }];
  }
  if (model.rows(`${blk}.ffn_up`) === 2 * sizes.ffnDim) {
    return [{ op: "gatedMlp", out: y, x, ...fusedMlp(sizes, layer), act }];
  }
  return [{ op: "mlp", out: y, x, ...plainMlp(sizes, layer, { scaled }), act }];
}

interface MoeOptions {
  readonly act: Gating;
  /** As for `feedForward`. */
  readonly scaled?: boolean;
  readonly sharedScaled?: boolean;
  /** Whether the weights of the chosen experts are divided by their sum. */
  readonly normalize: boolean;
  readonly routing?: Routing;
  readonly scale?: number;
  readonly ffnDim?: number;
  /** Width of the MLP beside the experts; 0 leaves it out. By the file. */
  readonly sharedDim?: number;
  readonly nUsed?: number;
  /** What is read and written; `h` and `y`. */
  readonly from?: Buf;
  readonly out?: Buf;
  /** What the router reads, where that is something else. */
  readonly routed?: Buf;
}

/**
 * The experts of a layer, from `h` to `y`, and the MLP that every row passes beside them where the file has one,
 * weighted by a gate where it has that.
 */
export function moe(model: Model, layer: number, options: MoeOptions): Step[] {
  const { h, y } = buffersOf(model);
  const { act, normalize, routing, routed, from = h, out = y } = options;
  const step: Step = {
    op: "moe",
    out,
    x: from,
    ...(routed && { routed }),
    ...expertWeights(model, layer, {
      ffnDim: options.ffnDim ?? model.shape(`blk.${layer}.ffn_down_exps`)?.[0] ?? 0,
      scaled: options.scaled,
    }),
    act,
    nUsed: options.nUsed ?? model.nExpertsUsed,
    normalize,
    scale: options.scale ?? (model.keys.number("expert_weights_scale", 0) || 1),
    ...(routing && { routing }),
  };
  return [step, ...sharedExpert(model, layer, options)];
}

/** Router and stacked matrices of a layer's experts with their biases; gate and up apart, or fused with gate first. */
function expertWeights(
  model: Model,
  layer: number,
  { ffnDim, scaled = false }: { ffnDim: number; scaled?: boolean | undefined },
) {
  const { dim, nExperts: experts } = model;
  const blk = `blk.${layer}`;
  const stack = (name: string, inDim: number, outDim: number): Weight =>
    model.matrix(`${blk}.${name}`, { inDim, outDim, experts }, { scaled });
  const bias = (name: string, outDim: number): Weight | undefined =>
    model.stackedBias(`${blk}.${name}`, { len: outDim, experts });
  const routerB = model.bias(`${blk}.ffn_gate_inp`, experts);
  const selectB = model.bias(`${blk}.exp_probs_b`, experts);
  const router = model.matrix(`${blk}.ffn_gate_inp`, { inDim: dim, outDim: experts });
  const common = { router, ...(routerB && { routerB }), ...(selectB && { selectB }) };
  const downB = bias("ffn_down_exps", dim);
  const down = { down: stack("ffn_down_exps", ffnDim, dim), ...(downB && { downB }) };
  if (model.has(`${blk}.ffn_gate_up_exps.weight`)) {
    const fused = stack("ffn_gate_up_exps", dim, 2 * ffnDim);
    const gate = { ...fused, outDim: ffnDim };
    return { ...common, gate, up: { ...fused, outDim: ffnDim, rowStart: ffnDim }, ...down };
  }
  const [gateB, upB] = [bias("ffn_gate_exps", ffnDim), bias("ffn_up_exps", ffnDim)];
  return {
    ...common,
    ...(model.has(`${blk}.ffn_gate_exps.weight`) && { gate: stack("ffn_gate_exps", dim, ffnDim) }),
    ...(gateB && { gateB }),
    up: stack("ffn_up_exps", dim, ffnDim),
    ...(upB && { upB }),
    ...down,
  };
}

function sharedExpert(model: Model, layer: number, options: MoeOptions): Step[] {
  const { act, sharedDim, sharedScaled: scaled = false } = options;
  const blk = `blk.${layer}`;
  const ffnDim = sharedDim ?? model.rows(`${blk}.ffn_up_shexp`);
  if (!ffnDim || act === "swiglu_oai") return [];
  const { h, y } = buffersOf(model);
  const shared = { name: "shared", dim: model.dim };
  const gated = model.has(`${blk}.ffn_gate_shexp.weight`);
  const weights = { ffnDim, shared: true, scaled };
  const run: Step = gated
    ? { op: "gatedMlp", out: shared, x: h, ...mlp(model, layer, weights), act }
    : { op: "mlp", out: shared, x: h, ...plainMlp(model, layer, weights), act };
  return [run, ...sharedGate(model, layer, shared), { op: "add", out: y, a: y, b: shared, scale: 1 }];
}

/** shared ⊙ sigmoid(gate · h), where the file has such a gate. */
function sharedGate(model: Model, layer: number, shared: Buf): Step[] {
  const name = `blk.${layer}.ffn_gate_inp_shexp`;
  if (!model.has(`${name}.weight`)) return [];
  const gate = { name: "sharedGate", dim: 1 };
  return [
    { op: "linear", out: gate, x: buffersOf(model).h, w: model.matrix(name, { inDim: model.dim, outDim: 1 }) },
    { op: "multiply", out: shared, a: shared, b: gate, act: "sigmoid" },
  ];
}
