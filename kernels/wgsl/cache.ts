/** Formats of the KV cache: cache_f32, cache_f16, cache_q8 and cache_q4 (.wgsl). Sums are always float32. */
import type { KvCacheType } from "../../src/base/index.ts";
import type { Step } from "../../src/engine/program/step.ts";

/** Values that share a scale, by format in 8 bits, the best first. */
export const CACHE_GROUPS = { q8_0: 32, "q8_0/16": 16, "q8_0/8": 8 } as const;
/** Values that share a scale in 4 bits. */
const FOUR_GROUP = 32;
export const CACHE_TYPES = ["f32", "f16", "q8_0", "q8_0/16", "q8_0/8", "q4_0"] as const;
export type CacheType = (typeof CACHE_TYPES)[number];

/** Heads are multiplied by a Hadamard matrix before they are rounded: rotation.wgsl. */
export const isRotated = (type: CacheType): boolean => type !== "f32" && type !== "f16";

/** The format of memories for a cache of that type: they have a bounded size, and every row reads all of one. */
export const memoryType = (type: CacheType, headDim: number): CacheType =>
  type === "f32" || headDim % 4 !== 0 ? "f32" : "f16";

/** Bytes of `count` values of a position. */
export function cacheBytes(type: CacheType, count: number): number {
  if (type === "f32" || type === "f16") return count * (type === "f32" ? 4 : 2);
  if (type === "q4_0") return count / 2 + (4 * count) / FOUR_GROUP;
  return count + (4 * count) / CACHE_GROUPS[type];
}

interface CacheOptions {
  readonly precise: boolean;
  readonly small?: boolean | undefined;
  readonly kvType?: KvCacheType | undefined;
}

/**
 * The wanted format if every head divides into groups; else 8 bits in place of 4, and float16 in place of 8. float32 if
 * the run is precise, if some head does not divide by four, and for small models unless fewer bits are wanted.
 */
export function cacheTypeOf(steps: readonly Step[], { precise, small = false, kvType }: CacheOptions): CacheType {
  const dims = steps.flatMap((step) =>
    step.op === "attention" || step.op === "latentAttention"
      ? [step.headDim, step.valueDim ?? step.headDim]
      : step.op === "choosePositions" || step.op === "compressedAttention"
        ? [step.headDim]
        : [],
  );
  const divide = (by: number): boolean => dims.every((dim) => dim % by === 0);
  if (precise) return "f32";
  if (kvType === "q4_0" && divide(FOUR_GROUP)) return "q4_0";
  const eight = (["q8_0", "q8_0/16", "q8_0/8"] as const).find((type) => divide(CACHE_GROUPS[type]));
  if (kvType !== undefined && kvType !== "f16" && eight) return eight;
  return small || !divide(4) ? "f32" : "f16";
}
