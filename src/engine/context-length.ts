/** How long a context is where nobody says: as long as the memory there is allows, in steps that clients know. */
import type { Program } from "../backend/backend.ts";
import { kvStates } from "../backend/sequence-state.ts";

/** From the longest to what every model gets. */
const STEPS = [262_144, 131_072, 65_536, 32_768, 16_384, 8192, 4096] as const;
const LEAST = 4096;
/** A prompt that fills more takes a CPU minutes to read. */
const CPU_MOST = 32_768;
/** Of keys and values, at their widest. */
const VALUE_BYTES = 4;

interface ContextMemory {
  /** Bytes that the KV cache of all slots may take. */
  readonly bytes: number;
  readonly slots: number;
  readonly onGpu: boolean;
}

/** Bytes of keys and values that one token of one sequence keeps. */
export function kvBytesPerToken({ steps }: Pick<Program, "steps">): number {
  const values = kvStates(steps).map(({ nKvHeads, keyDim, valueDim }) => nKvHeads * (keyDim + valueDim));
  return values.reduce((sum, each) => sum + each, 0) * VALUE_BYTES;
}

/** The longest context whose KV cache fits, full, for all slots. */
export function defaultCtxLen(program: Pick<Program, "steps">, { bytes, slots, onGpu }: ContextMemory): number {
  const most = onGpu ? STEPS[0] : CPU_MOST;
  const each = kvBytesPerToken(program) * slots;
  return STEPS.find((step) => step <= most && step * each <= bytes) ?? LEAST;
}
