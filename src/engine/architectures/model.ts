/**
 * One GGUF for an architecture: hyperparameters, metadata and tensors, and the weight groups of transformer blocks.
 * Tensor names are llama.cpp's (llama-arch.cpp LLM_TENSOR_NAMES).
 */
import type { Buf, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { readHparams, type Hparams, type Keys } from "./hparams.ts";
import { tensorsOf, withoutBias, type Linear, type Tensors } from "./tensors.ts";

export interface Model extends Hparams, Tensors {
  readonly path: string;
  readonly keys: Keys;
  /** Number of tokens that have logits, usually all tokens with embeddings. */
  readonly vocabSize: number;
  readonly embeddedTokens: number;
}

/** @param uneven see `readHparams`; `wide`: more tokens have embeddings than logits */
export function openModel(gguf: Gguf, keys: Keys, options: { uneven: boolean; wide?: boolean }): Model {
  const tensors = tensorsOf(gguf);
  const embeddedTokens = tensors.rows("token_embd");
  if (embeddedTokens === undefined) {
    throw new AppError("bad_file", `${gguf.path}: tensor 'token_embd.weight': expected two dimensions, got none`);
  }
  const vocabSize = Math.min(embeddedTokens, (options.wide && tensors.rows("output")) || embeddedTokens);
  const sizes = { vocabSize, embeddedTokens };
  return { ...readHparams(keys, gguf.path, options), ...tensors, path: gguf.path, keys, ...sizes };
}

/** The buffers of transformer blocks. */
export function buffersOf({ dim, nHeads, nKvHeads, headDim, vocabSize }: Hparams & { vocabSize: number }) {
  return {
    /** The residual stream. */
    x: { name: "x", dim },
    /** The input of a block: the normed stream. */
    h: { name: "h", dim },
    q: { name: "q", dim: nHeads * headDim },
    k: { name: "k", dim: nKvHeads * headDim },
    v: { name: "v", dim: nKvHeads * headDim },
    /** The attention output, head by head. */
    heads: { name: "heads", dim: nHeads * headDim },
    /** The output of a block, added to the stream. */
    y: { name: "y", dim },
    /** The stream of the rows whose logits are wanted. */
    last: { name: "last", dim },
    logits: { name: "logits", dim: vocabSize },
  } as const satisfies Record<string, Buf>;
}

/** `token_embd` */
export function embedding(model: Model): Weight {
  return model.matrix("token_embd", { inDim: model.dim, outDim: model.embeddedTokens });
}

/** `output`, or the tied embedding. */
export function output(model: Model): Linear {
  if (!model.has("output.weight")) return { w: embedding(model) };
  return model.linear("output", { inDim: model.dim, outDim: model.vocabSize });
}

/**
 * Query, key and value of a layer, separate or fused in `attn_qkv`.
 * @param sizes widths or key heads that differ from the model's; `bare`: without biases
 */
export function qkv(
  model: Model,
  layer: number,
  sizes: { qDim?: number; nKvHeads?: number; kDim?: number; vDim?: number; bare?: boolean } = {},
): { readonly q: Linear; readonly k: Linear; readonly v: Linear } {
  const { dim: inDim, nHeads, headDim, path } = model;
  const { qDim = nHeads * headDim, nKvHeads = model.nKvHeads, bare = false } = sizes;
  const { kDim = nKvHeads * headDim, vDim = kDim } = sizes;
  const blk = `blk.${layer}`;
  const read = (name: string, shape: { inDim: number; outDim: number }): Linear => {
    const both = model.linear(name, shape);
    return bare ? withoutBias(both) : both;
  };
  if (!model.has(`${blk}.attn_qkv.weight`)) {
    const each = (name: string, outDim: number): Linear => read(`${blk}.attn_${name}`, { inDim, outDim });
    return { q: each("q", qDim), k: each("k", kDim), v: each("v", vDim) };
  }
  const { w, b } = read(`${blk}.attn_qkv`, { inDim, outDim: qDim + kDim + vDim });
  if (b && (qDim % kDim !== 0 || (qDim + kDim) % vDim !== 0)) {
    throw new AppError("unsupported", `${path}: tensor '${b.name}': expected parts of whole heads, got ${vDim}`);
  }
  const part = (outDim: number, rowStart: number): Linear => ({
    w: { ...w, outDim, rowStart },
    ...(b && { b: { ...b, inDim: outDim, rowStart: rowStart / outDim } }),
  });
  return { q: part(qDim, 0), k: part(kDim, qDim), v: part(vDim, qDim + kDim) };
}

/** The projection from all heads to the stream. */
export function attnOutput(model: Model, layer: number, inDim = model.nHeads * model.headDim): Linear {
  return model.linear(`blk.${layer}.attn_output`, { inDim, outDim: model.dim });
}

interface Mlp {
  readonly gate: Weight;
  readonly gateB?: Weight;
  readonly up: Weight;
  readonly upB?: Weight;
  readonly down: Weight;
  readonly downB?: Weight;
}

interface MlpOptions {
  readonly ffnDim?: number;
  /** Names the tensors of a shared expert: `ffn_gate_shexp` … */
  readonly shared?: boolean;
}

/** `ffn_gate`, `ffn_up` and `ffn_down` of a layer. */
export function mlp(model: Model, layer: number, options: MlpOptions = {}): Mlp {
  const { ffnDim = model.ffnDim, shared = false } = options;
  const part = (name: string, inDim: number, outDim: number): Linear =>
    model.linear(`blk.${layer}.ffn_${name}${shared ? "_shexp" : ""}`, { inDim, outDim });
  const gate = part("gate", model.dim, ffnDim);
  const up = part("up", model.dim, ffnDim);
  const down = part("down", ffnDim, model.dim);
  const biases = { ...(gate.b && { gateB: gate.b }), ...(up.b && { upB: up.b }), ...(down.b && { downB: down.b }) };
  return { gate: gate.w, up: up.w, down: down.w, ...biases };
}

/** An MLP without a gate: `ffn_up` and `ffn_down` of a layer. */
export function plainMlp(
  model: Model,
  layer: number,
  { ffnDim = model.ffnDim, shared = false }: MlpOptions = {},
): Omit<Mlp, "gate" | "gateB"> {
  const { dim } = model;
  const suffix = shared ? "_shexp" : "";
  const up = model.linear(`blk.${layer}.ffn_up${suffix}`, { inDim: dim, outDim: ffnDim });
  const down = model.linear(`blk.${layer}.ffn_down${suffix}`, { inDim: ffnDim, outDim: dim });
  return { up: up.w, ...(up.b && { upB: up.b }), down: down.w, ...(down.b && { downB: down.b }) };
}

/** The weight of a norm; some converters omit the usual suffix of its name. */
export function plainOrVector(model: Model, name: string, len: number): Weight {
  return model.has(name) ? model.plain(name, { inDim: len, outDim: 1 }) : model.vector(name, len);
}

/** A layer norm over whole rows, with a bias if the file has one. */
export function layerNorm(model: Model, name: string): { w: Weight; b?: Weight; eps: number } {
  const b = model.bias(name, model.dim);
  return { w: model.vector(name, model.dim), ...(b && { b }), eps: model.layerEps };
}

/** An MLP with gate and up fused in `ffn_up`, in this order. */
export function fusedMlp(model: Model, layer: number): Mlp {
  const { dim, ffnDim } = model;
  const { w: fused, b } = model.linear(`blk.${layer}.ffn_up`, { inDim: dim, outDim: 2 * ffnDim });
  const { w: down, b: downB } = model.linear(`blk.${layer}.ffn_down`, { inDim: ffnDim, outDim: dim });
  return {
    gate: { ...fused, outDim: ffnDim },
    up: { ...fused, outDim: ffnDim, rowStart: ffnDim },
    down,
    ...(b && { gateB: { ...b, inDim: ffnDim }, upB: { ...b, inDim: ffnDim, rowStart: 1 } }),
    ...(downB && { downB }),
  };
}
