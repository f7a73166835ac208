/** Checkpoints and prefixes that stay in a slot when its sequence pauses or leaves. */
import type { Session } from "../program/backend.ts";
import type { PrefixCache } from "./prefix-cache.ts";
import type { Sequence } from "./sequence.ts";
import { keepCheckpoint, type Slot } from "./slots.ts";

/** Saves a checkpoint of a sequence's slot if nothing else would let the slot continue there. */
export async function saveCheckpoint(
  { slot, cached }: Sequence,
  { session, slots }: { readonly session: Session; readonly slots: number },
): Promise<void> {
  if (!session.checkpoints || !slot || cached === 0 || slot.shifted || slot.tokens.length !== cached) return;
  keepCheckpoint(slot, await session.checkpoints.save(slot.index, cached), { slots });
}

/** A slot whose states include rejected drafts is reset to the state before them. */
export function rollBack(sequence: Sequence, slot: Slot, { checkpoints }: Session): void {
  sequence.cached = checkpoints?.standing?.(slot.index, sequence.cached) ?? sequence.cached;
  slot.tokens.length = sequence.cached;
}

export async function keepPrefix(
  { index, tokens, adapters, checkpoints }: Slot,
  prefixes: PrefixCache | undefined,
): Promise<void> {
  try {
    await prefixes?.save(index, tokens, checkpoints, adapters);
  } catch {
    // Without memory for a copy, the prefix stays in the slot until the slot is reused.
  }
}
