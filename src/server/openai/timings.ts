/** `timings` and `prompt_progress`, fields of llama-server: counts of tokens and milliseconds. */
import type { Statistics } from "../../runtime/portable.ts";
import type { AnswerEvent, DoneEvent, ReportEvent } from "../answers/answer.ts";

interface Counts {
  readonly promptEvalCount: number;
  readonly promptCachedCount: number;
  readonly promptMs: number;
  readonly evalCount: number;
  readonly evalMs: number;
}

/** Measures an answer. Its counts are exact at the end; before, each piece of text counts as a token. */
export class Timer {
  #counts: Counts = { promptEvalCount: 0, promptCachedCount: 0, promptMs: 0, evalCount: 0, evalMs: 0 };
  #firstAtMs = 0;

  take(event: AnswerEvent | ReportEvent): void {
    if (event.kind === "prompt") {
      const { promptEvalCount, promptCachedCount, promptEvalNs } = event;
      this.#firstAtMs = performance.now();
      this.#counts = { ...this.#counts, promptEvalCount, promptCachedCount, promptMs: promptEvalNs / 1e6 };
    } else if (event.kind === "text" || event.kind === "thinking") {
      const evalMs = performance.now() - this.#firstAtMs;
      this.#counts = { ...this.#counts, evalCount: this.#counts.evalCount + 1, evalMs };
    } else if (event.kind === "done" && event.statistics) this.#counts = countsOf(event.statistics);
  }

  /** The fields so far. */
  get timings(): object {
    return fieldsOf(this.#counts);
  }
}

/**
 * The field at the end of an answer. Absent for the load of a model, and for several answers: they ran concurrently, so
 * their durations cannot be added.
 */
export const timingsOf = ([end, ...more]: readonly Pick<DoneEvent, "statistics">[]): object =>
  end?.statistics && more.length === 0 ? { timings: fieldsOf(countsOf(end.statistics)) } : {};

const countsOf = ({ promptEvalNs, evalNs, ...counts }: Statistics): Counts => ({
  ...counts,
  promptMs: promptEvalNs / 1e6,
  evalMs: evalNs / 1e6,
});

function fieldsOf({ promptEvalCount, promptCachedCount, promptMs, evalCount, evalMs }: Counts): object {
  const read = promptEvalCount - promptCachedCount;
  return {
    cache_n: promptCachedCount,
    prompt_n: read,
    prompt_ms: promptMs,
    ...rates("prompt", read, promptMs),
    predicted_n: evalCount,
    predicted_ms: evalMs,
    ...rates("predicted", evalCount, evalMs),
  };
}

/** 0 if the divisor is 0. */
const rates = (name: string, count: number, ms: number): object => ({
  [`${name}_per_token_ms`]: count > 0 ? ms / count : 0,
  [`${name}_per_second`]: ms > 0 ? (count / ms) * 1e3 : 0,
});

/** The field of a chunk that reports progress; `processed` includes the cached tokens. */
export const progressOf = ({
  promptEvalCount: total,
  promptCachedCount: cache,
  processed,
  promptEvalNs,
}: Extract<ReportEvent, { kind: "progress" }>): object => ({
  prompt_progress: { total, cache, processed, time_ms: Math.round(promptEvalNs / 1e6) },
});
