/**
 * The default context length: as large as memory allows, in steps that clients know. The default number of sequences
 * that decode at once: on a GPU, as many as memory allows.
 */
import type { SlotBytes } from "../program/backend.ts";

/** Context lengths to try, from the longest to the minimum of every model. */
const STEPS = [262_144, 131_072, 65_536, 32_768, 16_384, 8192, 4096] as const;
const LEAST = 4096;
/** Longer prompts would take a CPU minutes to read. */
const CPU_MOST = 32_768;

/** Sequences on a CPU, and on a GPU whose memory is unknown; the default context has room for as many. */
const DEFAULT_SLOTS = 4;
/** Bounds on a GPU: fewer would make every second client wait, more would share its bandwidth too finely. */
const GPU_SLOTS = { least: 2, most: 16 };

/** Share of a CPU's memory for the constant parts: a slot for an image of Llama 3.2 Vision takes 210 MB. */
const ONCE_SHARE = 1 / 2;

interface ContextMemory {
  /** Bytes for all slots together. */
  readonly bytes: number;
  readonly slots: number;
  readonly onGpu: boolean;
}

/** The number of sequences before the context is known. */
export function plannedSlots(
  { once }: Pick<SlotBytes, "once">,
  { bytes = Infinity, onGpu }: { bytes: number | undefined; onGpu: boolean },
): number {
  if (onGpu || once === 0) return DEFAULT_SLOTS;
  return Math.max(1, Math.min(DEFAULT_SLOTS, Math.floor((bytes * ONCE_SHARE) / once)));
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

/** The number of full sequences with that context that fit in `bytes`; undefined: unknown memory. */
export function defaultSlots(
  { perToken, once, tokensMax = Infinity, slotsMax = Infinity }: SlotBytes,
  { bytes, ctxLen, onGpu }: { bytes: number | undefined; ctxLen: number; onGpu: boolean },
): number {
  const each = once + ctxLen * perToken;
  if (!onGpu || bytes === undefined || each === 0) return plannedSlots({ once }, { bytes, onGpu });
  const fitting = Math.floor(Math.min(bytes / each, tokensMax / ctxLen, slotsMax));
  return Math.min(GPU_SLOTS.most, Math.max(GPU_SLOTS.least, fitting));
}
