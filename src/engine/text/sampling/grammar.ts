/**
 * Constrained decoding: the tokens that keep the answer valid JSON, or valid for a JSON schema. The grammar is ours
 * (`schema/compile.ts`); xgrammar matches it against a vocabulary (arXiv:2411.15100; `@mlc-ai/web-xgrammar`,
 * WebAssembly).
 *
 * That library reports errors by aborting, with the reason on stderr only. So its input is checked completely first,
 * and after an abort its objects are discarded and recreated. It has a size of one megabyte and is loaded by the first
 * request that needs it.
 */
import type {
  CompiledGrammar,
  GrammarCompiler as LibraryCompiler,
  GrammarMatcher as LibraryMatcher,
  TokenizerInfo,
} from "@mlc-ai/web-xgrammar";
import { AppError, assert } from "../../../base/index.ts";
import type { GrammarTokens } from "../tokenizer/grammar-vocabulary.ts";
import { LengthLimiter, tokenTextsOf, type TokenTexts } from "./length-limits.ts";
import { objectGrammar, schemaGrammar } from "./schema/compile.ts";
import { limitsIn, type LengthLimits } from "./schema/length-marks.ts";
import { checkSize } from "./schema/read.ts";

/** A model's tokens, in the library's form. */
export interface GrammarVocabulary extends GrammarTokens {
  /** Length of a row of logits; at least the number of tokens. */
  readonly vocabSize: number;
}

/** `"json"`: any JSON object; an object: a JSON schema. */
export type Format = "json" | Readonly<Record<string, unknown>>;

/** A grammar in the library's notation. */
export interface OwnGrammar {
  /** EBNF whose root rule is `root`. */
  readonly text: string;
  /** True if a complete text cannot be continued; else a token that ends the answer must follow it. */
  readonly closes: boolean;
}

/** The state of one answer. Owned by its sequence, which disposes it. */
export interface GrammarMatcher {
  /** True if any token may follow now; absent: never. */
  readonly isFree?: boolean;
  /** The token that replaces a freely chosen one; absent: the mask is sufficient. */
  settle?(id: number): Promise<number>;
  /** One bit per id that may follow, bit `id & 31` of word `id >> 5`; undefined: all may. */
  mask(): Promise<Int32Array | undefined>;
  /** Accepts the sampled token; false if the grammar does not allow it. */
  accept(id: number): boolean;
  /** Resolves with true if the value is complete and cannot continue. */
  isOver(): Promise<boolean>;
  dispose(): void;
}

/** One per loaded model. */
export interface GrammarCompiler {
  /** A matcher at the start of an answer. Throws `bad_request` for an unusable schema, naming the JSON path. */
  matcher(format: Format): Promise<GrammarMatcher>;
  /** A matcher after the beginning of a text; undefined: no text of the grammar begins with it. */
  begin(grammar: OwnGrammar, text: string): Promise<GrammarMatcher | undefined>;
  /** Announces that a grammar may be needed soon. */
  prepare(grammar: OwnGrammar): void;
  dispose(): void;
}

/** Compiled grammars kept for the next request; each takes up to a few megabytes. */
const CACHE_MAX = 16;

type Library = {
  readonly tokens: TokenizerInfo;
  readonly compiler: LibraryCompiler;
  readonly matcherOf: typeof LibraryMatcher.createGrammarMatcher;
};

/** A compiled grammar; disposed once it is evicted from the cache and no matcher uses it. */
interface Compiled {
  readonly grammar: CompiledGrammar;
  readonly matcherOf: Library["matcherOf"];
  readonly closes: boolean;
  readonly limits: readonly LengthLimits[];
  users: number;
  cached: boolean;
}

interface Started {
  readonly matcher: GrammarMatcher;
  /** Accepts a text as if its characters had been sampled; false if the grammar does not allow it. */
  acceptText(text: string): boolean;
}

/** Creates the library's objects at first use: a vocabulary of 128,256 tokens takes 0.3 s and 30 MB. */
export function makeGrammarCompiler(vocabulary: GrammarVocabulary): GrammarCompiler {
  const { stopIds, vocabSize } = vocabulary;
  assert(
    stopIds.every((id) => id >= 0 && id < vocabSize),
    `stop ids ${stopIds.join()} in a vocabulary of ${vocabSize}`,
  );
  const compiledGrammars = makeCompiledGrammars(vocabulary);
  let texts: TokenTexts | undefined;

  const start = async (compiling: Promise<Compiled>): Promise<Started> => {
    const compiled = await compiling;
    compiled.users++;
    const done = (): void => {
      compiled.users--;
      release(compiled);
    };
    try {
      // an object ends with its brace; a number needs a stop token, if there is one
      const endsItself = compiled.closes || stopIds.length === 0;
      const inner = await compiled.matcherOf(compiled.grammar, undefined, endsItself);
      const limits =
        compiled.limits.length > 0
          ? followLengths(inner, compiled.limits, (texts ??= tokenTextsOf(vocabulary)))
          : undefined;
      const acceptText = (text: string): boolean => {
        limits?.limiter.take(new TextEncoder().encode(text));
        return text === "" || inner._acceptString(text);
      };
      return { matcher: wrap(inner, done, limits), acceptText };
    } catch (error) {
      done();
      throw error;
    }
  };
  const ownKey = ({ text, closes }: OwnGrammar): string => `${closes ? "closing" : "open"} grammar\n${text}`;

  return {
    matcher: async (format) => {
      const key = format === "json" ? format : checkSize(format);
      const textOf = (): OwnGrammar => (format === "json" ? objectGrammar() : schemaGrammar(format));
      return (await start(compiledGrammars.get(key, textOf))).matcher;
    },
    begin: async (grammar, text) => {
      const { matcher, acceptText } = await start(compiledGrammars.get(ownKey(grammar), () => grammar));
      if (acceptText(text)) return matcher;
      matcher.dispose();
      return undefined;
    },
    prepare: () => {}, // the model's thread would have to wait for it
    dispose: () => compiledGrammars.close(),
  };
}

