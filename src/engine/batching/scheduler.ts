/**
 * Chooses the engine's next run. A decode step includes every sequence that is ready, so that all share one read of the
 * weights; between two decode steps, at most one bounded chunk of one prompt is prefilled. A short prompt overtakes
 * longer ones that came before it, but no prompt is overtaken by more tokens than it has itself: see `Sequence.due`.
 */
import type { Rows } from "../program/backend.ts";
import { assert } from "../../base/index.ts";
import { inputOf, nextMemory, wholeEnd } from "./prompt.ts";
import { inPrefill, type Sequence } from "./sequence.ts";

/** Rows for the backend, with the sequences they belong to. */
export interface Work {
  readonly kind: "prefill" | "decode";
  readonly rows: readonly Rows[];
  readonly sequences: readonly Sequence[];
}

export interface ScheduleLimits {
  /** Prompt tokens per run while no sequence decodes. */
  readonly chunkAlone: number;
  /** Prompt tokens per run while others wait for their next token. */
  readonly chunkShared: number;
}

/**
 * If slots continue only from checkpoints, a run ends this many tokens before the end of a prompt, because the next
 * turn of a chat replaces the end, where the answer opens.
 */
export const CHECKPOINT_TAIL = 16;

/**
 * The next run; undefined if there is nothing to do.
 * @param last kind of the previous run, so that prefill and decode alternate
 * @param isExact true if evaluating tokens of an answer again gives the same bits
 * @param tail tokens before the end of a prompt at which a run ends; 0: none
 */
export function schedule(
  running: readonly Sequence[],
  options: { last: Work["kind"] | undefined; limits: ScheduleLimits; tail?: number; isExact?: boolean },
): Work | undefined {
  const prefilling = running.filter(inPrefill);
  const decoding = running.filter((sequence) => !inPrefill(sequence));
  if (prefilling.length > 0 && (decoding.length === 0 || options.last !== "prefill")) {
    const { chunkAlone, chunkShared } = options.limits;
    const chunk = decoding.length === 0 ? chunkAlone : chunkShared;
    const next = prefilling.reduce((a, b) => (b.due < a.due ? b : a));
    const rowsMax = Math.min(chunk, next.scores?.rowsMax ?? Infinity);
    return (options.isExact && againOf(next)) || prefillOf(next, { chunk: rowsMax, tail: options.tail ?? 0 });
  }
  if (decoding.length === 0) return undefined;
  const ordered = decoding.toSorted((a, b) => slotOf(a) - slotOf(b));
  return {
    kind: "decode",
    rows: ordered.map((sequence) => rowsOf(sequence, sequence.tokens.length)),
    sequences: ordered,
  };
}

/** Rows of a step that evaluates an answer again. */
const AGAIN_ROWS = 16;

/** Work for the tokens of an answer whose slot was lost; undefined while tokens of its prompt are missing. */
function againOf(sequence: Sequence): Work | undefined {
  const { tokens, generated, cached } = sequence;
  if (generated.length === 0 || cached < tokens.length - generated.length) return undefined;
  const rows = rowsOf(sequence, Math.min(tokens.length, cached + AGAIN_ROWS));
  return { kind: "prefill", rows: [{ ...rows, logits: "all", drafted: true }], sequences: [sequence] };
}

/** The next chunk of a prompt. The last chunk never has a single token: see `EVALUATED_MIN_TOKENS` in slots.ts. */
function prefillOf(sequence: Sequence, { chunk, tail }: { chunk: number; tail: number }): Work {
  const { tokens, cached, media } = sequence;
  const answered = tokens.length - sequence.generated.length;
  const whole = Math.min(cached < answered ? answered : tokens.length, nextMemory(media, cached)) - cached;
  const left = tail > 0 && whole - tail > 1 ? whole - tail : whole;
  const count = left === chunk + 1 && chunk > 2 ? chunk - 1 : Math.min(left, chunk);
  const end = wholeEnd(media, cached + count);
  return { kind: "prefill", rows: [rowsOf(sequence, end)], sequences: [sequence] };
}

function rowsOf(sequence: Sequence, end: number): Rows {
  return {
    slot: slotOf(sequence),
    start: sequence.cached,
    ...inputOf(sequence, { start: sequence.cached, end }),
    ...(sequence.request.adapters && { adapters: sequence.request.adapters.rows }),
    logits: wantedOf(sequence, end),
  };
}

function wantedOf({ tokens, scores }: Sequence, end: number): Rows["logits"] {
  if (scores && end > scores.rowsDone) return "all";
  return end === tokens.length ? "last" : "none";
}

function slotOf(sequence: Sequence): number {
  assert(sequence.slot, `sequence ${sequence.id} runs without a slot`);
  return sequence.slot.index;
}
