/**
 * The only buffer that a run writes, as kernels see it: `array<vec4<u32>>`, element 0 is the header, then two elements
 * per row.
 *
 * - element 0: rows, wanted rows, sequences, 0
 * - element 1 + 2r: token, slot, position, and the row index of wanted row r (not of row r)
 * - element 2 + 2r: first row and end of the row's sequence in this run, last row of sequence r (not of row r), 0
 */

/** A row of a run. */
export interface BatchRow {
  readonly token: number;
  readonly slot: number;
  readonly position: number;
  /** The rows `first` … `end − 1` of the run are this row's sequence. */
  readonly first: number;
  readonly end: number;
  readonly wanted: boolean;
}

const WORDS_PER_ROW = 8;

/** Words of a batch of at most `rows` rows. */
export const batchWords = (rows: number): number => 4 + WORDS_PER_ROW * rows;

/** Fills `words` and returns the number of sequences: neighbouring rows of a slot belong together. */
export function writeBatch(rows: readonly BatchRow[], words: Uint32Array): number {
  let wanted = 0;
  let sequences = 0;
  for (const [r, row] of rows.entries()) {
    const at = 4 + WORDS_PER_ROW * r;
    words[at] = row.token;
    words[at + 1] = row.slot;
    words[at + 2] = row.position;
    words[at + 4] = row.first;
    words[at + 5] = row.end;
    if (row.wanted) words[4 + WORDS_PER_ROW * wanted++ + 3] = r;
    if (rows[r + 1]?.slot !== row.slot) words[4 + WORDS_PER_ROW * sequences++ + 6] = r;
  }
  words[0] = rows.length;
  words[1] = wanted;
  words[2] = sequences;
  return sequences;
}
