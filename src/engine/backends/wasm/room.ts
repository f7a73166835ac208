/** The limit of WebAssembly's 32-bit addresses, checked before anything is copied. */
import { AppError } from "../../../base/index.ts";
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import type { LoadOptions, Program } from "../../program/backend.ts";
import { weightsOf } from "../../program/describe.ts";
import { slotBytes } from "../simd/kv.ts";

export const ADDRESSED_BYTES = 2 ** 32;

/** Throws `too_large` if the weights and the KV cache alone exceed the addresses. */
export function checkRoom(program: Program, options: LoadOptions): void {
  const weights = weightBytes(program);
  const { perToken, once } = slotBytes(program, options);
  const cache = options.slots * (once + options.ctxLen * perToken);
  if (weights + cache <= ADDRESSED_BYTES) return;
  const got = `${weights} bytes of weights and ${cache} of KV cache`;
  const way = "the other backends have no such limit (HEARTH_BACKEND=auto)";
  const limit = `expected at most ${ADDRESSED_BYTES} bytes in all, which WebAssembly can address`;
  throw new AppError("too_large", `${program.weights.path}: ${limit}, got ${got}; ${way}`);
}

/** Bytes of the tensors that a program reads. Each counts once. */
export function weightBytes({ steps }: Pick<Program, "steps">): number {
  const tensors = new Map<string, number>();
  for (const w of steps.flatMap((step) => weightsOf(step))) {
    const bytes = w.experts * w.tensorRows * rowBytesOf(w);
    tensors.set(w.name, Math.max(bytes, tensors.get(w.name) ?? 0));
  }
  return [...tensors.values()].reduce((sum, bytes) => sum + bytes, 0);
}
