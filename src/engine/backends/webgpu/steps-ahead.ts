/**
 * Decode steps that are submitted before the tokens of the step before are read. That is possible where the device
 * chooses the tokens: each row's likeliest token, without penalties. The device copies the chosen ids into the next
 * batch, so the host's time delays no token. If the caller then runs something else, as after the end of an answer, the
 * step is dropped. It wrote only positions after the content of its slots, which a later run writes before it reads
 * them.
 */
import { tokenOffset, type BatchRow } from "../../../../kernels/wgsl/batch.ts";
import type { TopK } from "../../text/sampling/top-k.ts";
import type { Chunk } from "./chunks.ts";
import type { Part } from "./readback.ts";

/**
 * A step is submitted ahead after this many steps in sequence that continued the one before: not while prompts or
 * drafts come between.
 */
const STEADY = 2;
/** Bytes of a candidate before its id. */
const ID_OFFSET = 4;

export interface StepsAhead<T> {
  /** The step that is running for a chunk, if it is the expected one. Forgets the expectation. */
  take(chunk: Chunk | undefined): T | undefined;
  /** True if the next step is likely to continue this one. */
  readonly isSteady: boolean;
  /** Expects a chunk that continues `chunk` with the chosen tokens. @param running its step, if it was submitted */
  expect(chunk: Chunk, chosen: readonly TopK[], running: T | undefined): void;
}

export function makeStepsAhead<T>(): StepsAhead<T> {
  let steady = 0;
  let expected: { readonly rows: readonly BatchRow[]; readonly running: T | undefined } | undefined;
  return {
    take(chunk) {
      const found = expected && chunk && isSame(expected.rows, chunk.rows) ? expected : undefined;
      expected = undefined;
      steady = found ? steady + 1 : 0;
      return found?.running;
    },
    get isSteady() {
      return steady >= STEADY;
    },
    expect({ rows }, chosen, running) {
      expected = { rows: followingRows(rows, chosen), running };
    },
  };
}

/** Returns whether the device alone chooses the next token of each row. */
export const isChosen = ({ requests, decodes, given, twoWay, rows }: Chunk): boolean =>
  decodes &&
  given === 0 &&
  !twoWay &&
  requests.length === rows.length &&
  requests.every((request) => request?.k === 1 && request.masked.length === 0) &&
  rows.every((row, i) => row.first === i && row.end === i + 1);

/** The rows after these. @param chosen their tokens; default: 0, which the device replaces */
export const followingRows = (rows: readonly BatchRow[], chosen?: readonly TopK[]): BatchRow[] =>
  rows.map((row, i) => {
    const { cell, position, span } = row;
    const [time, height, width] = position;
    return {
      ...row,
      token: chosen?.[i]?.ids[0] ?? 0,
      cell: cell + 1,
      position: [time + 1, height + 1, width + 1],
      span: { first: span.first + 1, end: span.end + 1 },
    };
  });

/** Copies the chosen ids to the tokens of a batch. @param parts the results of the rows, one each */
export function copyChosen(encoder: GPUCommandEncoder, parts: readonly Part[], batch: GPUBuffer): void {
  for (const [row, { buffer, offset }] of parts.entries())
    encoder.copyBufferToBuffer(buffer, offset + ID_OFFSET, batch, tokenOffset(row), 4);
}

const isSame = (a: readonly BatchRow[], b: readonly BatchRow[]): boolean =>
  a.length === b.length && a.every((row, i) => isSameRow(row, b[i]!));

const haveSameAdapters = ({ adapters: a }: BatchRow, { adapters: b }: BatchRow): boolean =>
  a.length === b.length && a.every(({ adapter, scale }, i) => adapter === b[i]!.adapter && scale === b[i]!.scale);

const isSameRow = (a: BatchRow, b: BatchRow): boolean =>
  a.token === b.token &&
  a.slot === b.slot &&
  a.cell === b.cell &&
  a.first === b.first &&
  a.end === b.end &&
  a.wanted === b.wanted &&
  a.remembered === b.remembered &&
  haveSameAdapters(a, b) &&
  a.position.every((each, i) => each === b.position[i]) &&
  a.span.first === b.span.first &&
  a.span.end === b.span.end;
