/** Formats of the KV cache: cache_f32.wgsl and cache_f16.wgsl. Sums are always float32. */
import type { Step } from "../../src/engine/program/step.ts";

export type CacheType = "f32" | "f16";

/** Bytes of a value. */
export const CACHE_BYTES: Readonly<Record<CacheType, number>> = { f32: 4, f16: 2 };

/** float16, unless the run is precise, the model is small, or some head or rotated part does not divide by four. */
export function cacheTypeOf(
  steps: readonly Step[],
  { precise, small = false }: { readonly precise: boolean; readonly small?: boolean | undefined },
): CacheType {
  const inFours = steps.every((step) => {
    if (step.op === "attention" || step.op === "latentAttention")
      return step.headDim % 4 === 0 && (step.valueDim ?? 0) % 4 === 0;
    return step.op !== "rope" || step.rope.rotaryDim % 4 === 0;
  });
  return precise || small || !inFours ? "f32" : "f16";
}
