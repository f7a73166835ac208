/** Gives a sequence a slot that already holds as much of its prompt as possible. */
import type { Session } from "../program/backend.ts";
import { assert } from "../../base/index.ts";
import { NO_ADAPTERS } from "./adapter-set.ts";
import type { PrefixCache } from "./prefix-cache.ts";
import { wholeLength } from "./prompt.ts";
import type { Sequence } from "./sequence.ts";
import { placePrompt, reusableTokens, takeSlot, type Placement, type Slot } from "./slots.ts";

interface Parts {
  readonly slots: readonly Slot[];
  readonly session: Session;
  readonly prefixes: PrefixCache | undefined;
  /** A counter that orders uses. */
  readonly order: number;
}

/** Requires a free slot. */
export async function admit(sequence: Sequence, { slots, session, prefixes, order }: Parts): Promise<void> {
  const { tokens, media, request } = sequence;
  const adapters = request.adapters?.key ?? NO_ADAPTERS;
  const whole = (length: number): number => wholeLength(media, length);
  const limit = Math.min(reusableTokens(tokens), sequence.scores?.rowsDone ?? Infinity);
  const match = prefixes?.match(tokens, whole(limit), adapters);
  const cached = match ? whole(match.length) : 0;
  const anyLength = session.checkpoints === undefined;
  const placement = placePrompt(slots, tokens, { anyLength, limit, whole, cached, adapters });
  assert(placement, "a sequence is admitted while all slots are busy");
  const { slot, copyFrom } = placement;
  const loaded = copyFrom === "cache" ? await prefixes!.load(match!, slot.index) : undefined;
  const reused = loaded ? whole(loaded.length) : placement.reused;
  const { checkpoints } = loaded ?? (copyFrom === "cache" ? slot : (copyFrom ?? slot));
  if (copyFrom && copyFrom !== "cache") await session.copy({ from: copyFrom.index, to: slot.index, length: reused });
  if (!loaded) await goBack(placement, session);
  else if (reused > 0) session.checkpoints?.restore(slot.index, checkpoints.at(-1)!); // at that length
  takeSlot(slot, {
    tokens: tokens.slice(0, reused),
    adapters,
    checkpoints: checkpoints.filter(({ length }) => length <= reused),
    order,
  });
  sequence.slot = slot;
  sequence.cached = reused;
  if (sequence.generated.length === 0) sequence.reused = reused; // a preempted sequence keeps its first count
}

/** Resets a slot's states to the position where its prompt continues. A run from 0 resets them anyway. */
async function goBack({ slot, reused, copyFrom }: Placement, { checkpoints }: Session): Promise<void> {
  const source = copyFrom && copyFrom !== "cache" ? copyFrom : slot;
  const stands = !source.shifted && source.tokens.length === reused;
  if (!checkpoints || reused === 0 || (stands && source === slot)) return;
  const kept = source.checkpoints.find(({ length }) => length === reused);
  checkpoints.restore(slot.index, kept ?? (await checkpoints.save(source.index, reused)));
}
