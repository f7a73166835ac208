/**
 * Tracks the tokens in each KV slot, and chooses a slot for a new prompt: the free one that shares the longest prefix,
 * or the oldest one after a longer prefix is copied into it from another slot or from the cache. A slot that continues
 * only from checkpoints offers only prefixes that end at one. Bookkeeping only; the KV itself belongs to the session.
 */
import type { Checkpoint } from "../program/kept-slots.ts";
import { assert } from "../../base/index.ts";
import { NO_ADAPTERS } from "./adapter-set.ts";

/** A prefix in another slot is copied only if it saves at least this many tokens of prefill. */
const COPY_MIN_TOKENS = 16;

export interface Slot {
  readonly index: number;
  /** Leading tokens, or keys of media rows, whose cached keys and values equal a fresh prefill's. */
  tokens: number[];
  /** Key of the adapters that made them (`AdapterSet`). */
  adapters: string;
  /** A context shift has moved the content after `tokens`: it is usable for the running sequence only. */
  shifted: boolean;
  busy: boolean;
  /** Order of last use; the oldest slot is taken first. */
  usedAt: number;
  /** Checkpoints of the slot, the shortest first; empty if it continues from any length. */
  checkpoints: readonly Checkpoint[];
}

/** A slot for a prompt: it holds `reused` tokens once the copies are made. */
export interface Placement {
  readonly slot: Slot;
  readonly reused: number;
  readonly copyFrom?: Slot | "cache";
}

export function makeSlots(count: number): Slot[] {
  return Array.from({ length: count }, (_, index) => {
    return { index, tokens: [], adapters: NO_ADAPTERS, shifted: false, busy: false, usedAt: 0, checkpoints: [] };
  });
}

/** Number of leading tokens that a prompt shares with a slot: 0 if other adapters made the slot's content. */
function sharedPrefix(slot: Slot, prompt: readonly number[], adapters: string): number {
  if (slot.adapters !== adapters) return 0;
  const limit = Math.min(slot.tokens.length, prompt.length);
  let n = 0;
  while (n < limit && slot.tokens[n] === prompt[n]) n++;
  return n;
}

/**
 * Tokens of a prompt that are evaluated even if a slot holds them all. Two, because backends add a single row in
 * another order than several rows: with one token, a repeated request would get other logits than the first.
 */
const EVALUATED_MIN_TOKENS = 2;

/** The longest length up to `limit` from which a slot can continue: its own, or a checkpoint's. */
function resumableLength({ tokens, shifted, checkpoints }: Slot, limit: number): number {
  if (!shifted && tokens.length <= limit) return tokens.length;
  return checkpoints.findLast(({ length }) => length <= limit)?.length ?? 0;
}

/**
 * Chooses a slot for a prompt; undefined while all are busy.
 * @param anyLength a slot continues from every length up to its own; otherwise from checkpoints only
 * @param limit maximum leading tokens that need not be evaluated
 * @param whole returns the longest length up to another at which a run of this prompt may begin
 * @param cached prompt tokens in the cache
 * @param adapters key of the prompt's adapters
 */
export function placePrompt(
  slots: readonly Slot[],
  prompt: readonly number[],
  options: {
    anyLength: boolean;
    limit?: number;
    whole?: (length: number) => number;
    cached?: number;
    adapters?: string;
  },
): Placement | undefined {
  const { anyLength, limit = reusableTokens(prompt), whole = (length) => length } = options;
  const { cached = 0, adapters = NO_ADAPTERS } = options;
  const shared = slots.map((slot) => {
    const same = Math.min(sharedPrefix(slot, prompt, adapters), limit);
    return anyLength ? whole(same) : resumableLength(slot, same); // checkpoints are at ends of runs
  });
  let best: Slot | undefined;
  for (const slot of slots) {
    if (slot.busy) continue;
    if (!best || better(slot, best, shared)) best = slot;
  }
  if (!best) return undefined;
  const donor = slots.reduce((a, b) => (shared[b.index]! > shared[a.index]! ? b : a));
  const own = shared[best.index]!;
  const lent = shared[donor.index]!;
  const most = Math.max(lent, cached);
  if ((donor === best && lent === most) || most < own + COPY_MIN_TOKENS) return { slot: best, reused: own };
  const oldest = slots.filter((slot) => !slot.busy).reduce((a, b) => (b.usedAt < a.usedAt ? b : a));
  return { slot: oldest, reused: most, copyFrom: lent === most ? donor : "cache" };
}

/** Maximum leading tokens of a prompt that need not be evaluated. */
export const reusableTokens = (prompt: readonly number[]): number => Math.max(0, prompt.length - EVALUATED_MIN_TOKENS);

function better(a: Slot, b: Slot, shared: readonly number[]): boolean {
  const gain = shared[a.index]! - shared[b.index]!;
  return gain !== 0 ? gain > 0 : a.usedAt < b.usedAt;
}

/** Marks a slot as taken by a prompt whose first `reused` tokens it holds already. */
export function takeSlot(
  slot: Slot,
  { tokens, adapters, checkpoints, order }: Pick<Slot, "tokens" | "adapters" | "checkpoints"> & { order: number },
): void {
  assert(!slot.busy, `slot ${slot.index} is taken twice`);
  Object.assign(slot, { tokens, adapters, checkpoints, shifted: false, busy: true, usedAt: order });
}

/** Checkpoints per slot: enough for the number of turns that users go back. */
const CHECKPOINTS_MAX = 8;
/** Bytes of the checkpoints of all slots. */
const CHECKPOINT_BYTES_MAX = 512 * 2 ** 20;

/**
 * Adds a checkpoint to a slot; if there are too many, drops the ones with the nearest neighbours, but never the last.
 */
export function keepCheckpoint(slot: Slot, checkpoint: Checkpoint, { slots }: { slots: number }): void {
  const share = CHECKPOINT_BYTES_MAX / slots;
  const most = Math.min(CHECKPOINTS_MAX, Math.floor(share / Math.max(1, checkpoint.bytes)));
  const kept = [...slot.checkpoints.filter(({ length }) => length < checkpoint.length), checkpoint];
  while (kept.length > Math.max(1, most)) {
    const gaps = kept.slice(0, -1).map((_, i) => kept[i + 1]!.length - (kept[i - 1]?.length ?? 0));
    kept.splice(gaps.indexOf(Math.min(...gaps)), 1);
  }
  slot.checkpoints = most > 0 ? kept : [];
}

/** Marks a slot's content as unknown. */
export function forget(slot: Slot): void {
  slot.tokens = [];
  slot.checkpoints = [];
  slot.shifted = false;
}
