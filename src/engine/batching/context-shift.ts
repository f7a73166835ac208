/** A context shift of a sequence, its slot and the session together. */
import type { Session } from "../program/backend.ts";
import type { Sequence } from "./sequence.ts";
import type { Slot } from "./slots.ts";

/** Drops tokens after the first `keep`; later ones move down, in the slot too. */
export function shiftContext(
  sequence: Sequence,
  { slot, keep, discard }: { slot: Slot; keep: number; discard: number },
  session: Session,
): void {
  session.shift(slot.index, { keep, discard, length: sequence.cached });
  slot.tokens.length = Math.min(slot.tokens.length, keep);
  slot.checkpoints = slot.checkpoints.filter((each) => each.length <= keep);
  slot.shifted = true;
  sequence.tokens.splice(keep, discard);
  sequence.truncated ||= keep < sequence.prompt.length;
  sequence.cached -= discard;
}
