/** Log-probabilities in native requests and replies. */
import { AppError } from "../../base/index.ts";
import type { ChosenLogprob, TokenLogprob } from "../../runtime/portable.ts";

/** Maximum number of alternatives that a request may ask for; the limit of the other dialects too. */
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

/** The number of alternatives; undefined: no log-probabilities, even if `top_logprobs` is set. */
export function wantedLogprobs({ logprobs, top_logprobs: count = 0 }: LogprobsBody): number | undefined {
  return logprobs ? count : undefined;
}

/** The `logprobs` of a reply, if there are any. */
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
