/** Random answers under a grammar: a stand-in for a model that chooses at random, with a bias towards the end. */
import { makeRng } from "../../../../src/engine/text/rng.ts";
import type { Format, GrammarCompiler, GrammarVocabulary } from "../../../../src/engine/text/sampling/grammar.ts";
import { SAMPLING_DEFAULTS } from "../../../../src/engine/text/sampling/options.ts";
import { makeSampler } from "../../../../src/engine/text/sampling/sampler.ts";

const END_BONUS = 7;
const ROWS = 7; // different logits in a walk; they repeat after this many tokens

export interface Answer {
  readonly text: string;
  /** True if the grammar or a stop token ended it; else it ran out of tokens. */
  readonly complete: boolean;
}

/** Logits of a seeded model: noise, with weight on tokens that close something, and on others if they are likely. */
export function makeLogits(
  vocabulary: GrammarVocabulary,
  seed: number,
  isLikely: (token: string, id: number) => boolean = () => false,
): (at: number) => Float32Array {
  const rng = makeRng(seed);
  const bonus = new Float32Array(vocabulary.vocabSize);
  for (const [id, token] of vocabulary.tokens.entries())
    if (/^["}\],.@]/.test(token) || isLikely(token, id)) bonus[id] = END_BONUS;
  for (const id of vocabulary.stopIds) bonus[id] = END_BONUS + 2;
  const rows = Array.from({ length: ROWS }, () => bonus.map((value) => value + rng.float() * 4));
  return (at) => rows[at % ROWS]!.slice();
}

/** Samples under a format until it ends, or for `limit` tokens. `textOf` turns ids into text. */
export async function answer(
  compiler: GrammarCompiler,
  format: Format,
  options: {
    vocabulary: GrammarVocabulary;
    logits: (at: number) => Float32Array;
    textOf: (ids: readonly number[]) => string;
    seed: number;
    limit: number;
  },
): Promise<Answer> {
  const { vocabulary, seed, limit } = options;
  const matcher = await compiler.matcher(format);
  const sampler = makeSampler(
    { ...SAMPLING_DEFAULTS, seed, temperature: 1, top_k: 0, top_p: 1 },
    { vocabSize: vocabulary.vocabSize, ctxLen: limit },
  );
  const ids: number[] = [];
  try {
    while (ids.length < limit) {
      const id = sampler.sample(options.logits(seed * 1000 + ids.length), await matcher.mask());
      if (vocabulary.stopIds.includes(id)) return { text: options.textOf(ids), complete: true };
      if (!matcher.accept(id)) throw new Error(`token ${id} was in the mask, but is not accepted`);
      ids.push(id);
      if (await matcher.isOver()) return { text: options.textOf(ids), complete: true };
    }
    return { text: options.textOf(ids), complete: false };
  } finally {
    matcher.dispose();
  }
}
