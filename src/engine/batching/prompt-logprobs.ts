/**
 * Log-probabilities of a prompt's own tokens. Each run of the prompt returns the logits of all its rows; they are
 * reduced at once to the wanted numbers, so that only the logits of one run are ever in memory.
 */
import { rankOf } from "../text/sampling/logprobs.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import { describeToken, textOfToken, type TokenLogprob } from "./answer-text.ts";

/** Bytes of the logits of one run. */
const LOGITS_BYTES_MAX = 64 * 2 ** 20;

/** A token of a prompt. The first one and media have no probability, because no logits precede or name them. */
export interface PromptLogprob extends Omit<TokenLogprob, "logprob"> {
  readonly logprob?: number;
  /** 1 for the likeliest token; set together with `logprob`. */
  readonly rank?: number;
  /** The likeliest tokens, best first. */
  readonly top: readonly TokenLogprob[];
}

/** The tokens of one prompt. */
export interface PromptScores {
  /** Maximum rows of a run. */
  readonly rowsMax: number;
  /** Leading rows whose logits are not needed any more; Infinity: all tokens are described. */
  readonly rowsDone: number;
  /** Describes the tokens after rows `start` …. @param logits (vocabSize) of each row, unmodified */
  take(start: number, logits: readonly Float32Array[]): void;
  /** The tokens described since the last call, in order. */
  drain(): readonly PromptLogprob[];
}

interface ScoresOptions {
  /** Ids of the whole prompt; −1 for a media row. */
  readonly prompt: Int32Array;
  /** Number of alternatives. */
  readonly count: number;
  readonly vocabSize: number;
  readonly tokenizer: Tokenizer;
}

export function makePromptScores({ prompt, count, vocabSize, tokenizer }: ScoresOptions): PromptScores {
  let described = 0;
  let found: PromptLogprob[] = [];
  const without = (id: number): PromptLogprob =>
    id < 0 ? { id, token: "", bytes: [], top: [] } : { id, ...textOfToken(tokenizer, id), top: [] };
  const describe = (id: number, logits: Float32Array | undefined): PromptLogprob => {
    if (!logits || id < 0) return without(id);
    return { ...describeToken(tokenizer, { logits, id, count }), rank: rankOf(logits, id) };
  };
  return {
    rowsMax: Math.max(2, Math.floor(LOGITS_BYTES_MAX / (4 * vocabSize))), // a run of one row has other kernels
    get rowsDone() {
      return described === prompt.length ? Infinity : Math.max(0, described - 1);
    },
    take(start, logits) {
      if (described === 0 && start === 0) found.push(describe(prompt[described++]!, undefined));
      for (const [row, each] of logits.entries()) {
        if (start + row + 1 !== described || described === prompt.length) continue; // described before, or new text
        found.push(describe(prompt[described++]!, each));
      }
    },
    drain() {
      const all = found;
      found = [];
      return all;
    },
  };
}
