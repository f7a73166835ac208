/**
 * Building blocks of decoders: norms, MLPs, mixtures of experts, and the residual connections between them and
 * attention (attention.ts). Optional parts are read from the file: biases, fused matrices, shared experts. Semantics:
 * build_ffn and build_moe_ffn of llama-graph.cpp.
 */
import type { Activation, Buf, GateLimit, Gating, Routing, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { buffersOf, embedding, fusedMlp, mlp, output, plainMlp, plainOrVector, type Model } from "./model.ts";
import { withoutBias } from "./tensors.ts";

/** `rms`; `layer`, with a bias if the file has one; `bare` and `bareRms`: a layer norm or RMS norm without weights. */
export type NormKind = "rms" | "layer" | "bare" | "bareRms";

export interface DecoderOptions {
  /** Factor on embeddings; default 1. */
  readonly embeddingScale?: number;
  /** Steps on embeddings before the first block. */
  readonly start?: readonly Step[];
  /** The steps of a layer, which update `x`. */
  readonly block: (layer: number) => readonly Step[];
  readonly norm?: NormKind;
  readonly outputNorm?: string;
  /** Steps on the final normed stream of an encoder, which has no logits. */
  readonly encoder?: readonly Step[];
  /** Omits a bias of the logits, as llama.cpp does; default false. */
  readonly bareLogits?: boolean;
  /** Factor on logits; default 1. */
  readonly logitScale?: number;
  /** Soft cap of logits; 0: none. */
  readonly logitCap?: number;
}

/** Makes the steps around an architecture's layers: for a whole model, or for its draft layer. */
export type Frame = (model: Model, options: DecoderOptions) => Step[];

/** Embedding, blocks, final norm and logits. */
export const decoder: Frame = (model, options) => {
  const { norm = "rms", outputNorm = "output_norm", logitCap = 0, logitScale = 1 } = options;
  const { x, last, logits } = buffersOf(model);
  const toLogits = (): Step => {
    const weights = output(model);
    return { op: "linear", out: logits, x: last, ...(options.bareLogits ? withoutBias(weights) : weights) };
  };
  return [
    { op: "embed", out: x, table: embedding(model), scale: options.embeddingScale ?? 1 },
    ...(options.start ?? []),
    ...Array.from({ length: model.nLayers }, (_, layer) => [
      ...options.block(layer),
      ...deepstack(model, layer),
    ]).flat(),
    { op: "takeRows", out: last, x },
    ...normSteps(model, norm, { out: last, x: last, name: outputNorm }),
    ...(options.encoder ?? [toLogits()]),
    ...(logitScale === 1 ? [] : [{ op: "scale", x: logits, by: logitScale } as const]),
    ...(logitCap > 0 ? [{ op: "softCap", x: logits, cap: logitCap } as const] : []),
  ];
};

/** Limit of the number of such inputs; a file may name more of them than it has layers. */
const DEEPSTACK_MAX = 64;

/**
 * Adds the image encoder's extra vectors (DeepStack), which follow a row's embedding, to the output of the first
 * layers.
 */
function deepstack({ keys, dim }: Model, layer: number): Step[] {
  const count = keys.count("n_deepstack_layers", { min: 0, max: DEEPSTACK_MAX, fallback: 0 });
  return layer < count ? [{ op: "addGiven", x: { name: "x", dim }, at: (layer + 1) * dim }] : [];
}

/** A norm over whole rows, with the tensor `name`. */
export function normSteps(model: Model, kind: NormKind, { out, x, name }: { out: Buf; x: Buf; name: string }): Step[] {
  if (kind === "bare") return [{ op: "bareLayerNorm", out, x, eps: model.layerEps }];
  if (kind === "bareRms") return [{ op: "bareRmsNorm", out, x, run: x.dim, eps: model.eps }];
  const w = plainOrVector(model, name, x.dim);
  const b = model.bias(name, x.dim);
  if (kind === "layer") return [{ op: "layerNorm", out, x, w, ...(b && { b }), eps: model.layerEps }];
  return [{ op: "rmsNorm", out, x, w, eps: model.eps }, ...(b ? [{ op: "addVector", x: out, w: b } as const] : [])];
}

export interface BlockOptions {
  readonly norm?: NormKind;
  /** Tensor names of the norms, without `blk.N.`; null: the block reads `x` unnormed. */
  readonly attnNorm?: string | null;
  readonly ffnNorm?: string | null;
  /** Norms of the outputs of attention and MLP, before they are added to the stream. */
  readonly attnPostNorm?: string;
  readonly ffnPostNorm?: string;
  /** Epsilon of those norms; default: the model's. */
  readonly postEps?: number;
  /** Factor on the outputs added to the stream; default 1. */
  readonly residualScale?: number;
  /** Steps that compute `y` from `h`. */
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
    ...after(model, layer, options, options.attnPostNorm),
    join,
    ...input(model, layer, options.norm, ffnNorm),
    ...options.ffn,
    ...after(model, layer, options, options.ffnPostNorm),
    join,
  ];
}

