/** The default context length: as large as memory allows, in the steps that clients know. */
import type { SlotBytes } from "../program/backend.ts";

/** From the longest to the minimum for every model. */
const STEPS = [262_144, 131_072, 65_536, 32_768, 16_384, 8192, 4096] as const;
const LEAST = 4096;
/** A CPU takes minutes to read a longer prompt. */
const CPU_MOST = 32_768;

interface ContextMemory {
  /** Bytes for all slots together. */
  readonly bytes: number;
  readonly slots: number;
  readonly onGpu: boolean;
}

/** The longest context for which all slots fit when full, including their constant part. */
export function defaultCtxLen(
  { perToken, once, tokensMax = Infinity }: SlotBytes,
  { bytes, slots, onGpu }: ContextMemory,
): number {
  const most = Math.min(onGpu ? STEPS[0] : CPU_MOST, Math.floor(tokensMax / slots));
  const fitting = STEPS.find((step) => step <= most && slots * (once + step * perToken) <= bytes);
  return fitting ?? Math.min(LEAST, most);
}
