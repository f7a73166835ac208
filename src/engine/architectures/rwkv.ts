/**
 * Parts of RWKV 6 and 7: token shift, heads, the bonus of a row's own key. Semantics: src/models/rwkv6-base.cpp and
 * rwkv7-base.cpp of llama.cpp.
 */
import type { Buf, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { normSteps } from "./decoder.ts";
import { HEAD_DIM_MAX } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";

/** Epsilon of the norm of each head's output; the file's epsilon is for other norms. */
const HEAD_EPS = 64e-5;

/** Heads of the recurrence; each has a state (headDim, headDim). */
export interface Heads {
  readonly nHeads: number;
  readonly headDim: number;
}

export function headsOf({ keys, path, dim }: Model): Heads {
  const headDim = keys.count("wkv.head_size", { min: 1, max: HEAD_DIM_MAX });
  if (dim % headDim !== 0) {
    const expected = `a divisor of ${keys.arch}.embedding_length, ${dim}`;
    throw new AppError("bad_file", `${path}: '${keys.arch}.wkv.head_size': expected ${expected}, got ${headDim}`);
  }
  return { nHeads: dim / headDim, headDim };
}

/** Throws `bad_file` if the file keeps a number of rows for a layer that its architecture does not have. */
export function checkShifts({ keys, path }: Model, expected: number): void {
  const count = keys.count("token_shift_count", { min: 1, max: 2, fallback: 2 });
  if (count === expected) return;
  throw new AppError("bad_file", `${path}: '${keys.arch}.token_shift_count': expected ${expected}, got ${count}`);
}

/** The buffers of a layer, (rows, dim) each. */
export function buffersOfRwkv({ dim }: Model) {
  const buf = (name: string): Buf => ({ name: `rwkv.${name}`, dim });
  return {
    /** The previous row minus the row. */
    change: buf("change"),
    /** A mixture of the row and the previous one. */
    mixed: buf("mixed"),
    r: buf("r"),
    w: buf("w"),
    k: buf("k"),
    v: buf("v"),
    out: buf("out"),
    gate: buf("gate"),
  } as const satisfies Record<string, Buf>;
}

/** change = the previous row of h − h */
export function shift(model: Model, layer: number): Step[] {
  const { h } = buffersOf(model);
  const { change } = buffersOfRwkv(model);
  return [
    { op: "previousRow", out: change, x: h, layer },
    { op: "add", out: change, a: change, b: h, scale: -1 },
  ];
}

export const copy = (out: Buf, x: Buf): Step => ({ op: "slice", out, x, heads: 1, at: 0 });

/** mixed = h + change ⊙ w */
export function mix(model: Model, w: Weight): Step[] {
  const { h } = buffersOf(model);
  const { change, mixed } = buffersOfRwkv(model);
  return [
    copy(mixed, change),
    { op: "multiplyVector", x: mixed, w },
    { op: "add", out: mixed, a: mixed, b: h, scale: 1 },
  ];
}

/** The vectors in the rows of `NAME.weight`: (dim, count), or (dim, 1, 1, count). */
export function vectorsOf(model: Model, name: string, count: number): Weight[] {
  const dims = model.dims(`${name}.weight`)?.length === 2 ? [model.dim, count] : [model.dim, 1, 1, count];
  const all = model.kernel(`${name}.weight`, dims);
  return Array.from({ length: count }, (_, rowStart) => ({ ...all, outDim: 1, rowStart }));
}

/** A matrix of a layer with as many outputs as `out` has values. */
export function project(model: Model, name: string, { out, x, b }: { out: Buf; x: Buf; b?: Weight | undefined }): Step {
  return {
    op: "linear",
    out,
    x,
    w: model.matrix(name, { inDim: x.dim, outDim: out.dim }),
    ...(b && { b }),
  };
}

/** out += (w ⊙ k · r) v for each head, w (nHeads · headDim). Changes `mixed`. */
export function addBonus(model: Model, w: Weight, { nHeads, headDim }: Heads): Step[] {
  const { mixed, r, k, v, out } = buffersOfRwkv(model);
  const each: Weight = { ...w, inDim: headDim, outDim: 1, tensorRows: 1, experts: nHeads };
  const scores = { name: "rwkv.scores", dim: nHeads };
  return [
    { op: "multiply", out: mixed, a: k, b: r },
    { op: "headLinear", out: scores, x: mixed, w: each, transposed: false },
    { op: "multiply", out: mixed, a: v, b: scores },
    { op: "add", out, a: out, b: mixed, scale: 1 },
  ];
}

/** The layer norm of each head of `out`, with `time_mix_ln`. */
export function headNorm(model: Model, blk: string, { nHeads, headDim }: Heads): Step {
  const { out } = buffersOfRwkv(model);
  const byHead = (w: Weight): Weight => ({ ...w, inDim: headDim, outDim: nHeads, tensorRows: nHeads });
  const b = model.bias(`${blk}.time_mix_ln`, model.dim);
  const w = byHead(model.vector(`${blk}.time_mix_ln`, model.dim));
  return { op: "layerNorm", out, x: out, w, ...(b && { b: byHead(b) }), eps: HEAD_EPS };
}

/** The norm of embeddings. */
export function embeddingNorm(model: Model): Step[] {
  const { x } = buffersOf(model);
  return normSteps(model, "layer", { out: x, x, name: "token_embd_norm" });
}
