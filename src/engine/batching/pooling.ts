/**
 * From the hidden states of a text's tokens to one vector: pooling, then unit length. Sums are in float64. The key
 * `pooling_type` and its values are llama.cpp's (`llama_pooling_type`, llama.h).
 */
import { RANK } from "./rank-head.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf, Metadata } from "../formats/gguf/gguf.ts";

/** Which tokens make the vector: all by their mean, the first ([CLS]) or the last. */
export type Pooling = "mean" | "first" | "last";

const POOLINGS: Readonly<Record<number, Pooling>> = { 1: "mean", 2: "first", 3: "last" };

/** What llama.cpp writes where nobody said how: -1, which as 32 bits without a sign is this. */
const UNSPECIFIED: readonly unknown[] = [-1, 0xffffffff];

/** The value of a file's key; undefined where it says nothing, or that nobody said. */
export function statedPooling(metadata: Metadata, arch: string): unknown {
  const type = metadata.get(`${arch}.pooling_type`);
  return UNSPECIFIED.includes(type) ? undefined : type;
}

/**
 * How a model's states are pooled. Where the file does not say or says "none": an encoder by the mean, any other model
 * by its last token, the only one that has seen all the others.
 */
export function poolingOf(gguf: Gguf, { arch, encoder }: { arch: string; encoder: boolean }): Pooling {
  const type = statedPooling(gguf.metadata, arch) ?? 0;
  const fallback = encoder ? "mean" : "last";
  if (type === 0) return fallback;
  const pooling = typeof type === "number" ? POOLINGS[type] : undefined;
  if (pooling) return pooling;
  if (type === RANK) return encoder ? "first" : "last"; // what its head looks at
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