/** x += attention(norm(x)) + ffn(norm(x)). Without its own norm, the MLP shares attention's input. */
export function parallelBlock(model: Model, layer: number, options: BlockOptions): Step[] {
  const { attnNorm = "attn_norm", ffnNorm = null, residualScale: scale = 1 } = options;
  const { x, y } = buffersOf(model);
  const z = { name: "z", dim: y.dim };
  // The MLP is first, because it may share attention's input, and attention changes only `y`.
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

function after(
  model: Model,
  layer: number,
  { norm = "rms", postEps: eps = model.eps }: Pick<BlockOptions, "norm" | "postEps">,
  name: string | undefined,
): Step[] {
  const { y } = buffersOf(model);
  return name === undefined ? [] : normSteps({ ...model, eps }, norm, { out: y, x: y, name: `blk.${layer}.${name}` });
}

interface FeedForwardOptions {
  /** The gating; without a gate, the activation. */
  readonly act: Gating;
  readonly ffnDim?: number;
  /** The input; default `h`. */
  readonly from?: Buf;
  /** Omits biases, as llama.cpp does; default false. */
  readonly bare?: boolean;
  readonly limit?: GateLimit | undefined;
}

/** The MLP of a layer, from `h` to `y`: gated if the file has a gate, separate or fused in `ffn_up`. */
export function feedForward(model: Model, layer: number, options: FeedForwardOptions): Step[] {
  const { act, ffnDim, from } = options;
  const { h, y } = buffersOf(model);
  const x = from ?? h;
  const blk = `blk.${layer}`;
  const sizes = ffnDim === undefined ? model : { ...model, ffnDim };
  if (model.has(`${blk}.ffn_gate.weight`)) {
    const { gate, up, down, ...biases } = mlp(sizes, layer);
    const rest = { ...(options.bare ? {} : biases), ...(options.limit && { limit: options.limit }) };
    return [{ op: "gatedMlp", out: y, x, gate, up, down, ...rest, act }];
  }
  if (model.rows(`${blk}.ffn_up`) === 2 * sizes.ffnDim) {
    return [{ op: "gatedMlp", out: y, x, ...fusedMlp(sizes, layer), act }];
  }
  if (act === "swiglu_oai") throw lacksGate(model, `${blk}.ffn_gate`);
  const weights = plainMlp(sizes, layer);
  if (!model.has(`${blk}.ffn.act.scales`)) return [{ op: "mlp", out: y, x, ...weights, act }];
  const inner = { name: "mlp.scaled", dim: sizes.ffnDim };
  const { up, upB, down, downB } = weights;
  return [
    { op: "linear", out: inner, x, w: up, ...(upB && { b: upB }) },
    { op: "activate", x: inner, act },
    {
      op: "multiplyVector",
      x: inner,
      w: model.plain(`${blk}.ffn.act.scales`, { inDim: inner.dim, outDim: 1 }),
      divide: true,
    },
    { op: "linear", out: y, x: inner, w: down, ...(downB && { b: downB }) },
  ];
}

const lacksGate = ({ path }: Model, name: string): AppError =>
  new AppError("bad_file", `${path}: tensor '${name}.weight': expected a gate of the MLP, got none`);

/** The experts of a layer if the file has some, else its MLP. If a layer has a router, its MLP is unused. */
export function moeOrFeedForward(
  model: Model,
  layer: number,
  options: MoeOptions & { readonly act: Activation },
): Step[] {
  const blk = `blk.${layer}`;
  const dense = (): Step[] => feedForward(model, layer, { act: options.act });
  if (!model.has(`${blk}.ffn_gate_inp.weight`)) return dense();
  if (model.has(`${blk}.ffn_up.weight`)) dense();
  return moe(model, layer, options);
}

/**
 * Dense layers first, as many as the file says (default 0), then layers of experts.
 * @param options `normalize`: default by the file
 */
export function denseThenExperts(
  model: Model,
  options: Omit<MoeOptions, "normalize"> & { readonly normalize?: boolean },
): (layer: number) => Step[] {
  const { keys, nLayers } = model;
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  return (layer) => {
    if (layer < leading) return feedForward(model, layer, { act: options.act });
    const normalize = options.normalize ?? keys.flag("expert_weights_norm", false);
    return moe(model, layer, { ...options, normalize });
  };
}

interface MoeOptions {
  readonly act: Gating;
  /** Divides the weights of the chosen experts by their sum. */
  readonly normalize: boolean;
  readonly routing?: Routing | undefined;
  readonly scale?: number;
  readonly ffnDim?: number;
  /** Width of the shared expert; 0 omits it. Default: by the file. */
  readonly sharedDim?: number;
  readonly nUsed?: number;
  readonly limit?: GateLimit | undefined;
  readonly sharedLimit?: GateLimit | undefined;
  /** Input and output; default `h` and `y`. */
  readonly from?: Buf;
  readonly out?: Buf;
  /** The router's input; default `from`. */
  readonly routed?: Buf;
  /** Experts that were chosen before. */
  readonly chosen?: Buf | undefined;
}

/**
 * The experts of a layer, from `h` to `y`, plus the shared expert if the file has one, weighted by its gate if there is
 * one.
 */
export function moe(model: Model, layer: number, options: MoeOptions): Step[] {
  const { h, y } = buffersOf(model);
  const { act, normalize, routing, routed, from = h, out = y } = options;
  const step: Step = {
    op: "moe",
    out,
    x: from,
    ...(routed && { routed }),
    ...(options.chosen && { chosen: options.chosen }),
    ...expertWeights(model, layer, {
      ffnDim: options.ffnDim ?? model.shape(`blk.${layer}.ffn_down_exps`)?.[0] ?? 0,
      from,
      routed: routed ?? from,
    }),
    act,
    nUsed: options.nUsed ?? model.nExpertsUsed,
    normalize,
    scale: options.scale ?? (model.keys.number("expert_weights_scale", 0) || 1),
    ...(routing && { routing }),
    ...(options.limit && { limit: options.limit }),
  };
  return [step, ...sharedExpert(model, layer, options)];
}

/** Router, stacked matrices and biases of a layer's experts; gate and up are separate, or fused with the gate first. */
function expertWeights(
  model: Model,
  layer: number,
  { ffnDim, from, routed }: { ffnDim: number; from: Buf; routed: Buf },
) {
  const { nExperts: experts } = model;
  const { dim } = from;
  const blk = `blk.${layer}`;
  const stack = (name: string, inDim: number, outDim: number): Weight =>
    model.matrix(`${blk}.${name}`, { inDim, outDim, experts });
  const bias = (name: string, outDim: number): Weight | undefined =>
    model.stackedBias(`${blk}.${name}`, { len: outDim, experts });
  const routerB = model.bias(`${blk}.ffn_gate_inp`, experts);
  const selectB = model.has(`${blk}.exp_probs_b`)
    ? model.plain(`${blk}.exp_probs_b`, { inDim: experts, outDim: 1 })
    : model.bias(`${blk}.exp_probs_b`, experts);
  const router = model.matrix(`${blk}.ffn_gate_inp`, { inDim: routed.dim, outDim: experts });
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

/** Adds the output of the shared expert to `y`, if the file has one. */
export function sharedExpert(
  model: Model,
  layer: number,
  options: Pick<MoeOptions, "act" | "sharedDim" | "sharedLimit">,
): Step[] {
  const { act, sharedDim, sharedLimit: limit } = options;
  const blk = `blk.${layer}`;
  const ffnDim = sharedDim ?? model.rows(`${blk}.ffn_up_shexp`);
  if (!ffnDim) return [];
  const { h, y } = buffersOf(model);
  const shared = { name: "shared", dim: model.dim };
  const weights = { ffnDim, shared: true };
  const run = (): Step => {
    if (model.has(`${blk}.ffn_gate_shexp.weight`)) {
      return { op: "gatedMlp", out: shared, x: h, ...mlp(model, layer, weights), act, ...(limit && { limit }) };
    }
    if (act === "swiglu_oai") throw lacksGate(model, `${blk}.ffn_gate_shexp`);
    return { op: "mlp", out: shared, x: h, ...plainMlp(model, layer, weights), act };
  };
  return [run(), ...sharedGate(model, layer, shared), { op: "add", out: y, a: y, b: shared, scale: 1 }];
}

/** shared ⊙ sigmoid(gate · h), if the file has such a gate. */
function sharedGate(model: Model, layer: number, shared: Buf): Step[] {
  const name = `blk.${layer}.ffn_gate_inp_shexp`;
  if (!model.has(`${name}.weight`)) return [];
  const gate = { name: "sharedGate", dim: 1 };
  return [
    { op: "linear", out: gate, x: buffersOf(model).h, w: model.matrix(name, { inDim: model.dim, outDim: 1 }) },
    { op: "multiply", out: shared, a: shared, b: gate, act: "sigmoid" },
  ];
}
