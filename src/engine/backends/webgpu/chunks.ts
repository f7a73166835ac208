/** Divides a batch into chunks of rows that fit a plan. */
import type { BatchRow } from "../../../../kernels/wgsl/batch.ts";
import { AppError } from "../../../base/index.ts";
import type { Span, StateRows, TopKRows } from "../../program/backend.ts";
import type { TopKRequest } from "../../text/sampling/top-k.ts";
import { GEMV_ROWS_MAX, type Plan } from "./plan.ts";

export type WantedRows = StateRows & Pick<TopKRows, "request">;

/** Rows that run at once, and the result of each wanted one: candidates, or all values. */
export interface Chunk {
  readonly rows: BatchRow[];
  readonly requests: (TopKRequest | undefined)[];
  /** The vectors of the rows without an id, in order; one array for each run of neighbours. */
  readonly vectors: Float32Array[];
  /** Number of rows without an id. */
  given: number;
  /** True if a row sees later rows. */
  twoWay: boolean;
  /** True if a row has a memory. */
  remembers: boolean;
  /** True if the rows have chosen adapters. */
  adapts: boolean;
  /** True for decode rows: the next step is likely to have as many. */
  decodes: boolean;
}

interface ChunkOptions {
  readonly capacity: Plan["capacity"];
  /** True if a sequence may be divided into several chunks. */
  readonly splits: boolean;
  /** True if rows begin with values instead of tokens. */
  readonly hasInput: boolean;
  readonly keeps: boolean;
  /** Values of a row given as a vector. */
  readonly vectorDim: number;
  /** Values of a row of a memory. */
  readonly memory: { readonly dim: number };
}

/**
 * The rows of a batch in order. An encoder's sequences stay whole, and so do spans. Decode rows have chunks of their
 * own, so small that a row's bits depend neither on the other rows nor on their number. Throws `too_large` for a span
 * that fits no chunk.
 */
export function chunksOf(batch: readonly WantedRows[], options: ChunkOptions): Chunk[] {
  const { capacity, splits, keeps } = options;
  const chunks: Chunk[] = [];
  let chunk = emptyChunk();
  const flush = (): void => {
    if (chunk.rows.length > 0) chunks.push(chunk);
    chunk = emptyChunk();
  };
  let isDecode = false;
  for (const entry of batch) {
    const { tokens, states, request, drafted = false, adapters = [] } = entry;
    const decodes = keeps && states !== "none" && (tokens.length === 1 || drafted);
    if (decodes !== isDecode) flush();
    isDecode = decodes;
    const rowsMax = isDecode ? Math.min(GEMV_ROWS_MAX, capacity.all) : capacity.all;
    const all = states === "all" ? tokens.length : 1;
    if (!splits && (chunk.rows.length + tokens.length > capacity.all || chunk.requests.length + all > capacity.wanted))
      flush();
    const last = states === "first" ? 0 : tokens.length - 1;
    const vectors = makeVectors(entry, options.vectorDim);
    const spanOf = makeSpanOf(entry);
    const remembered = entry.memory ? entry.memory.rows.length / options.memory.dim : 0;
    let first = chunk.rows.length;
    for (let i = 0; i < tokens.length; i++) {
      const wanted = states === "all" || (states !== "none" && i === last);
      const span = spanOf(i);
      const isFull = wanted && chunk.requests.length === capacity.wanted;
      if (splits && (isFull || chunk.rows.length + rowsNeeded(span, i) > rowsMax)) {
        checkSpan(span, i, { rowsMax, isFull, wantedMax: capacity.wanted });
        vectors.takeInto(chunk);
        flush();
        first = -i; // where the sequence would begin
      }
      chunk.rows.push({
        token: tokens[i] === -1 && !options.hasInput ? vectors.next(chunk) : tokens[i]!,
        slot: entry.slot,
        cell: entry.start + i,
        first: Math.max(0, first),
        end: first + tokens.length,
        position: positionOf(entry, i),
        span: seenBy(span, entry.start + i, entry.start),
        wanted,
        remembered,
        adapters,
      });
      chunk.adapts ||= adapters.length > 0;
      chunk.remembers ||= remembered > 0;
      chunk.twoWay ||= span !== undefined;
      chunk.decodes = isDecode;
      if (wanted) chunk.requests.push(request);
    }
    vectors.takeInto(chunk);
  }
  flush();
  return chunks;
}

const emptyChunk = (): Chunk => {
  const flags = { twoWay: false, remembers: false, adapts: false, decodes: false };
  return { rows: [], requests: [], vectors: [], given: 0, ...flags };
};

/** The vectors of an entry, chunk by chunk. */
function makeVectors({ vectors }: WantedRows, dim: number) {
  let [from, to] = [0, 0];
  return {
    /** The token of the next row without an id: see batch.ts. */
    next(chunk: Chunk): number {
      to++;
      return -1 - chunk.given++;
    },
    /** Adds the vectors of the rows since the last call. */
    takeInto(chunk: Chunk): void {
      if (to > from) chunk.vectors.push(vectors!.subarray(from * dim, to * dim)); // the batch was checked
      from = to;
    },
  };
}

/** A function that finds a row's span; call it in the order of rows. */
function makeSpanOf({ spans }: WantedRows): (i: number) => Span | undefined {
  if (!spans || spans.length === 0) return () => undefined;
  const inOrder = spans.toSorted((a, b) => a.first - b.first);
  let next = 0;
  return (i) => {
    while (next < inOrder.length && inOrder[next]!.end <= i) next++;
    const span = inOrder[next];
    return span && span.first <= i ? span : undefined;
  };
}

/** Number of rows for which a chunk needs room before row `i` is added: a span stays whole. */
const rowsNeeded = (span: Span | undefined, i: number): number => (span?.first === i ? span.end - i : 1);

/** Checks that a chunk may end before row `i`. */
function checkSpan(
  span: Span | undefined,
  i: number,
  { rowsMax, isFull, wantedMax }: { rowsMax: number; isFull: boolean; wantedMax: number },
): void {
  if (!span) return;
  const length = span.end - span.first;
  if (length > rowsMax)
    throw new AppError("too_large", `${length} rows see each other in both directions: expected at most ${rowsMax}`);
  if (isFull && i > span.first)
    throw new AppError("too_large", `results of ${length} rows of a span: expected at most ${wantedMax} at once`);
}

/** The cells that a row of a sequence sees with its span, or its own cell. */
function seenBy(span: Span | undefined, cell: number, start: number): BatchRow["span"] {
  if (!span) return { first: cell, end: cell + 1 };
  const { first, end } = span.seen ?? span;
  return { first: start + first, end: start + end };
}

/** Time, height and width of a row. */
function positionOf({ positions, tokens, start }: WantedRows, i: number): BatchRow["position"] {
  if (positions?.length === 3 * tokens.length) return [positions[3 * i]!, positions[3 * i + 1]!, positions[3 * i + 2]!];
  const position = positions?.[i] ?? start + i;
  return [position, position, position];
}

/** The number of wanted rows that return all their values. */
export const wholeRows = ({ requests }: Chunk): number => requests.reduce((sum, request) => sum + (request ? 0 : 1), 0);

/** The longest context among the rows. */
export function longestOf(rows: readonly BatchRow[]): number {
  let most = 0;
  for (let i = 0; i < rows.length; i++) most = Math.max(most, rows[i]!.cell + 1);
  return most;
}
