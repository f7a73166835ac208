/** What every backend checks of a batch before it runs any of it. */
import { AppError, assert } from "../base/errors.ts";
import type { LoadOptions, Program, StateRows } from "./backend.ts";
import { runsWhole } from "./describe.ts";
import { keepingSteps } from "./sequence-state.ts";

/** Most rows of one run: bounds what a caller can make us allocate. */
const RUN_TOKENS_MAX = 65_536;

/** What a program's batches must keep to. */
export interface BatchLimits extends Pick<LoadOptions, "ctxLen" | "slots"> {
  /** Whether anything is kept in slots: otherwise they have no meaning. */
  readonly keeps: boolean;
  /** Ids that the embedding table has rows for; Infinity where the program begins with something else. */
  readonly vocabSize: number;
  /** Whether rows may come with vectors, positions and spans of their own. */
  readonly anyRows: boolean;
}

export function batchLimits(
  { steps }: Pick<Program, "steps">,
  { ctxLen, slots, anyRows }: Pick<LoadOptions, "ctxLen" | "slots"> & { anyRows: boolean },
): BatchLimits {
  const [first] = steps;
  const vocabSize = first?.op === "embed" ? first.table.outDim : Infinity;
  return { ctxLen, slots, keeps: !runsWhole(steps) && keepingSteps(steps).length > 0, vocabSize, anyRows };
}

/** Throws `bad_request` for an id that there is not, `too_large` for too many rows. */
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
    if (!anyRows) checkPlain(rows);
    const least = vectors || vocabSize === Infinity ? -1 : 0;
    const bad = tokens.find((token) => token < least || token >= vocabSize);
    if (bad !== undefined) throw new AppError("bad_request", `token ${bad}: expected an id of 0 … ${vocabSize - 1}`);
  }
  if (total > RUN_TOKENS_MAX)
    throw new AppError("too_large", `run of ${total} tokens: expected at most ${RUN_TOKENS_MAX}`);
}

function checkPlain({ vectors, positions, spans }: StateRows): void {
  const [more] = Object.entries({ vectors, positions, spans }).find(([, given]) => given) ?? [];
  if (more) throw new AppError("unsupported", `rows with ${more} of their own: this backend takes tokens only`);
}
