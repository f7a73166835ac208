/** The SIMD backend at each level that this machine can run. */
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { wasmBackend } from "../../../../src/engine/backends/host/wasm.ts";
import { makeSimdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { levelsHere } from "../../../../src/engine/backends/host/simd-library.ts";
import { drawn } from "../../../seed.ts";

export const simdLevels: readonly { readonly level: string; readonly backend: Backend }[] = levelsHere().map(
  ({ level }) => ({ level, backend: makeSimdBackend({ level }) }),
);

/** These, and the same kernels as WebAssembly. */
export const everyLevel = [...simdLevels, { level: "wasm", backend: wasmBackend }];

/**
 * The best level of a list, and another that the run draws. `selftest.test.ts` and conformance.test.ts prove each
 * level's arithmetic; what is built on it is the same code at every level.
 * @param stream the name of the test
 */
export function twoLevels<T extends { readonly level: string }>(stream: string, levels: readonly T[]): T[] {
  return [...levels.slice(0, 1), ...drawn(stream, levels.slice(1), 1)];
}