/** Disposes a compiled grammar that is out of the cache and that no matcher uses. */
function release({ cached, users, grammar }: Compiled): void {
  if (!cached && users === 0) grammar.dispose();
}

/** Cache of recently compiled grammars, by key. */
function makeCompiledGrammars(vocabulary: GrammarVocabulary) {
  const library = libraryFor(vocabulary);
  const cache = new Map<string, Promise<Compiled>>();

  const evict = (key: string): void => {
    const evicted = cache.get(key);
    cache.delete(key);
    evicted?.then(
      (compiled) => {
        compiled.cached = false;
        release(compiled);
      },
      () => undefined, // it failed to compile, which its request has reported
    );
  };

  const compile = async (text: OwnGrammar): Promise<Compiled> => {
    const { compiler, matcherOf } = await library.get();
    try {
      const grammar = await compiler.compileGrammar(text.text);
      return { grammar, matcherOf, closes: text.closes, limits: limitsIn(text.text), users: 0, cached: true };
    } catch (cause) {
      library.giveUp();
      throw new AppError("bad_request", "format: the grammar library cannot use this schema", { cause });
    }
  };

  return {
    get(key: string, textOf: () => OwnGrammar): Promise<Compiled> {
      let compiled = cache.get(key);
      cache.delete(key); // moves it to the end, as the latest
      compiled ??= compile(textOf());
      cache.set(key, compiled);
      compiled.catch(() => cache.delete(key)); // failures are not cached
      if (cache.size > CACHE_MAX) evict(cache.keys().next().value!);
      return compiled;
    },
    close(): void {
      for (const key of cache.keys()) evict(key);
      library.close();
    },
  };
}

/** The library's objects, opened at first use, and again after a failure or a disposal. */
function libraryFor(vocabulary: GrammarVocabulary) {
  let library: Promise<Library> | undefined;
  const giveUp = (): void => void (library = undefined);
  return {
    get(): Promise<Library> {
      if (library) return library;
      const opening = openLibrary(vocabulary);
      library = opening;
      opening.catch(() => library === opening && giveUp()); // failures are not cached
      return opening;
    },
    giveUp,
    close(): void {
      library?.then(
        ({ compiler, tokens }) => {
          compiler.dispose();
          tokens.dispose();
        },
        () => undefined, // it failed to open, which its request has reported
      );
      giveUp();
    },
  };
}

async function openLibrary(vocabulary: GrammarVocabulary): Promise<Library> {
  const { tokens, kind, prependSpace, vocabSize, stopIds } = vocabulary;
  const {
    GrammarCompiler: Compiler,
    GrammarMatcher: Matcher,
    TokenizerInfo: Info,
  } = await import("@mlc-ai/web-xgrammar");
  const info = await Info.createTokenizerInfo([...tokens], kind, prependSpace, vocabSize, [...stopIds]);
  const compiler = await Compiler.createGrammarCompiler(info, false); // we have our own cache
  return { tokens: info, compiler, matcherOf: (...args) => Matcher.createGrammarMatcher(...args) };
}

interface Lengths {
  readonly limiter: LengthLimiter;
  readonly texts: TokenTexts;
}

function followLengths(inner: LibraryMatcher, limits: Compiled["limits"], texts: TokenTexts): Lengths {
  const accepts = (text: string): boolean => {
    if (!inner._acceptString(text)) return false;
    inner.rollBack(1);
    return true;
  };
  return { limiter: new LengthLimiter(limits, texts, accepts), texts };
}

function wrap(inner: LibraryMatcher, done: () => void, lengths: Lengths | undefined): GrammarMatcher {
  let disposed = false;
  return {
    mask: async () => {
      const mask = await inner.getNextTokenBitmask();
      lengths?.limiter.apply(mask);
      return mask;
    },
    accept: (id) => {
      if (lengths?.limiter.allows(id) === false || !inner.acceptToken(id)) return false;
      lengths?.limiter.take(lengths.texts.bytes(id));
      return true;
    },
    isOver: async () => inner.isTerminated(),
    dispose: () => {
      if (disposed) return;
      disposed = true;
      inner.dispose();
      done();
    },
  };
}
