/**
 * Turns batches into passes. A pass has two kinds of rows, decode rows first: a decode row is its sequence's only token
 * in the batch, or a drafted one, and its result is wanted; all other rows belong to prompts. The kind determines the
 * kernel, so a row's bits depend neither on the other rows nor on their number.
 */
import { AppError, assert } from "../../../base/index.ts";
import type { RowAdapter, StateRows } from "../../program/backend.ts";
import { checkBatch, positionsEnd, type BatchLimits } from "../check-batch.ts";

/** The scratch rows of a sequence begin at multiples of this. */
const SCRATCH_FILL = 32;

/** A multiple of this many query rows fills whole tiles. */
const STEP = 8;

export interface RowLimits extends BatchLimits {
  /** Number of learned positions. */
  readonly positions: number;
  readonly maxRows: number;
  readonly scratchRows: number;
  /** Rows of one sequence whose attention is one chunk: they share converted keys and values. */
  readonly blockRows: number;
  /** Values per row from the caller; 0: none. */
  readonly inputDim: number;
}

/** The data of one pass. All arrays are by row. */
export interface PassRows {
  readonly tokens: Int32Array;
  readonly slots: Int32Array;
  readonly cells: Int32Array;
  /** The first cell of a row's span, or its own, and the cell after the last one. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Three per row. */
  readonly positions: Int32Array;
  readonly scratchRows: Int32Array;
  /** The rows of a row's memory; 0: none. */
  readonly remembered: Int32Array;
  /** Undefined: no row has chosen an adapter. */
  readonly adapters?: readonly (readonly RowAdapter[])[];
  /** Values per row of the inputs. */
  readonly inputWidth: number;
  /** Initial values of rows, (rows, `inputWidth`), from row `row` on. */
  readonly inputs: readonly { readonly row: number; readonly values: Float32Array }[];
  readonly decodeRows: number;
  /** Wanted rows, decode rows first. */
  readonly wanted: Int32Array;
  readonly wantedDecode: number;
  /** By wanted row: its index in the result of the batch. */
  readonly targets: Int32Array;
  /** (blocks, 4): first row, number of rows; scratch row of their sequence, its length */
  readonly blocks: Int32Array;
}

/** Some rows of one batch entry. */
interface Piece {
  readonly entry: StateRows;
  readonly from: number;
  readonly count: number;
  /** Index of the entry's first wanted row. */
  readonly target: number;
  readonly decode: boolean;
}

export const wantedRows = ({ states, tokens }: StateRows): number =>
  states === "all" ? tokens.length : states === "none" ? 0 : 1;

/** Throws like every backend, and `too_large` for a position beyond the learned ones. */
export function checkRows(batch: readonly StateRows[], limits: RowLimits): void {
  checkBatch(batch, limits);
  const { positions, inputDim } = limits;
  for (const rows of batch) {
    const { slot, tokens, input } = rows;
    const last = positionsEnd(rows) - 1;
    if (last >= positions) throw new AppError("too_large", `position ${last}: expected at most ${positions - 1}`);
    assert(inputDim === 0 || input?.length === tokens.length * inputDim, `slot ${slot}: rows without their input`);
  }
}

/** Rows of the longest span, which must fit into a pass. */
export const longestSpan = (batch: readonly StateRows[]): number =>
  batch.reduce((most, { spans = [] }) => spans.reduce((more, { first, end }) => Math.max(more, end - first), most), 0);

/** Divides a batch that has more rows than a pass. */
export function* passesOf(batch: readonly StateRows[], limits: RowLimits): Generator<PassRows> {
  let target = 0;
  const pieces = batch.map((entry): Piece => {
    const piece = { entry, from: 0, count: entry.tokens.length, target, decode: isDecode(entry, limits) };
    target += wantedRows(entry);
    return piece;
  });
  pieces.sort((a, b) => Number(b.decode) - Number(a.decode));
  let taken: Piece[] = [];
  let [rows, scratchRows] = [0, 0];
  const whole = limits.scratchRows !== Infinity;
  for (const piece of pieces) {
    let { from } = piece;
    while (from < piece.count) {
      const needed = whole ? piece.count : 1;
      const filled = whole ? fillScratch(piece.count) : 0;
      if (taken.length > 0 && (rows + needed > limits.maxRows || scratchRows + filled > limits.scratchRows)) {
        yield layOut(taken, limits);
        [taken, rows, scratchRows] = [[], 0, 0];
      }
      const count = withoutCut(piece.entry, from, Math.min(piece.count - from, limits.maxRows - rows));
      if (count === 0) {
        assert(taken.length > 0, `a span of more than ${limits.maxRows} rows`);
        yield layOut(taken, limits);
        [taken, rows, scratchRows] = [[], 0, 0];
        continue;
      }
      assert(!whole || count === piece.count, `a sequence of ${piece.count} rows of ${limits.maxRows}`);
      taken.push({ ...piece, from, count });
      [from, rows, scratchRows] = [from + count, rows + count, scratchRows + filled];
    }
  }
  if (taken.length > 0) yield layOut(taken, limits);
}

const isDecode = ({ tokens, states, drafted = false }: StateRows, { keeps }: RowLimits): boolean =>
  keeps && (tokens.length === 1 || drafted) && states !== "none";

