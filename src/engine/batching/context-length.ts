/** The default context length: as long as memory allows, in the steps that clients know. */
import type { SlotBytes } from "../program/backend.ts";

/** From the longest to what every model gets. */
const STEPS = [262_144, 131_072, 65_536, 32_768, 16_384, 8192, 4096] as const;
const LEAST = 4096;
/** A prompt that fills more takes a CPU minutes to read. */
const CPU_MOST = 32_768;

interface ContextMemory {
  /** Bytes that all slots may take. */
  readonly bytes: number;
  readonly slots: number;
  readonly onGpu: boolean;
}

/** The longest context that fits, full, for all slots, beside what they keep whatever their length. */
export function defaultCtxLen({ perToken, once }: SlotBytes, { bytes, slots, onGpu }: ContextMemory): number {
  const most = onGpu ? STEPS[0] : CPU_MOST;
  return STEPS.find((step) => step <= most && slots * (once + step * perToken) <= bytes) ?? LEAST;
}
