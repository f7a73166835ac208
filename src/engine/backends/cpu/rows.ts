/** Lays out the rows of a batch in sequence for a pass of the reference. */
import type { StateRows } from "../../program/backend.ts";
import type { Pass } from "./pass.ts";

type PassRows = Pick<
  Pass,
  | "tokens"
  | "input"
  | "vectors"
  | "slots"
  | "sequences"
  | "cells"
  | "firstCells"
  | "lastCells"
  | "positions"
  | "adapters"
  | "wanted"
  | "memoryRows"
>;

/** @param memoryRows the rows of an entry's memory */
export function makeRows(batch: readonly StateRows[], memoryRows: (entry: StateRows) => number): PassRows {
  const rows = batch.flatMap((entry, sequence) => {
    const { slot, start, tokens, states, spans = [], adapters = [] } = entry;
    const spanOf = makeSpanOf(spans);
    const remembered = memoryRows(entry);
    return Array.from(tokens, (token, i) => {
      const { first, end } = spanOf(i);
      return {
        token,
        slot,
        sequence,
        cell: start + i,
        firstCell: start + first,
        lastCell: start + end - 1,
        positions: positionsOf(entry, i),
        adapters,
        remembered,
        wanted: states === "all" || (states !== "none" && i === (states === "first" ? 0 : tokens.length - 1)),
      };
    });
  });
  return {
    tokens: Int32Array.from(rows, (row) => row.token),
    input: concat(batch.flatMap(({ input }) => (input ? [input] : []))),
    vectors: concat(batch.flatMap(({ vectors }) => (vectors ? [vectors] : []))),
    slots: Int32Array.from(rows, (row) => row.slot),
    sequences: Int32Array.from(rows, (row) => row.sequence),
    cells: Int32Array.from(rows, (row) => row.cell),
    firstCells: Int32Array.from(rows, (row) => row.firstCell),
    lastCells: Int32Array.from(rows, (row) => row.lastCell),
    positions: Int32Array.from(rows.flatMap((row) => row.positions)),
    adapters: rows.map((row) => row.adapters),
    memoryRows: Int32Array.from(rows, (row) => row.remembered),
    wanted: Int32Array.from(rows.flatMap((row, i) => (row.wanted ? [i] : []))),
  };
}

/** The range that a row's span attends to, or the row itself; call it in the order of rows. */
function makeSpanOf(spans: NonNullable<StateRows["spans"]>): (i: number) => { first: number; end: number } {
  const inOrder = spans.toSorted((a, b) => a.first - b.first);
  let next = 0;
  return (i) => {
    while (next < inOrder.length && inOrder[next]!.end <= i) next++;
    const span = inOrder[next];
    return span && span.first <= i ? (span.seen ?? span) : { first: i, end: i + 1 };
  };
}

/** Time, height and width of a token. */
function positionsOf({ positions, tokens, start }: StateRows, i: number): readonly [number, number, number] {
  if (!positions) return [start + i, start + i, start + i];
  if (positions.length === tokens.length) return [positions[i]!, positions[i]!, positions[i]!];
  return [positions[3 * i]!, positions[3 * i + 1]!, positions[3 * i + 2]!];
}

function concat(parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
