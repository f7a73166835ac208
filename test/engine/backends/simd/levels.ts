/** The SIMD backend at each level that this machine can run. */
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { wasmBackend } from "../../../../src/engine/backends/host/wasm.ts";
import { makeSimdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { levelsHere } from "../../../../src/engine/backends/host/simd-library.ts";

export const simdLevels: readonly { readonly level: string; readonly backend: Backend }[] = levelsHere().map(
  ({ level }) => ({ level, backend: makeSimdBackend({ level }) }),
);

/** These, and the same kernels as WebAssembly. */
export const everyLevel = [...simdLevels, { level: "wasm", backend: wasmBackend }];
