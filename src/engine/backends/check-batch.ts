/** The checks of a batch that all backends share, made before any of it runs. */
import { AppError, assert } from "../../base/index.ts";
import type { LoadOptions, Program, StateRows } from "../program/backend.ts";
import { runsWhole } from "../program/describe.ts";
import { memoryDim } from "../program/memory.ts";
import { keepingSteps } from "../program/sequence-state.ts";
import type { Step } from "../program/step.ts";

/** Maximum rows of one run: bounds the allocations that a caller can cause. */
const RUN_TOKENS_MAX = 65_536;

/** The limits of a program's batches. */
export interface BatchLimits extends Pick<LoadOptions, "ctxLen" | "slots"> {
  /** True if the program keeps state in slots; otherwise slots are ignored. */
  readonly keeps: boolean;
  /** Rows of the embedding table; Infinity if the program does not begin with an embedding. */
  readonly vocabSize: number;
  /** Values of a row given as a vector; 0 if the program does not begin with an embedding. */
  readonly vectorDim: number;
  /** True if rows may have their own vectors, positions and spans. */
  readonly anyRows: boolean;
  /** Number of adapters that rows may choose. */
  readonly adapters: number;
  /** Maximum rows of a memory, and their width; 0: the program has none. */
  readonly memory: { readonly rows: number; readonly dim: number };
}

export function batchLimits(
  { steps, adapters = [], memory }: Pick<Program, "steps" | "adapters" | "memory">,
  { ctxLen, slots, anyRows }: Pick<LoadOptions, "ctxLen" | "slots"> & { anyRows: boolean },
): BatchLimits {
  const [first] = steps;
  const vocabSize = first?.op === "embed" ? first.table.outDim : Infinity;
  const keeps = !runsWhole(steps) && keepingSteps(steps).length > 0;
  const kept = memory ? { rows: memory.rows, dim: memoryDim(memory) } : { rows: 0, dim: 0 };
  const vectorDim = vectorDimOf(steps);
  return { ctxLen, slots, keeps, vocabSize, vectorDim, anyRows, adapters: adapters.length, memory: kept };
}

/** Values of a row given as a vector; 0 if the program does not begin with an embedding. */
export function vectorDimOf(steps: readonly Step[]): number {
  const [first] = steps;
  if (first?.op !== "embed") return 0;
  const ends = steps.map((step) => (step.op === "addGiven" ? step.at + step.x.dim : 0));
  return ends.reduce((most, end) => Math.max(most, end), first.out.dim);
}

/** Throws `bad_request` for an id outside the vocabulary, `too_large` for too many rows. */
export function checkBatch(batch: readonly StateRows[], limits: BatchLimits): void {
  const { ctxLen, slots, keeps, vocabSize, anyRows } = limits;
  assert(!keeps || new Set(batch.map(({ slot }) => slot)).size === batch.length, "a slot appears twice in a batch");
  let total = 0;
  for (const rows of batch) {
    const { slot, start, tokens, vectors } = rows;
    total += tokens.length;
    assert(!keeps || (slot >= 0 && slot < slots), `slot ${slot} of ${slots}`);
    assert(tokens.length > 0, `slot ${slot}: a run without tokens`);
    assert(start >= 0 && start + tokens.length <= ctxLen, `slot ${slot}: ${start} + ${tokens.length} of ${ctxLen}`);
    checkAdapters(rows, limits);
    checkMemory(rows, limits);
    if (anyRows) checkOwn(rows, limits);
    else checkPlain(rows);
    const least = vectors || vocabSize === Infinity ? -1 : 0;
    const bad = tokens.find((token) => token < least || token >= vocabSize);
    if (bad !== undefined) throw new AppError("bad_request", `token ${bad}: expected an id of 0 … ${vocabSize - 1}`);
  }
  if (total > RUN_TOKENS_MAX)
    throw new AppError("too_large", `run of ${total} tokens: expected at most ${RUN_TOKENS_MAX}`);
}

/** Checks that the adapters of a batch entry exist, once each, with finite scales. */
function checkAdapters({ slot, adapters = [] }: StateRows, limits: BatchLimits): void {
  const known = new Set<number>();
  for (const { adapter, scale } of adapters) {
    assert(adapter >= 0 && adapter < limits.adapters, `slot ${slot}: adapter ${adapter} of ${limits.adapters}`);
    assert(!known.has(adapter), `slot ${slot}: adapter ${adapter} twice`);
    assert(Number.isFinite(scale), `slot ${slot}: adapter ${adapter} with scale ${scale}`);
    known.add(adapter);
  }
}

function checkMemory({ slot, memory }: StateRows, { memory: { rows, dim } }: BatchLimits): void {
  if (!memory) return;
  const { length } = memory.rows;
  const fits = length > 0 && length % dim === 0 && length <= rows * dim;
  assert(fits, `slot ${slot}: a memory of ${length} values, expected up to ${rows} rows of ${dim}`);
}

/** Checks the lengths of a batch entry's own vectors, positions and spans, and that they are in range. */
function checkOwn({ slot, tokens, vectors, positions, spans = [] }: StateRows, limits: BatchLimits): void {
  const { vectorDim, ctxLen } = limits;
  const { length } = tokens;
  const values = tokens.reduce((count, token) => count + Number(token === -1), 0) * vectorDim;
  assert(!vectors || vectors.length === values, `slot ${slot}: vectors of ${vectors?.length} values, not ${values}`);
  if (positions) {
    const right = positions.length === length || positions.length === 3 * length;
    assert(right, `slot ${slot}: ${positions.length} positions of ${length} rows`);
    const bad = positions.find((position) => position < 0 || position >= ctxLen);
    assert(bad === undefined, `slot ${slot}: position ${bad} in a context of ${ctxLen}`);
  }
  for (const { first, end } of spans.flatMap((span) => (span.seen ? [span, span.seen] : [span])))
    assert(first >= 0 && first < end && end <= length, `slot ${slot}: a span ${first} … ${end} of ${length} rows`);
}

/** The position after the last row. */
export const positionsEnd = ({ start, tokens, positions }: StateRows): number =>
  positions ? positions.reduce((most, position) => Math.max(most, position + 1), 0) : start + tokens.length;

function checkPlain({ vectors, positions, spans }: StateRows): void {
  const [more] = Object.entries({ vectors, positions, spans }).find(([, given]) => given) ?? [];
  if (more) throw new AppError("unsupported", `rows with ${more} of their own: this backend takes tokens only`);
}
