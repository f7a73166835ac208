/**
 * The grammars of a model: compilers that are created at first use, one per set of control tokens that count as text in
 * calls.
 */
import { remembering } from "../../base/index.ts";
import type { GrammarCompiler, GrammarMatcher } from "../text/sampling/grammar.ts";
import type { OpenGrammarThread } from "../text/sampling/grammar-threads.ts";
import { vocabularyForGrammar, type loadTokenizer } from "../text/tokenizer/load.ts";
import { makeLazyGrammar } from "../text/sampling/lazy-grammar.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import { idsOf } from "./answer-text.ts";
import type { SequenceRequest } from "./sequence.ts";

/** The compiler for answers that show these control tokens as text. */
export type Grammars = (visible?: readonly string[]) => Promise<GrammarCompiler>;

interface Parts {
  readonly tokenizer: ReturnType<typeof loadTokenizer>;
  readonly vocabSize: number;
  /** Opens a thread for grammars of large schemas; undefined: all are compiled between steps. */
  readonly open: OpenGrammarThread | undefined;
}

export function makeGrammars({ tokenizer, vocabSize, open }: Parts): Grammars {
  const made = new Map<string, Promise<GrammarCompiler>>();
  let plain: ReturnType<typeof vocabularyForGrammar> | undefined;
  const make = async (visible: ReadonlySet<number>): Promise<GrammarCompiler> => {
    const { makeGrammarCompiler } = await import("../text/sampling/grammar.ts"); // fetched on demand in pages
    const vocabulary = { ...vocabularyForGrammar(tokenizer, visible), vocabSize };
    const inside = makeGrammarCompiler(vocabulary);
    if (!open) return inside;
    const { withThreads } = await import("../text/sampling/grammar-threads.ts");
    return withThreads(inside, { vocabulary, open });
  };
  const shownIds = remembering((visible) => {
    const { tokens } = (plain ??= vocabularyForGrammar(tokenizer));
    return [...idsOf(tokenizer, visible)].filter((id) => tokens[id] === "").sort((a, b) => a - b);
  });
  return (visible = []) => {
    const shown = visible.length > 0 ? shownIds(visible) : [];
    const key = shown.join();
    const known = made.get(key);
    if (known) return known;
    const making = make(new Set(shown));
    made.set(key, making);
    making.catch(() => made.delete(key)); // a page may fail to fetch the library; the next call tries again
    return making;
  };
}

/** True if a grammar constrains some of the answer. */
export const isConstrained = ({ format, grammar, calls }: SequenceRequest): boolean =>
  format !== undefined || grammar !== undefined || calls !== undefined;

/** The grammar that constrains an answer; undefined: the answer is free. */
export async function grammarOf(
  { options, format, grammar, calls, visible = [], promptEnd = "" }: SequenceRequest,
  { grammars, tokenizer, vocabSize }: { grammars: Grammars; tokenizer: Tokenizer; vocabSize: number },
): Promise<GrammarMatcher | undefined> {
  if (format) return (await grammars()).matcher(format);
  if (grammar) {
    const { answerGrammar } = await import("../text/sampling/answer-grammar.ts"); // pages fetch it on demand
    return (await grammars()).begin(answerGrammar(grammar), "");
  }
  if (!calls) return undefined;
  const shown = idsOf(tokenizer, visible);
  return makeLazyGrammar(calls, {
    vocabSize,
    bytesOf: (id) => tokenizer.bytesOf(id, { special: shown.has(id) }),
    isStop: (text) => [...idsOf(tokenizer, [text])].some((id) => tokenizer.endOfGeneration.has(id)),
    thinkingMax: options.thinking_budget < 0 ? Infinity : options.thinking_budget,
    isThinking: calls.thinking !== undefined && promptEnd.endsWith(calls.thinking.open),
    compiler: () => grammars(visible),
  });
}
