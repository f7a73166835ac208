/**
 * The adapters that the rows of a run have chosen, in the form of the choices of experts: for each list of adapters
 * whose changes are stacked, `array<vec2<u32>>` (rows, used) with the place in the stack and the bits of the scale.
 */
import { ADAPTERS_MAX } from "../../src/base/index.ts";
import type { BatchRow } from "./batch.ts";
import type { RowKind } from "./dispatch.ts";

/** A list of adapters, as in `OfferedChange`, and the rows that its table has. */
export interface ChosenList {
  readonly members: readonly number[];
  readonly rows: RowKind;
}

/** The place of a choice that kernels leave out. */
const NOTHING = 2 ** 32 - 1;

/** Maximum adapters of a list that a row has chosen. */
export const usedOf = (members: ChosenList["members"]): number => Math.min(ADAPTERS_MAX, members.length);

/** Words of a table of some rows. */
export const chosenWords = ({ members }: ChosenList, rows: number): number => 2 * usedOf(members) * rows;

/** Fills the table of a run in `words`; returns the number of words. */
export function writeChosen(
  { members, rows: kind }: ChosenList,
  rows: readonly BatchRow[],
  words: Uint32Array,
): number {
  const scales = new Float32Array(words.buffer, words.byteOffset, words.length);
  const used = usedOf(members);
  let at = 0;
  for (const { adapters, wanted } of rows) {
    if (kind === "wanted" && !wanted) continue;
    const end = at + 2 * used;
    for (const { adapter, scale } of adapters) {
      const place = members.indexOf(adapter);
      if (place < 0 || at === end) continue;
      words[at] = place;
      scales[at + 1] = scale;
      at += 2;
    }
    for (; at < end; at += 2) words[at] = NOTHING;
  }
  return at;
}
