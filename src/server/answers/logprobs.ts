/** Log-probabilities as native requests ask for them and native replies show them. */
import { AppError } from "../../base/index.ts";
import type { ChosenLogprob, TokenLogprob } from "../../runtime/portable.ts";

/** Alternatives that a request may ask for; what the other dialects allow too. */
export const TOP_LOGPROBS_MAX = 20;

interface LogprobsBody {
  readonly logprobs?: boolean;
  readonly top_logprobs?: number;
}

/** Throws `bad_request`. */
export function checkTopLogprobs({ top_logprobs: count = 0 }: LogprobsBody): void {
  if (count < 0 || count > TOP_LOGPROBS_MAX) {
    throw new AppError("bad_request", `top_logprobs must be between 0 and ${TOP_LOGPROBS_MAX}`);
  }
}

/** How many alternatives are wanted; undefined: no log-probabilities at all, whatever `top_logprobs` says. */
export function wantedLogprobs({ logprobs, top_logprobs: count = 0 }: LogprobsBody): number | undefined {
  return logprobs ? count : undefined;
}

/** The `logprobs` of a reply, where there are any. */
export function logprobsField(logprobs: readonly ChosenLogprob[] | undefined): { logprobs?: object[] } {
  if (!logprobs || logprobs.length === 0) return {};
  return {
    logprobs: logprobs.map(({ top, ...chosen }) => ({
      ...entry(chosen),
      ...(top.length > 0 ? { top_logprobs: top.map(entry) } : {}),
    })),
  };
}

const entry = ({ token, logprob, bytes }: TokenLogprob): object => ({ token, logprob, bytes });
