/**
 * A grammar that applies from the opening of a call in an answer to its end. Elsewhere only the text of each token is
 * searched: no mask is computed, and no token is refused.
 *
 * A token may open a call and continue with a text that cannot begin a call. Then the answer gets only the part of the
 * token that opens the call.
 */
import { assert } from "../../../base/index.ts";
import { literal } from "./schema/char-set.ts";
import type { GrammarCompiler, GrammarMatcher, OwnGrammar } from "./grammar.ts";
import { binaryOf, makeWatch, toBinary, type Trigger } from "./trigger-watch.ts";

/** Plain data, for messages between processes. */
export interface LazyGrammar {
  readonly grammars: readonly CallGrammar[];
  readonly triggers: readonly Trigger[];
  /** Texts around thoughts, in which triggers are ignored; absent: there are no thoughts. */
  readonly thinking?: { readonly open: string; readonly close: string };
  /** True if the answer ends with its first call. */
  readonly once: boolean;
}

/** The text after a trigger, up to the end of the call. */
export interface CallGrammar {
  /** EBNF rules, among them `call`. */
  readonly rules: string;
  /**
   * Text after `call`, which is a token that ends answers in some models; empty: such a token must follow; absent: the
   * call ends by itself.
   */
  readonly end?: string;
}

interface Parts {
  readonly vocabSize: number;
  /** Bytes of a token in the answer's text. */
  bytesOf(id: number): Uint8Array;
  /** Returns whether a text is one token that ends answers. */
  isStop(text: string): boolean;
  /** Maximum tokens of thoughts, after which the thoughts are closed; Infinity: no limit. */
  readonly thinkingMax: number;
  /** The prompt ends inside thoughts. */
  readonly isThinking: boolean;
  compiler(): Promise<GrammarCompiler>;
}

export function makeLazyGrammar(lazy: LazyGrammar, parts: Parts): GrammarMatcher {
  const grammars = lazy.grammars.map((grammar) => whole(grammar, parts));
  const watch = makeWatch(lazy, parts.isThinking);
  let inner: GrammarMatcher | undefined; // inside a call
  let next: GrammarMatcher | undefined; // the matcher for the call that the replaced token opens
  let spelled: number[] = []; // tokens that must follow: they open a call
  let thoughtTokens = 0;
  const pieceOf = (id: number): string => toBinary(parts.bytesOf(id));
  void parts.compiler().then(
    (compiler) => grammars.forEach((grammar) => compiler.prepare(grammar)),
    () => undefined, // an error is reported by the call that waits
  );

  const closing = (): number[] => (lazy.thinking ? spell(binaryOf(lazy.thinking.close), parts) : []);
  if (watch.isThinking && parts.thinkingMax === 0) spelled = closing();

  const settle = async (id: number): Promise<number> => {
    const found = inner || spelled.length > 0 ? undefined : watch.find(pieceOf(id));
    if (!found) return id;
    const compiler = await parts.compiler();
    const grammar = grammars[found.grammar];
    assert(grammar, `a trigger names grammar ${found.grammar} of ${grammars.length}`);
    const rest = textOfBinary(found.rest);
    next?.dispose();
    next = rest === undefined ? undefined : await compiler.begin(grammar, rest);
    if (next) return id;
    next = await compiler.begin(grammar, "");
    spelled = spell(found.opening, parts);
    return spelled[0] ?? id;
  };

  return {
    get isFree() {
      return !inner && spelled.length === 0;
    },
    settle,
    mask: async () => (spelled.length > 0 ? only(spelled[0]!, parts.vocabSize) : inner?.mask()),
    accept(id) {
      if (inner) return inner.accept(id);
      if (spelled.length > 0) spelled = spelled.slice(1);
      const { isThinking: wasThinking } = watch; // the token that opens thoughts does not count
      const isOpened = watch.push(pieceOf(id));
      if (watch.isThinking) {
        if (wasThinking) thoughtTokens++;
        if (thoughtTokens >= parts.thinkingMax && spelled.length === 0) spelled = closing();
      }
      if (!isOpened) return true;
      [inner, next] = [next, undefined];
      assert(inner, "a call was opened by a token that was not settled");
      return true;
    },
    async isOver() {
      if (!inner || !(await inner.isOver())) return false;
      inner.dispose();
      inner = undefined;
      watch.restart();
      return lazy.once;
    },
    dispose() {
      inner?.dispose();
      next?.dispose();
      [inner, next] = [undefined, undefined];
    },
  };
}

function whole({ rules, end }: CallGrammar, { isStop }: Parts): OwnGrammar {
  if (end === undefined) return { text: `root ::= call\n${rules}`, closes: true };
  const stops = end === "" || isStop(end);
  return { text: `root ::= call ${stops ? "" : literal(end)}\n${rules}`, closes: !stops };
}

/** Undefined if the bytes end inside a character. */
function textOfBinary(binary: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(binary, (c) => c.charCodeAt(0)),
    );
  } catch {
    return undefined;
  }
}

/** Tokens with these bytes, the longest first. Searches the whole vocabulary, which is rare. */
function spell(bytes: string, { vocabSize, bytesOf }: Parts): number[] {
  const ids: number[] = [];
  for (let at = 0; at < bytes.length;) {
    let [best, length] = [-1, 0];
    for (let id = 0; id < vocabSize; id++) {
      const piece = bytesOf(id);
      if (piece.length > length && bytes.startsWith(toBinary(piece), at)) [best, length] = [id, piece.length];
    }
    if (best < 0) return []; // a vocabulary without single bytes
    ids.push(best);
    at += length;
  }
  return ids;
}

/** A mask that allows a single token. */
function only(id: number, vocabSize: number): Int32Array {
  const mask = new Int32Array(Math.ceil(vocabSize / 32));
  mask[id >> 5] = 1 << (id & 31);
  return mask;
}
