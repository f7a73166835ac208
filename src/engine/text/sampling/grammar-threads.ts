/**
 * Compiles grammars of large schemas in separate threads, because that takes up to seconds, which would block other
 * answers. Small ones take a few milliseconds and stay in the model's thread. A thread compiles only while no answer
 * uses it, because a step waits for the masks of all its answers.
 */
import { AppError, assert, type Code, codeOf, messageOf } from "../../../base/index.ts";
import type { Format, GrammarCompiler, GrammarMatcher, GrammarVocabulary, OwnGrammar } from "./grammar.ts";
import { checkSize } from "./schema/read.ts";

/** Schemas up to this length compile within 0.2 s. */
const SMALL_CHARS = 1000;
/** Estimated length of a grammar's text, in lengths of the schema that it is made from. */
const GRAMMAR_CHARS = 6;
/** Each thread holds a copy of the library and its vocabulary: up to 100 MB. */
const THREADS_MAX = 4;
/** Cache size of a thread's compiler. */
const KNOWN_MAX = 16;

/** A matcher's format, or its grammar and the text that it has already accepted. */
type Source = { readonly format: Format } | { readonly grammar: OwnGrammar; readonly begun: string };

/** Messages to a thread. Matchers have numbers. */
export type ToGrammarThread =
  | { readonly kind: "open"; readonly vocabulary: GrammarVocabulary }
  | ({ readonly kind: "start"; readonly id: number } & Source)
  | { readonly kind: "prepare"; readonly grammar: OwnGrammar }
  | { readonly kind: "accept"; readonly id: number; readonly token: number }
  | { readonly kind: "dispose"; readonly id: number };

/**
 * Messages from a thread, after each start and each accepted token: true if the value is complete, then the mask.
 */
export type FromGrammarThread =
  | { readonly kind: "over"; readonly id: number; readonly isOver: boolean }
  | { readonly kind: "mask"; readonly id: number; readonly mask: Int32Array | undefined }
  /** No text of the grammar begins in the requested way; the matcher is gone. */
  | { readonly kind: "refused"; readonly id: number }
  | { readonly kind: "failed"; readonly id: number; readonly code: Code; readonly message: string };

/** A thread that runs `serveGrammars`. */
export interface GrammarThread {
  send(message: ToGrammarThread): void;
  end(): void;
}

/** Starts a thread; `receive` gets its messages, `fail` the reason of its failure. */
export type OpenGrammarThread = (
  receive: (message: FromGrammarThread) => void,
  fail: (reason: string) => void,
) => GrammarThread;

/** The pending results of an answer. */
interface Waiting {
  over: PromiseWithResolvers<boolean | "refused">;
  mask: PromiseWithResolvers<Int32Array | undefined>;
}

interface Thread {
  readonly thread: GrammarThread;
  /** By number: matchers that use the thread. */
  readonly matchers: Map<number, Waiting>;
  /** Its compiled schemas, most recently used last. */
  readonly known: Set<string>;
  failure: AppError | undefined;
}

/** Records that a thread has a schema, as its most recently used one. */
function know({ known }: Thread, key: string): void {
  known.delete(key);
  known.add(key);
  if (known.size > KNOWN_MAX) known.delete(known.values().next().value!); // not empty
}

function makeThreads(vocabulary: GrammarVocabulary, open: OpenGrammarThread) {
  const threads: Thread[] = [];
  const start = (): Thread => {
    const matchers: Thread["matchers"] = new Map();
    const thread = open(
      (message) => settle(matchers.get(message.id), message),
      (reason) => {
        threads.splice(threads.indexOf(own), 1);
        own.failure = new AppError("runner", `format: its thread failed: ${reason}`);
        for (const each of matchers.values()) fail(each, own.failure);
        thread.end();
      },
    );
    const own: Thread = { thread, matchers, known: new Set(), failure: undefined };
    thread.send({ kind: "open", vocabulary });
    threads.push(own);
    return own;
  };
  /** A thread that has the schema, else an unused one; undefined: all threads are in use. */
  const find = (key: string): Thread | undefined =>
    threads.find(({ known }) => known.has(key)) ??
    threads.find(({ matchers }) => matchers.size === 0) ??
    (threads.length < THREADS_MAX ? start() : undefined);
  const leastUsed = (): Thread | undefined => threads.toSorted((a, b) => a.matchers.size - b.matchers.size)[0];
  return { threads, find, leastUsed };
}

