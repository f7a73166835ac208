/** The memory for the KV cache of a model on a GPU. */
import { expertSteps } from "../backends/experts.ts";
import { rowBytesOf } from "../formats/quant/blocks.ts";
import type { Program } from "../program/backend.ts";
import { weightsOf } from "../program/describe.ts";

/** Share of a GPU's memory for the cache of a model that does not fit with its experts anyway. */
const BESIDE_EXPERTS = 1 / 4;

/**
 * Bytes for the KV cache: half of the memory that the weights leave free. For a model that does not fit, half of the
 * memory that it would leave free without its experts, because these can be on the CPU.
 */
export function gpuCacheBytes(
  program: Pick<Program, "steps">,
  { memory, weights }: { readonly memory: number; readonly weights: number },
): number {
  if (weights < memory) return (memory - weights) / 2;
  const others = weights - expertBytes(program);
  return Math.max(0, Math.min((memory - others) / 2, memory * BESIDE_EXPERTS));
}

/** Bytes of the experts that the CPU can compute. */
function expertBytes(program: Pick<Program, "steps">): number {
  const weights = expertSteps(program).flatMap((step) => weightsOf(step, "experts"));
  const distinct = [...new Map(weights.map((weight) => [weight.name, weight])).values()];
  return distinct.reduce((sum, weight) => sum + weight.experts * weight.tensorRows * rowBytesOf(weight), 0);
}
