/**
 * Speculative decoding: a step verifies tokens that were guessed, and goes on behind those that turn out right
 * (arXiv:2211.17192). A guess is right only where the very token was chosen from the model's own logits, by the same
 * sampler in the same order as without guesses, so that answers are the same to the last token, whatever they are drawn
 * with. Steps hold as many guesses as measured times and the guesses' record make worth while; none, where none are.
 */
import { makeDecodeCosts, type DecodeCosts } from "./decode-costs.ts";
import { makeLookup, MATCH_MAX, type Guess, type Lookup } from "./lookup.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** Most guessed tokens of a sequence in one step. */
const GUESSED_MAX = 15;
/** Rows of a step that guesses fill it up to: products are made for so many at once. */
const FILLED = [2, 4, 8, 12, 16, 24, 32];
/** What a step must promise over one without guesses. */
const WORTH = 1.05;
/** Guesses by how much stood before them, and how often such are right before anything is known. */
const KINDS = [
  { match: MATCH_MAX, right: 0.9 },
  { match: 12, right: 0.8 },
  { match: 6, right: 0.65 },
  { match: 0, right: 0.4 },
] as const;
/** As many guesses does the opinion before anything is known weigh. */
const OPINION = 4;
const CHANCE_MAX = 0.98;
/** How much of a record stays with each new one. */
const MEMORY = 0.9;

export interface Speculation {
  /** The step with guesses behind the tokens of some sequences. */
  extend(work: Work): Work;
  /** What a step took, without that of choosing tokens. */
  took(work: Work, ns: number): void;
  /** How many of its guesses in the last step were right. */
  judge(sequence: Sequence, right: number): void;
}

/** What is known of one sequence's guesses. */
interface History {
  readonly lookup: Lookup;
  /** By kind. */
  readonly records: { right: number; tried: number }[];
  /** In the step that runs. */
  guessed: { kind: number; count: number } | undefined;
}

interface Candidate {
  readonly index: number;
  readonly guess: Guess;
  readonly kind: number;
  /** How likely each of its tokens is right where those before it are. */
  readonly chance: number;
}

export function makeSpeculation({ ctxLen }: { ctxLen: number }): Speculation {
  const costs = makeDecodeCosts();
  const histories = new WeakMap<Sequence, History>();
  const historyOf = (sequence: Sequence): History => {
    const known = histories.get(sequence);
    if (known) return known;
    const records = KINDS.map(({ right }) => ({ right: right * OPINION, tried: OPINION }));
    const made: History = { lookup: makeLookup(), records, guessed: undefined };
    histories.set(sequence, made);
    return made;
  };

  const candidateOf = (sequence: Sequence, index: number): Candidate | undefined => {
    const { tokens, cached, predictMax, generated, media } = sequence;
    const room = Math.min(GUESSED_MAX, ctxLen - cached - 1, predictMax - generated.length - 1);
    if (room < 1 || media.length > 0) return undefined;
    const { lookup, records } = historyOf(sequence);
    const guess = lookup.guess(tokens, room);
    if (!guess) return undefined;
    const kind = KINDS.findIndex(({ match }) => guess.match >= match);
    const { right, tried } = records[kind]!;
    return { index, guess, kind, chance: Math.min(CHANCE_MAX, right / tried) };
  };

  return {
    extend(work) {
      if (work.kind !== "decode") return work;
      const candidates = work.sequences.flatMap((sequence, index) => candidateOf(sequence, index) ?? []);
      const chosen = counts(candidates, { sequences: work.sequences.length, costs });
      if (chosen.size === 0) return work;
      const rows = [...work.rows];
      for (const [{ index, guess, kind }, count] of chosen) {
        historyOf(work.sequences[index]!).guessed = { kind, count };
        const tokens = Int32Array.of(...rows[index]!.tokens, ...guess.tokens.subarray(0, count));
        rows[index] = { ...rows[index]!, tokens, logits: "all", drafted: true };
      }
      return { ...work, rows };
    },
    took({ kind, rows }, ns) {
      const count = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
      if (kind === "decode") costs.note(count, ns);
    },
    judge(sequence, right) {
      const history = historyOf(sequence);
      const { guessed } = history;
      if (!guessed) return;
      const record = history.records[guessed.kind]!;
      record.right = record.right * MEMORY + right;
      record.tried = record.tried * MEMORY + Math.min(right + 1, guessed.count);
      history.guessed = undefined;
    },
  };
}

/** Of each sequence, how many of its guesses make the step give the most tokens for its time. */
function counts(
  candidates: readonly Candidate[],
  { sequences, costs }: { sequences: number; costs: DecodeCosts },
): Map<Candidate, number> {
  const chosen = new Map<Candidate, number>();
  let [rows, tokens] = [sequences, sequences];
  let rate = tokens / (costs.of(rows) ?? Infinity); // 0, and no guesses, before anything is measured
  if (rate === 0) return chosen;
  for (const each of candidates.toSorted((a, b) => b.chance - a.chance)) {
    const { chance, guess } = each;
    const most = guess.tokens.length;
    let best = { count: 0, rate: rate * WORTH, tokens };
    for (const count of new Set([...FILLED.map((filled) => filled - rows), most])) {
      if (count < 1 || count > most) continue;
      const more = tokens + (chance * (1 - chance ** count)) / (1 - chance);
      const expected = more / costs.of(rows + count)!; // fewer rows were measured
      if (expected > best.rate) best = { count, rate: expected, tokens: more };
    }
    if (best.count === 0) continue;
    chosen.set(each, best.count);
    ({ rate, tokens } = best);
    rows += best.count;
  }
  return chosen;
}

/** The step without its guesses. */
export const withoutGuesses = ({ rows, ...work }: Work): Work => ({
  ...work,
  rows: rows.map(({ drafted = false, ...each }) =>
    drafted ? { ...each, tokens: each.tokens.subarray(0, 1), logits: "last" } : each,
  ),
});