/** The largest number of rows from `from` on, at most `count`, that does not end within a span. */
function withoutCut({ spans = [] }: StateRows, from: number, count: number): number {
  const cut = spans.find(({ first, end }) => first < from + count && from + count < end);
  return cut ? Math.max(0, cut.first - from) : count;
}

const fillScratch = (count: number): number => Math.ceil(count / SCRATCH_FILL) * SCRATCH_FILL;

function layOut(pieces: readonly Piece[], limits: RowLimits): PassRows {
  const { keeps, scratchRows: room, blockRows, memory, inputDim, vectorDim } = limits;
  const count = pieces.reduce((sum, piece) => sum + piece.count, 0);
  const array = (width = 1): Int32Array => new Int32Array(count * width);
  const [tokens, slots, cells, positions, scratchRows] = [array(), array(), array(), array(3), array()];
  const [starts, ends, remembered] = [array(), array(), array()];
  const inputs: PassRows["inputs"][number][] = [];
  const wanted: { row: number; target: number; decode: boolean }[] = [];
  const blocks: number[] = [];
  const adapters = adaptersOf(pieces);
  let [row, scratchRow] = [0, 0];
  for (const { entry, from, count: rows, target, decode } of pieces) {
    for (let i = 0; i < rows; i++) {
      tokens[row + i] = entry.tokens[from + i]!;
      slots[row + i] = keeps ? entry.slot : 0;
      cells[row + i] = entry.start + from + i;
      const span = spanOf(entry, from + i);
      starts[row + i] = entry.start + span.first;
      ends[row + i] = entry.start + span.end;
      scratchRows[row + i] = scratchRow + i;
      remembered[row + i] = entry.memory ? entry.memory.rows.length / memory.dim : 0;
    }
    positions.set(positionsOf(entry, from, rows), row * 3);
    inputs.push(...inputsOf(entry, { from, count: rows, row }, limits));
    const step = decode ? 1 : evenStep(rows, blockRows);
    for (let i = 0; i < rows; i += step) blocks.push(row + i, Math.min(step, rows - i), scratchRow, rows);
    for (const at of wantedOf(entry)) {
      if (at < from || at >= from + rows) continue;
      const one = decode || entry.states !== "all";
      wanted.push({ row: row + at - from, target: target + (entry.states === "all" ? at : 0), decode: one });
    }
    row += rows;
    if (room !== Infinity) scratchRow += fillScratch(rows);
  }
  wanted.sort((a, b) => Number(b.decode) - Number(a.decode));
  return {
    tokens,
    slots,
    cells,
    starts,
    ends,
    positions,
    scratchRows,
    remembered,
    ...(adapters.length > 0 && { adapters }),
    inputWidth: inputDim || vectorDim,
    inputs,
    decodeRows: pieces.reduce((sum, { decode, count: rows }) => sum + (decode ? rows : 0), 0),
    wanted: Int32Array.from(wanted, (each) => each.row),
    wantedDecode: wanted.filter(({ decode }) => decode).length,
    targets: Int32Array.from(wanted, (each) => each.target),
    blocks: Int32Array.from(blocks),
  };
}

/** The adapters of each row; empty if no row has chosen one. */
function adaptersOf(pieces: readonly Piece[]): (readonly RowAdapter[])[] {
  if (!pieces.some(({ entry: { adapters = [] } }) => adapters.length > 0)) return [];
  return pieces.flatMap(({ entry: { adapters = [] }, count }) => Array.from({ length: count }, () => adapters));
}

/** Rows per block for dividing rows into the fewest blocks of similar size. */
function evenStep(rows: number, blockRows: number): number {
  const blocks = Math.ceil(rows / blockRows);
  return Math.min(blockRows, Math.ceil(rows / blocks / STEP) * STEP);
}

/** The range that a row's span attends to, or the row itself. */
function spanOf({ spans = [] }: StateRows, at: number): { first: number; end: number } {
  const span = spans.find(({ first, end }) => first <= at && at < end);
  return span?.seen ?? span ?? { first: at, end: at + 1 };
}

/** Time, height and width of each of the rows. */
function positionsOf({ start, tokens, positions }: StateRows, from: number, count: number): Int32Array {
  if (positions?.length === 3 * tokens.length) return positions.subarray(from * 3, (from + count) * 3);
  return Int32Array.from({ length: count * 3 }, (_, i) => {
    const at = from + Math.floor(i / 3);
    return positions ? positions[at]! : start + at;
  });
}

/**
 * Initial values of some rows of an entry, which are laid out from `row` on: all of them, or the ones without an id.
 */
function* inputsOf(
  { tokens, input, vectors }: StateRows,
  { from, count, row }: { from: number; count: number; row: number },
  { inputDim, vectorDim }: RowLimits,
): Generator<PassRows["inputs"][number]> {
  if (inputDim > 0) yield { row, values: input!.subarray(from * inputDim, (from + count) * inputDim) };
  if (!vectors) return;
  let given = tokens.subarray(0, from).reduce((sum, token) => sum + Number(token === -1), 0);
  for (let i = 0; i < count; i++) {
    if (tokens[from + i] !== -1) continue;
    yield { row: row + i, values: vectors.subarray(given * vectorDim, ++given * vectorDim) };
  }
}

/** The wanted rows of an entry. */
function wantedOf({ states, tokens }: StateRows): number[] {
  if (states === "none") return [];
  if (states === "first") return [0];
  return states === "last" ? [tokens.length - 1] : Array.from(tokens, (_, i) => i);
}
