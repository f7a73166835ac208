/**
 * Building blocks of encoders: patches as rows, and transformer blocks with bidirectional attention. Optional
 * parts are read from the file: biases, fused matrices, QK-norm, gates, limits. Semantics: `build_vit` and `build_ffn`
 * of llama.cpp (tools/mtmd/clip.cpp).
 */
import type { Activation, Buf, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { ClipModel, EncoderModel } from "./clip.ts";

export type NormKind = "layer" | "rms";

/** The buffers of a tower over patches. */
export const buffersOf = (model: ClipModel) => ({
  pixels: { name: "pixels", dim: 3 * model.patch * model.patch } as const satisfies Buf,
  ...towerBuffers(model),
});

/** The buffers of any tower. */
export function towerBuffers({ dim, nHeads, nKvHeads, headDim }: EncoderModel) {
  return {
    /** The residual stream. */
    x: { name: "x", dim },
    /** The input of a block: the normed stream. */
    h: { name: "h", dim },
    q: { name: "q", dim: nHeads * headDim },
    k: { name: "k", dim: nKvHeads * headDim },
    v: { name: "v", dim: nKvHeads * headDim },
    heads: { name: "heads", dim: nHeads * headDim },
    /** The output of a block, added to the stream. */
    y: { name: "y", dim },
  } as const satisfies Record<string, Buf>;
}

/** The input of each row: its pixels, followed by `added`, which are additional values. */
export function inputSteps(pixels: Buf, added?: Buf): Step[] {
  if (!added) return [{ op: "input", out: pixels }];
  const all = { name: "given", dim: pixels.dim + added.dim };
  return [
    { op: "input", out: all },
    { op: "slice", out: pixels, x: all, heads: 1, at: 0 },
    { op: "slice", out: added, x: all, heads: 1, at: pixels.dim },
  ];
}

/** From pixels to the stream. If there are kernels for several frames, each is applied to the still image. */
export function patchEmbedding(model: ClipModel, { frames = 1 } = {}): Step[] {
  const { patch, dim } = model;
  const { pixels, x, y } = buffersOf(model);
  const kernel = (name: string): Weight => model.kernel(name, [patch, patch, 3, dim]);
  const steps: Step[] = [{ op: "linear", out: x, x: pixels, w: kernel("v.patch_embd.weight") }];
  for (let frame = 1; frame < frames; frame++) {
    steps.push(
      { op: "linear", out: y, x: pixels, w: kernel(`v.patch_embd.weight.${frame}`) },
      { op: "add", out: x, a: x, b: y, scale: 1 },
    );
  }
  return steps;
}

/** A norm with the weights of `name`, over whole rows or per head, depending on `len`. */
export function norm(
  model: EncoderModel,
  kind: NormKind,
  { out, x, name, len = x.dim, eps = model.eps }: { out: Buf; x: Buf; name: string; len?: number; eps?: number },
): Step {
  const w = model.vector(name, len);
  if (kind === "rms") return { op: "rmsNorm", out, x, w, eps };
  const b = model.bias(name, len);
  return { op: "layerNorm", out, x, w, ...(b && { b }), eps };
}

export interface LayerOptions {
  readonly norm: NormKind;
  /** Steps on a query or key after its norm. */
  readonly turn?: (x: Buf, heads: number) => Step[];
  /** Steps on attention's values, before they are used. */
  readonly values?: readonly Step[];
  /** 1 / sqrt(headDim) */
  readonly scale?: number;
  /** ffn_up and ffn_down may be swapped in the file; their shapes tell. */
  readonly mayBeSwapped?: boolean;
  /** Steps after a layer. */
  readonly after?: (layer: number) => readonly Step[];
  /** Tensors `attn_gate` and `ffn_gate` have factors on the outputs of attention and MLP. */
  readonly isGated?: boolean;
  /** True for layers in which rows attend only to their span. */
  readonly inSpans?: (layer: number) => boolean;
}

/** All layers, from `x` to `x`. */
export function layers(model: EncoderModel, options: LayerOptions): Step[] {
  const { nLayers, nHeads, nKvHeads, dim, path, section } = model;
  if (nHeads === 0 || nKvHeads === 0 || dim % nHeads !== 0) {
    const got = nKvHeads === 0 ? nKvHeads : nHeads;
    const expected = `heads that divide ${dim} dimensions`;
    throw new AppError("bad_file", `${path}: 'clip.${section}.attention.head_count': expected ${expected}, got ${got}`);
  }
  return Array.from({ length: nLayers }, (_, layer) => layerSteps(model, layer, options)).flat();
}

function layerSteps(model: EncoderModel, layer: number, options: LayerOptions): Step[] {
  const { x, h, y } = towerBuffers(model);
  const blk = `${model.prefix}.blk.${layer}`;
  const join = (part: "attn" | "ffn"): Step[] => [
    ...(model.has(`${blk}.${part}_post_norm.weight`)
      ? [norm(model, options.norm, { out: y, x: y, name: `${blk}.${part}_post_norm` })]
      : []),
    { op: "add", out: x, a: x, b: y, scale: options.isGated ? model.scalar(`${blk}.${part}_gate`) : 1 },
  ];
  const scale = model.has(`${blk}.out_scale.weight`) ? model.values(`${blk}.out_scale`, 1)![0]! : 1;
  return [
    norm(model, options.norm, { out: h, x, name: `${blk}.ln1` }),
    ...attention(model, layer, options),
    ...join("attn"),
    norm(model, options.norm, { out: h, x, name: `${blk}.ln2` }),
    ...feedForward(model, layer, options),
    ...join("ffn"),
    ...(scale === 1 ? [] : [{ op: "scale", x, by: scale } as const]),
    ...(options.after?.(layer) ?? []),
  ];
}

/** Attention of a layer, from `h` to `y`. */
function attention(model: EncoderModel, layer: number, options: LayerOptions): Step[] {
  const { nHeads, nKvHeads, headDim } = model;
  const { q, k, v, heads, y } = towerBuffers(model);
  const { turn, values = [], scale = 1 / Math.sqrt(headDim) } = options;
  const blk = `${model.prefix}.blk.${layer}`;
  const headNorm = (x: Buf, name: string): Step[] =>
    model.has(`${name}.weight`) ? [norm(model, "rms", { out: x, x, name, len: headDim })] : [];
  const inSpans = options.inSpans?.(layer) ?? false;
  return [
    ...queryKeyValue(model, blk),
    ...headNorm(q, `${blk}.attn_q_norm`),
    ...headNorm(k, `${blk}.attn_k_norm`),
    ...(turn ? [...turn(q, nHeads), ...turn(k, nKvHeads)] : []),
    ...values,
    {
      op: "bidirectionalAttention",
      out: heads,
      q,
      k,
      v,
      nHeads,
      headDim,
      scale,
      ...(nKvHeads !== nHeads && { nKvHeads }),
      ...(inSpans && { inSpans }),
    },
    ...project(model, `${blk}.attn_out`, { out: y, x: heads }),
  ];
}

function queryKeyValue(model: EncoderModel, blk: string): Step[] {
  const { h, q, k, v } = towerBuffers(model);
  const outs = [
    [q, "attn_q"],
    [k, "attn_k"],
    [v, "attn_v"],
  ] as const;
  if (!model.has(`${blk}.attn_qkv.weight`)) {
    return outs.flatMap(([out, name]) => project(model, `${blk}.${name}`, { out, x: h }));
  }
  const fused = { name: "qkv", dim: q.dim + k.dim + v.dim };
  const starts = [0, q.dim, q.dim + k.dim];
  return [
    ...project(model, `${blk}.attn_qkv`, { out: fused, x: h }),
    ...outs.map(([out], i): Step => ({ op: "slice", out, x: fused, heads: 1, at: starts[i]! })),
  ];
}

/** The MLP of a layer, from `h` to `y`: gated if the file has a gate. */
function feedForward(model: EncoderModel, layer: number, { mayBeSwapped = false }: LayerOptions): Step[] {
  const { dim, ffnDim, act } = model;
  const { h, y } = towerBuffers(model);
  const blk = `${model.prefix}.blk.${layer}`;
  const isSwapped = mayBeSwapped && model.shape(`${blk}.ffn_down`)?.[0] === dim && ffnDim !== dim;
  const [upName, downName] = isSwapped ? ["ffn_down", "ffn_up"] : ["ffn_up", "ffn_down"];
  const [up, gate] = [
    { name: "mlp.up", dim: ffnDim },
    { name: "mlp.gate", dim: ffnDim },
  ];
  const inner = project(model, `${blk}.${upName}`, { out: up, x: h });
  const gated = model.has(`${blk}.ffn_gate.weight`);
  const acted: Step[] = gated
    ? [...project(model, `${blk}.ffn_gate`, { out: gate, x: h }), ...gateWith(up, gate, act)]
    : activate(up, act);
  return [...inner, ...acted, ...project(model, `${blk}.${downName}`, { out: y, x: up })];
}

/** up = up ⊙ act(gate) */
function gateWith(up: Buf, gate: Buf, act: EncoderModel["act"]): Step[] {
  if (act === "gelu_quick") return [...activate(gate, act), { op: "multiply", out: up, a: up, b: gate }];
  return [{ op: "multiply", out: up, a: up, b: gate, act }];
}

/** x = act(x) */
function activate(x: Buf, act: EncoderModel["act"]): Step[] {
  if (act !== "gelu_quick") return [{ op: "activate", x, act }];
  const scaled = { name: "gelu_quick", dim: x.dim };
  return [
    { op: "slice", out: scaled, x, heads: 1, at: 0 }, // a copy
    { op: "scale", x: scaled, by: 1.702 },
    { op: "multiply", out: x, a: x, b: scaled, act: "sigmoid" },
  ];
}

/** out = W · x + b, with input and output clamped to the file's limits for the matrix. */
export function project(model: EncoderModel, name: string, { out, x }: { out: Buf; x: Buf }): Step[] {
  const before = limitsOf(model, name, "input");
  const after = limitsOf(model, name, "output");
  const limited = { name: "limited", dim: x.dim };
  return [
    ...(before
      ? ([
          { op: "slice", out: limited, x, heads: 1, at: 0 }, // x has other readers
          { op: "clamp", x: limited, ...before },
        ] as const)
      : []),
    { op: "linear", out, x: before ? limited : x, ...model.linear(name, { inDim: x.dim, outDim: out.dim }) },
    ...(after ? [{ op: "clamp", x: out, ...after } as const] : []),
  ];
}

/** Limits of values; undefined if the file has none. */
function limitsOf(
  model: EncoderModel,
  name: string,
  side: "input" | "output",
): { min: number; max: number } | undefined {
  const read = (which: "min" | "max"): number | undefined => {
    const tensor = `${name}.${side}_${which}`;
    return model.has(tensor) ? model.floats(model.plain(tensor, { inDim: 1, outDim: 1 }))[0]! : undefined;
  };
  const [min, max] = [read("min"), read("max")];
  return min === undefined && max === undefined ? undefined : { min: min ?? -Infinity, max: max ?? Infinity };
}
/** A linear step, an activation and a second linear step, from `x` to `out`. */
export function twoLinears(
  model: EncoderModel,
  [first, second]: readonly [string, string],
  { out, x, act }: { out: Buf; x: Buf; act: Activation },
): Step[] {
  const inner = { name: `${first}.out`, dim: model.rows(first) ?? x.dim };
  return [
    ...project(model, first, { out: inner, x }),
    { op: "activate", x: inner, act },
    ...project(model, second, { out, x: inner }),
  ];
}
