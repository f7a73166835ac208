/**
 * Pools the hidden states of a text's tokens into one vector of unit length. Sums are in float64. The key
 * `pooling_type` and its values are llama.cpp's (`llama_pooling_type`, llama.h).
 */
import { AppError } from "../../base/index.ts";
import type { Gguf, Metadata } from "../formats/gguf/gguf.ts";

/** The tokens that are pooled: the mean of all, the first ([CLS]) or the last. */
export type Pooling = "mean" | "first" | "last";

/** `llama_pooling_type` of rerankers. */
export const RANK = 4;
const POOLINGS: Readonly<Record<number, Pooling>> = { 1: "mean", 2: "first", 3: "last" };

/** llama.cpp's value for an unspecified pooling: -1, also read as 32 unsigned bits. */
const UNSPECIFIED: readonly unknown[] = [-1, 0xffffffff];

/** The pooling that a file names; undefined if missing or unspecified. */
export function statedPooling(metadata: Metadata, arch: string): unknown {
  const type = metadata.get(`${arch}.pooling_type`);
  return UNSPECIFIED.includes(type) ? undefined : type;
}

/**
 * A model's pooling. If the file says nothing or "none": the mean for an encoder, else the last token, the only one
 * that has attended to all others.
 */
export function poolingOf(gguf: Gguf, { arch, encoder }: { arch: string; encoder: boolean }): Pooling {
  const type = statedPooling(gguf.metadata, arch) ?? 0;
  const fallback = encoder ? "mean" : "last";
  if (type === 0) return fallback;
  const pooling = typeof type === "number" ? POOLINGS[type] : undefined;
  if (pooling) return pooling;
  if (type === RANK) {
    const isMean = gguf.metadata.get(`${arch}.classifier.pooling_type`) === 1;
    return isMean ? "mean" : encoder ? "first" : "last"; // the token that its head reads
  }
  const known = "0 (none), 1 (mean), 2 (cls), 3 (last) or 4 (rank)";
  throw new AppError("unsupported", `${gguf.path}: '${arch}.pooling_type': expected ${known}, got ${String(type)}`);
}

/** Adds `rows` states, (rows, dim), to a sum, (dim). */
export function addStates(sum: Float64Array, states: Float32Array): void {
  const dim = sum.length;
  for (let at = 0; at < states.length; at += dim) for (let i = 0; i < dim; i++) sum[i]! += states[at + i]!;
}

/** The same direction with length 1; zeros stay zeros. */
export function normalized(values: Float64Array | Float32Array): Float32Array {
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += values[i]! * values[i]!;
  const factor = squares > 0 ? 1 / Math.sqrt(squares) : 0;
  return Float32Array.from(values, (value) => value * factor);
}
