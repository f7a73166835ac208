/** The SIMD backend at each level that this machine can run. */
import type { Backend } from "../../../src/backend/backend.ts";
import { makeSimdBackend } from "../../../src/backend/simd/index.ts";
import { levelsHere } from "../../../src/backend/simd/library.ts";

export const simdLevels: readonly { readonly level: string; readonly backend: Backend }[] = levelsHere().map(
  ({ level }) => ({ level, backend: makeSimdBackend({ level }) }),
);
