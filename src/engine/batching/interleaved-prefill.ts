/**
 * Chunked prefill: a piece of a prompt runs in parts, interleaved with steps of other sequences. A piece that has begun
 * runs to its end.
 */
import type { Session, SlicedRun } from "../program/backend.ts";
import type { EventLoop } from "./event-loop.ts";
import { outputsOf, type StepOutput } from "./step-output.ts";
import type { Pace } from "./prefill-pace.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

interface FinishedPiece {
  readonly work: Work;
  readonly outputs: readonly (readonly StepOutput[])[];
  /** Total over its parts. */
  readonly tookNs: number;
}

export interface InterleavedPrefill {
  /** The piece in progress. */
  readonly work: Work | undefined;
  /**
   * Returns whether a run is divided: while others run, or if it has a memory.
   * @param isShared other sequences wait for their next token
   */
  takes(work: Work, isShared: boolean): boolean;
  /** Begins a piece, or continues the one in progress; undefined until it is done. Throws the run's error. */
  run(next: Work, isShared: boolean): Promise<FinishedPiece | undefined>;
  /** Abandons the piece of a sequence; false if the sequence has none. */
  drop(sequence: Sequence): boolean;
}

export function makeInterleavedPrefill({
  session: { slices },
  vocabSize,
  loop,
  pace,
}: {
  readonly session: Session;
  readonly vocabSize: number;
  readonly loop: EventLoop;
  readonly pace: Pace;
}): InterleavedPrefill {
  let begun: { readonly work: Work; readonly run: SlicedRun; ns: number } | undefined;
  return {
    get work() {
      return begun?.work;
    },
    takes({ kind, rows: [rows] }, isShared) {
      if (kind !== "prefill" || !rows || !slices || rows.drafted) return false;
      if (begun) return true;
      if (!isShared && !rows.memory) return false; // a slow CPU takes many seconds for keys and values of a memory
      return rows.tokens.length > 1 && rows.tokens.length <= slices.rowsMax && !rows.spans;
    },
    async run(next, isShared) {
      const startedNs = loop.nowNs();
      let logits: Float32Array | undefined;
      try {
        begun ??= { work: next, run: slices!.start(next.rows[0]!), ns: 0 }; // `takes` has returned true
        logits = await begun.run.next(pace.budgetNs(isShared));
      } catch (error) {
        begun = undefined;
        throw error;
      }
      const { work, run } = begun;
      const about = { start: work.rows[0]!.start, sequence: work.sequences[0]!, vocabSize };
      const describedNs = loop.nowNs();
      const outputs = logits && [outputsOf(logits, about)];
      const now = loop.nowNs();
      const tookNs = (begun.ns += now - startedNs);
      if (!outputs) return undefined;
      begun = undefined;
      pace.took(work, run.longestNs + now - describedNs, true);
      return { work, outputs, tookNs };
    },
    drop(sequence) {
      if (begun?.work.sequences[0] !== sequence) return false;
      begun.run.abandon?.();
      begun = undefined;
      return true;
    },
  };
}
