/**
 * The rows of a run, as kernels see it: `array<vec4<u32>>`, element 0 is the header, then three
 * elements per row.
 *
 * - element 0: rows, wanted rows, sequences, 0
 * - element 1 + 3r: token, slot, cell, and the row index of wanted row r (not of row r)
 * - element 2 + 3r: first row and end of the row's sequence in this run, last row of sequence r (not of row r), first
 *   cell of the row's span
 * - element 3 + 3r: time, height and width of the row's position, the cell after its span
 *
 * The token of a row that is given as a vector is the bitwise complement of the vector's index.
 */
import type { RowAdapter } from "../../src/engine/program/backend.ts";

/** A row of a run. */
export interface BatchRow {
  /** The id; for a row given as a vector −1 − i, where i is the vector's index in the run. */
  readonly token: number;
  readonly slot: number;
  /** Index of its keys and values in its slot: the number of tokens before it. */
  readonly cell: number;
  /** The rows `first` … `end − 1` of the run are this row's sequence. */
  readonly first: number;
  readonly end: number;
  /** Time, height and width. */
  readonly position: readonly [number, number, number];
  /** The cells that its span sees, or its own. */
  readonly span: { readonly first: number; readonly end: number };
  readonly wanted: boolean;
  /** Rows of its sequence's memory; 0: it has none. */
  readonly remembered: number;
  readonly adapters: readonly RowAdapter[];
}

const WORDS_PER_ROW = 12;

/**
 * A batch bound as a uniform buffer, which devices do not count as a storage buffer: `array<vec4<u32>, 4096>`, as large
 * as such a binding can be on every device.
 */
export const UNIFORM_BATCH = { bytes: 65_536, rowsMax: Math.floor((65_536 / 4 - 4) / WORDS_PER_ROW) };

/** Words of a batch of at most `rows` rows. */
export const batchWords = (rows: number): number => 4 + WORDS_PER_ROW * rows;

/** The place of a row's token, in bytes. */
export const tokenOffset = (row: number): number => 4 * batchWords(row);

/** The rows as cross attention reads them: the cell of each is the last row of its memory, or −1. */
export const asRemembered = (rows: readonly BatchRow[]): BatchRow[] =>
  rows.map((row) => ({ ...row, cell: row.remembered - 1 }));

/** Fills `words` and returns the number of sequences: neighbouring rows of a slot belong together. */
export function writeBatch(rows: readonly BatchRow[], words: Uint32Array): number {
  let wanted = 0;
  let sequences = 0;
  for (const [r, row] of rows.entries()) {
    const at = 4 + WORDS_PER_ROW * r;
    words[at] = row.token;
    words[at + 1] = row.slot;
    words[at + 2] = row.cell;
    words[at + 4] = row.first;
    words[at + 5] = row.end;
    words[at + 7] = row.span.first;
    words[at + 8] = row.position[0];
    words[at + 9] = row.position[1];
    words[at + 10] = row.position[2];
    words[at + 11] = row.span.end;
    if (row.wanted) words[4 + WORDS_PER_ROW * wanted++ + 3] = r;
    if (rows[r + 1]?.slot !== row.slot) words[4 + WORDS_PER_ROW * sequences++ + 6] = r;
  }
  words[0] = rows.length;
  words[1] = wanted;
  words[2] = sequences;
  return sequences;
}
