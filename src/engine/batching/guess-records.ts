/** Acceptance rates of drafts by kind and sequence, to predict the next drafts. */
import { makeLookup, MATCH_MAX, type Lookup } from "./lookup.ts";
import type { Sequence } from "./sequence.ts";

/** Kinds of drafts by the length of the match before them, with their assumed acceptance rates. */
const KINDS = [
  { match: MATCH_MAX, right: 0.9 },
  { match: 12, right: 0.8 },
  { match: 6, right: 0.65 },
  { match: 0, right: 0.4 },
  { match: -1, right: 0.7 }, // by a draft model
] as const;
export const DRAFTED = KINDS.length - 1;
/** Weight of the assumed rate, in number of drafts. */
const OPINION = 4;
const CHANCE_MAX = 0.98;
/** Share of a record that remains with each new one. */
const MEMORY = 0.9;
/**
 * Share of a draft model's record that is forgotten with every undrafted token, so that it is tried again eventually.
 */
const FORGOTTEN = 0.005;

/** The drafts of one sequence. */
interface History {
  readonly lookup: Lookup;
  /** By kind. */
  readonly records: { right: number; tried: number }[];
  /** In the current step. */
  guessed: { kind: number; count: number } | undefined;
}

export interface GuessRecords {
  readonly lookupOf: (sequence: Sequence) => Lookup;
  /** Probability that a token of a draft is accepted if the ones before it are. */
  chance(sequence: Sequence, kind: number): number;
  /** Records that a step has so many drafted tokens of that kind. */
  guessed(sequence: Sequence, guess: { kind: number; count: number }): void;
  /** Records how many drafts of the last step were accepted. */
  judge(sequence: Sequence, right: number): void;
  /** Records a step without drafts. */
  fade(sequence: Sequence): void;
}

/** The kind of a draft from earlier text. */
export const kindOf = (shared: number): number => KINDS.findIndex(({ match }) => shared >= match);

export function makeGuessRecords(): GuessRecords {
  const histories = new WeakMap<Sequence, History>();
  const historyOf = (sequence: Sequence): History => {
    const known = histories.get(sequence);
    if (known) return known;
    const records = KINDS.map(({ right }) => ({ right: right * OPINION, tried: OPINION }));
    const made: History = { lookup: makeLookup(), records, guessed: undefined };
    histories.set(sequence, made);
    return made;
  };
  return {
    lookupOf: (sequence) => historyOf(sequence).lookup,
    chance(sequence, kind) {
      const { right, tried } = historyOf(sequence).records[kind]!;
      return Math.min(CHANCE_MAX, right / tried);
    },
    guessed: (sequence, guess) => void (historyOf(sequence).guessed = guess),
    judge(sequence, right) {
      const history = historyOf(sequence);
      const { guessed } = history;
      if (!guessed) return;
      const record = history.records[guessed.kind]!;
      record.right = record.right * MEMORY + right;
      record.tried = record.tried * MEMORY + Math.min(right + 1, guessed.count);
      history.guessed = undefined;
    },
    fade(sequence) {
      const record = historyOf(sequence).records[DRAFTED]!;
      record.right += FORGOTTEN * (KINDS.at(-1)!.right * OPINION - record.right);
      record.tried += FORGOTTEN * (OPINION - record.tried);
    },
  };
}
