/** How often guesses of each kind were right, of each sequence: what the next ones promise. */
import { makeLookup, MATCH_MAX, type Lookup } from "./lookup.ts";
import type { Sequence } from "./sequence.ts";

/** Guesses by how much stood before them, and how often such are right before anything is known. */
const KINDS = [
  { match: MATCH_MAX, right: 0.9 },
  { match: 12, right: 0.8 },
  { match: 6, right: 0.65 },
  { match: 0, right: 0.4 },
  { match: -1, right: 0.7 }, // by a draft model
] as const;
export const DRAFTED = KINDS.length - 1;
/** As many guesses does the opinion before anything is known weigh. */
const OPINION = 4;
const CHANCE_MAX = 0.98;
/** How much of a record stays with each new one. */
const MEMORY = 0.9;
/** How much of a draft model's is forgotten with every token that is not drafted: it is tried again some day. */
const FORGOTTEN = 0.005;

/** What is known of one sequence's guesses. */
interface History {
  readonly lookup: Lookup;
  /** By kind. */
  readonly records: { right: number; tried: number }[];
  /** In the step that runs. */
  guessed: { kind: number; count: number } | undefined;
}

export interface GuessRecords {
  readonly lookupOf: (sequence: Sequence) => Lookup;
  /** How likely each token of a guess is right where those before it are. */
  chance(sequence: Sequence, kind: number): number;
  /** A step has so many tokens of that kind. */
  guessed(sequence: Sequence, guess: { kind: number; count: number }): void;
  /** How many of its guesses in the last step were right. */
  judge(sequence: Sequence, right: number): void;
  /** A step was not drafted. */
  fade(sequence: Sequence): void;
}

/** The kind of a guess from earlier text. */
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
