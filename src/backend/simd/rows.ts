/**
 * Batches as passes. Rows of a pass come in two kinds, those of decode first: a row of decode is the only token of its
 * sequence in the batch and its result is wanted; all others belong to prompts. The kind decides how a row is
 * multiplied, so that its bits depend neither on its company nor on how many rows there are.
 */
import { AppError, assert } from "../../base/errors.ts";
import type { StateRows } from "../backend.ts";
import { checkBatch, type BatchLimits } from "../check-batch.ts";

/** Rows of one sequence whose attention is one chunk. */
const BLOCK_ROWS = 16;
/** Places of a sequence begin at multiples of this. */
const PLACE_FILL = 32;

export interface RowLimits extends BatchLimits {
  /** Learned positions that there are. */
  readonly positions: number;
  readonly maxRows: number;
  readonly places: number;
  /** Values of each row that the caller gives; 0: none. */
  readonly inputDim: number;
}

/** What one pass runs. All arrays are by row. */
export interface PassRows {
  readonly tokens: Int32Array;
  readonly slots: Int32Array;
  readonly positions: Int32Array;
  readonly places: Int32Array;
  readonly input: Float32Array | undefined;
  readonly decodeRows: number;
  /** Rows whose result is wanted, those to be multiplied as in decode first. */
  readonly wanted: Int32Array;
  readonly wantedDecode: number;
  /** Of each wanted row, its place in the result of the batch. */
  readonly targets: Int32Array;
  /** (blocks, 4): first row, rows; the place of their sequence, its length */
  readonly blocks: Int32Array;
}

/** Some rows of one entry of a batch. */
interface Piece {
  readonly entry: StateRows;
  readonly from: number;
  readonly count: number;
  /** Of the entry's first wanted row. */
  readonly target: number;
  readonly decode: boolean;
}

export const wantedRows = ({ states, tokens }: StateRows): number =>
  states === "all" ? tokens.length : states === "none" ? 0 : 1;

/** Throws as every backend does, and `too_large` at a position that was not learned. */
export function checkRows(batch: readonly StateRows[], limits: RowLimits): void {
  checkBatch(batch, limits);
  const { positions, inputDim } = limits;
  for (const { slot, start, tokens, input } of batch) {
    const last = start + tokens.length - 1;
    if (last >= positions) throw new AppError("too_large", `position ${last}: expected at most ${positions - 1}`);
    assert(inputDim === 0 || input?.length === tokens.length * inputDim, `slot ${slot}: rows without their input`);
  }
}

/** Splits a batch where it has more rows than a pass. */
export function* passesOf(batch: readonly StateRows[], limits: RowLimits): Generator<PassRows> {
  let target = 0;
  const pieces = batch.map((entry): Piece => {
    const piece = { entry, from: 0, count: entry.tokens.length, target, decode: isDecode(entry, limits) };
    target += wantedRows(entry);
    return piece;
  });
  pieces.sort((a, b) => Number(b.decode) - Number(a.decode));
  let taken: Piece[] = [];
  let [rows, places] = [0, 0];
  const whole = limits.places !== Infinity;
  for (const piece of pieces) {
    let { from } = piece;
    while (from < piece.count) {
      const needed = whole ? piece.count : 1;
      const filled = whole ? fillPlaces(piece.count) : 0;
      if (taken.length > 0 && (rows + needed > limits.maxRows || places + filled > limits.places)) {
        yield layOut(taken, limits);
        [taken, rows, places] = [[], 0, 0];
      }
      const count = Math.min(piece.count - from, limits.maxRows - rows);
      assert(!whole || count === piece.count, `a sequence of ${piece.count} rows of ${limits.maxRows}`);
      taken.push({ ...piece, from, count });
      [from, rows, places] = [from + count, rows + count, places + filled];
    }
  }
  if (taken.length > 0) yield layOut(taken, limits);
}

const isDecode = ({ tokens, states }: StateRows, { keeps }: RowLimits): boolean =>
  keeps && tokens.length === 1 && states !== "none";

const fillPlaces = (count: number): number => Math.ceil(count / PLACE_FILL) * PLACE_FILL;

function layOut(pieces: readonly Piece[], { keeps, inputDim, places: room }: RowLimits): PassRows {
  const count = pieces.reduce((sum, piece) => sum + piece.count, 0);
  const [tokens, slots, positions, places] = [0, 1, 2, 3].map(() => new Int32Array(count)) as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ]; // as many as numbers
  const input = inputDim > 0 ? new Float32Array(count * inputDim) : undefined;
  const wanted: { row: number; target: number; decode: boolean }[] = [];
  const blocks: number[] = [];
  let [row, place] = [0, 0];
  for (const { entry, from, count: rows, target, decode } of pieces) {
    for (let i = 0; i < rows; i++) {
      tokens[row + i] = entry.tokens[from + i]!;
      slots[row + i] = keeps ? entry.slot : 0;
      positions[row + i] = entry.start + from + i;
      places[row + i] = place + i;
    }
    input?.set(entry.input!.subarray(from * inputDim, (from + rows) * inputDim), row * inputDim);
    for (let i = 0; i < rows; i += BLOCK_ROWS) blocks.push(row + i, Math.min(BLOCK_ROWS, rows - i), place, rows);
    for (const at of wantedOf(entry)) {
      if (at < from || at >= from + rows) continue;
      const one = decode || entry.states !== "all";
      wanted.push({ row: row + at - from, target: target + (entry.states === "all" ? at : 0), decode: one });
    }
    row += rows;
    if (room !== Infinity) place += fillPlaces(rows);
  }
  wanted.sort((a, b) => Number(b.decode) - Number(a.decode));
  return {
    tokens,
    slots,
    positions,
    places,
    input,
    decodeRows: pieces.filter(({ decode }) => decode).length,
    wanted: Int32Array.from(wanted, (each) => each.row),
    wantedDecode: wanted.filter(({ decode }) => decode).length,
    targets: Int32Array.from(wanted, (each) => each.target),
    blocks: Int32Array.from(blocks),
  };
}

/** Which rows of an entry are wanted. */
function wantedOf({ states, tokens }: StateRows): number[] {
  if (states === "none") return [];
  if (states === "first") return [0];
  return states === "last" ? [tokens.length - 1] : Array.from(tokens, (_, i) => i);
}
