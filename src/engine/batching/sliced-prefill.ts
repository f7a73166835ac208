/** A piece of a prompt that runs in parts, between which others step. Once begun it runs to its end. */
import type { Session, SlicedRun } from "../program/backend.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Outcome } from "./outcome.ts";
import type { Pace } from "./pace.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** A piece that is done. */
interface Sliced {
  readonly work: Work;
  readonly outcomes: readonly (readonly Outcome[])[];
  /** Of all its parts. */
  readonly tookNs: number;
}

export interface SlicedPrefill {
  /** The piece that has begun. */
  readonly work: Work | undefined;
  /** Whether a run goes in parts. @param isShared whether others wait for their next token */
  takes(work: Work, isShared: boolean): boolean;
  /** Begins a piece, or goes on with the one that has begun; undefined before it is done. Throws what the run does. */
  run(next: Work, isShared: boolean): Sliced | undefined;
  /** Gives up the piece of a sequence; false where it has none. */
  drop(sequence: Sequence): boolean;
}

export function makeSlicedPrefill({
  session: { slices },
  loop,
  pace,
}: {
  readonly session: Session;
  readonly loop: EventLoop;
  readonly pace: Pace;
}): SlicedPrefill {
  let begun: { readonly work: Work; readonly run: SlicedRun; ns: number } | undefined;
  return {
    get work() {
      return begun?.work;
    },
    takes({ kind, rows: [rows] }, isShared) {
      if (kind !== "prefill" || !rows || !slices || rows.drafted) return false;
      if (begun) return true;
      return isShared && rows.tokens.length > 1 && rows.tokens.length <= slices.rowsMax && !rows.spans;
    },
    run(next, isShared) {
      const startedNs = loop.nowNs();
      let logits: Float32Array | undefined;
      try {
        begun ??= { work: next, run: slices!.start(next.rows[0]!), ns: 0 }; // asked by `takes`
        logits = begun.run.next(pace.budgetNs(isShared));
      } catch (error) {
        begun = undefined;
        throw error;
      }
      const { work, run } = begun;
      const tookNs = (begun.ns += loop.nowNs() - startedNs);
      if (!logits) return undefined;
      begun = undefined;
      pace.took(work, run.longestNs, true);
      return { work, outcomes: [logits.length > 0 ? [logits] : []], tookNs };
    },
    drop(sequence) {
      if (begun?.work.sequences[0] !== sequence) return false;
      begun = undefined;
      return true;
    },
  };
}
