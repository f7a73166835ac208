/** Acceptance rates of drafts by kind and sequence, to predict the next drafts. */
import { makeLookup, MATCH_MAX, type Lookup } from "./prompt-lookup.ts";
import type { Sequence } from "./sequence.ts";

/** Kinds of drafts by the length of the match before them, with their assumed acceptance rates. */
const KINDS = [
  { match: MATCH_MAX, accepted: 0.9 },
  { match: 12, accepted: 0.8 },
  { match: 6, accepted: 0.65 },
  { match: 0, accepted: 0.4 },
  { match: -1, accepted: 0.7 }, // by a draft model
] as const;
export const DRAFTED = KINDS.length - 1;
/** Weight of the assumed rate, in number of drafts. */
const OPINION = 4;
const CHANCE_MAX = 0.98;
/** Share of a record that remains after each new one. */
const MEMORY = 0.9;
/**
 * Share of a draft model's record that is forgotten with every token that was not drafted, so that the model is
 * eventually tried again.
 */
const FORGOTTEN = 0.005;

/** The drafts of one sequence. */
interface History {
  readonly lookup: Lookup;
  /** By kind. */
  readonly records: { accepted: number; tried: number }[];
  /** In the current step. */
  drafted: { kind: number; count: number } | undefined;
}

export interface AcceptanceRates {
  readonly lookupOf: (sequence: Sequence) => Lookup;
  /** Probability that a drafted token is accepted if the tokens before it are. */
  chance(sequence: Sequence, kind: number): number;
  /** Records that a step has this many drafted tokens of that kind. */
  drafted(sequence: Sequence, draft: { kind: number; count: number }): void;
  /** Records how many drafts of the last step were accepted. */
  recordAccepted(sequence: Sequence, accepted: number): void;
  /** Records a step without drafts. */
  fade(sequence: Sequence): void;
}

/** The kind of a draft from earlier text. */
export const kindOf = (shared: number): number => KINDS.findIndex(({ match }) => shared >= match);

export function makeAcceptanceRates(): AcceptanceRates {
  const histories = new WeakMap<Sequence, History>();
  const historyOf = (sequence: Sequence): History => {
    const known = histories.get(sequence);
    if (known) return known;
    const records = KINDS.map(({ accepted }) => ({ accepted: accepted * OPINION, tried: OPINION }));
    const made: History = { lookup: makeLookup(), records, drafted: undefined };
    histories.set(sequence, made);
    return made;
  };
  return {
    lookupOf: (sequence) => historyOf(sequence).lookup,
    chance(sequence, kind) {
      const { accepted, tried } = historyOf(sequence).records[kind]!;
      return Math.min(CHANCE_MAX, accepted / tried);
    },
    drafted: (sequence, draft) => void (historyOf(sequence).drafted = draft),
    recordAccepted(sequence, accepted) {
      const history = historyOf(sequence);
      const { drafted } = history;
      if (!drafted) return;
      const record = history.records[drafted.kind]!;
      record.accepted = record.accepted * MEMORY + accepted;
      record.tried = record.tried * MEMORY + Math.min(accepted + 1, drafted.count);
      history.drafted = undefined;
    },
    fade(sequence) {
      const record = historyOf(sequence).records[DRAFTED]!;
      record.accepted += FORGOTTEN * (KINDS.at(-1)!.accepted * OPINION - record.accepted);
      record.tried += FORGOTTEN * (OPINION - record.tried);
    },
  };
}