/** As `inside`, but large schemas go to threads from `open`. */
export function withThreads(
  inside: GrammarCompiler,
  { vocabulary, open }: { vocabulary: GrammarVocabulary; open: OpenGrammarThread },
): GrammarCompiler {
  const { threads, find, leastUsed } = makeThreads(vocabulary, open);
  let nextId = 1;
  let freed = Promise.withResolvers<void>();
  const begin = async (key: string, source: Source): Promise<GrammarMatcher | undefined> => {
    // An answer that opens a call blocks the loop in which other answers would free their threads, so it must not wait
    // for one.
    let own = find(key) ?? ("grammar" in source ? leastUsed() : undefined);
    for (; !own; own = find(key)) await freed.promise;
    const id = nextId++;
    const { thread, matchers } = own;
    const release = (): void => {
      matchers.delete(id);
      freed.resolve();
      freed = Promise.withResolvers();
    };
    know(own, key);
    matchers.set(id, waiting());
    thread.send({ kind: "start", id, ...source });
    try {
      if ((await matchers.get(id)!.over.promise) !== "refused") return remoteMatcher(id, own, release); // set above
      release();
      return undefined;
    } catch (error) {
      own.known.delete(key);
      release();
      throw error;
    }
  };
  const isSmall = ({ text }: OwnGrammar): boolean => text.length <= SMALL_CHARS * GRAMMAR_CHARS;
  return {
    async matcher(format) {
      const key = format === "json" ? "" : checkSize(format);
      if (key.length <= SMALL_CHARS) return inside.matcher(format);
      const matcher = await begin(key, { format });
      assert(matcher, "a matcher at the start of an answer was refused");
      return matcher;
    },
    begin: (grammar, text) =>
      isSmall(grammar) ? inside.begin(grammar, text) : begin(grammar.text, { grammar, begun: text }),
    prepare(grammar) {
      const own = isSmall(grammar) ? undefined : find(grammar.text);
      if (!own || own.known.has(grammar.text)) return;
      know(own, grammar.text);
      own.thread.send({ kind: "prepare", grammar });
    },
    dispose() {
      inside.dispose();
      for (const { thread } of threads.splice(0)) thread.end();
    },
  };
}

function remoteMatcher(id: number, own: Thread, release: () => void): GrammarMatcher {
  const { thread, matchers } = own;
  const now = (): Waiting => {
    const found = matchers.get(id);
    assert(found, `matcher ${id} is used after it was disposed`);
    return found;
  };
  return {
    mask: () => now().mask.promise,
    accept(token) {
      const next = Object.assign(now(), waiting());
      if (own.failure) fail(next, own.failure);
      else thread.send({ kind: "accept", id, token });
      return true; // the mask allowed it
    },
    isOver: async () => (await now().over.promise) === true,
    dispose() {
      if (!matchers.has(id)) return;
      thread.send({ kind: "dispose", id });
      release();
    },
  };
}

function waiting(): Waiting {
  const made: Waiting = { over: Promise.withResolvers(), mask: Promise.withResolvers() };
  made.over.promise.catch(() => {}); // the result may have no reader
  made.mask.promise.catch(() => {});
  return made;
}

function settle(waiting: Waiting | undefined, message: FromGrammarThread): void {
  if (!waiting) return; // its answer has ended
  if (message.kind === "over") waiting.over.resolve(message.isOver);
  else if (message.kind === "refused") waiting.over.resolve("refused");
  else if (message.kind === "mask") waiting.mask.resolve(message.mask);
  else fail(waiting, new AppError(message.code, message.message));
}

function fail({ over, mask }: Waiting, error: AppError): void {
  over.reject(error);
  mask.reject(error);
}

/** The thread's side: answers its messages. */
export function serveGrammars(
  makeCompiler: (vocabulary: GrammarVocabulary) => GrammarCompiler,
  send: (message: FromGrammarThread) => void,
): (message: ToGrammarThread) => Promise<void> {
  let compiler: GrammarCompiler | undefined;
  const matchers = new Map<number, GrammarMatcher>();
  const tell = async (id: number, matcher: GrammarMatcher): Promise<void> => {
    const isOver = await matcher.isOver();
    send({ kind: "over", id, isOver });
    send({ kind: "mask", id, mask: isOver ? undefined : await matcher.mask() });
  };
  return async (message) => {
    if (message.kind === "open") return void (compiler = makeCompiler(message.vocabulary));
    assert(compiler, "a thread is asked for a grammar before it has a vocabulary");
    if (message.kind === "prepare") {
      // An error is reported by the call that waits
      const matcher = await compiler.begin(message.grammar, "").catch(() => undefined);
      return matcher?.dispose();
    }
    const { id } = message;
    try {
      if (message.kind === "start") {
        const matcher =
          "format" in message
            ? await compiler.matcher(message.format)
            : await compiler.begin(message.grammar, message.begun);
        if (!matcher) return send({ kind: "refused", id });
        matchers.set(id, matcher);
      } else if (message.kind === "accept") matchers.get(id)?.accept(message.token);
      else {
        matchers.get(id)?.dispose();
        matchers.delete(id);
        return;
      }
      const matcher = matchers.get(id);
      if (matcher) await tell(id, matcher);
    } catch (error) {
      send({ kind: "failed", id, code: codeOf(error), message: messageOf(error) });
    }
  };
}
