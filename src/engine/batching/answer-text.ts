/**
 * The text of an answer as it grows: ids become characters, stop strings end it, and what is known of each token comes
 * out with the text that completes it. Text is held back while it may be half a character or the start of a stop
 * string; the tokens behind it are held back with it.
 */
import { logSoftmaxTop } from "../text/sampling/logprobs.ts";
import { remembering } from "./remembering.ts";
import { compileStops, makeStopMatcher } from "../text/sampling/stop.ts";
import { makeStreamDetokenizer } from "../text/tokenizer/stream.ts";
import type { StreamDetokenizer, Tokenizer } from "../text/tokenizer/tokenizer.ts";

/** A token as people read it, and the natural logarithm of its probability. */
interface TokenText {
  readonly token: string;
  /** UTF-8: part of a character where the token ends inside one. */
  readonly bytes: readonly number[];
  readonly logprob: number;
}

/** The token that was chosen, and the likeliest ones, best first. */
export interface ChosenToken extends TokenText {
  readonly top: readonly TokenText[];
}

export interface AnswerPiece {
  readonly text: string;
  /** One per token whose text is out now; undefined if not requested. */
  readonly logprobs: readonly ChosenToken[] | undefined;
}

export interface AnswerText {
  /** What a token adds, and the stop string that ends the answer with it. */
  push(id: number, chosen?: ChosenToken): AnswerPiece & { readonly stop: string | undefined };
  /** What was held back, once no more tokens come. */
  end(): AnswerPiece;
  /**
   * Of the tokens that were pushed, how many are out whole, and what is out of the next: a stop string may begin within
   * it. They are read once more for it.
   */
  shown(ids: readonly number[]): { readonly count: number; readonly rest: string };
}

/** A token that is not out yet: its text begins and ends at these characters of the whole answer. */
interface Held {
  readonly chosen: ChosenToken;
  readonly from: number;
  readonly to: number;
}

interface AnswerOptions {
  readonly stops: readonly string[];
  /** Texts of control tokens that come out as text. */
  readonly visible?: readonly string[] | undefined;
}

/** What makes the texts of a model's answers: many requests have the same stop strings. */
export function makeAnswerTexts(tokenizer: Tokenizer): (options: AnswerOptions) => AnswerText {
  const idsOfAll = remembering((texts) => idsOf(tokenizer, texts));
  const compiled = remembering(compileStops);
  return ({ stops, visible = [] }) => {
    const makeDetokenizer = (): StreamDetokenizer => makeStreamDetokenizer(tokenizer, idsOfAll(visible));
    return makeAnswerText(makeDetokenizer, makeStopMatcher(compiled(stops)));
  };
}

function makeAnswerText(
  makeDetokenizer: () => StreamDetokenizer,
  matcher: ReturnType<typeof makeStopMatcher>,
): AnswerText {
  const detokenizer = makeDetokenizer();
  let held: Held[] = [];
  let seen = 0; // characters that tokens gave
  let out = 0; // characters that were handed on

  const piece = (text: string, isOut: (token: Held) => boolean): AnswerPiece => {
    if (held.length === 0) return { text, logprobs: undefined };
    const count = held.findIndex((token) => !isOut(token));
    const ready = held.splice(0, count < 0 ? held.length : count);
    return { text, logprobs: ready.length > 0 ? ready.map(({ chosen }) => chosen) : undefined };
  };

  return {
    push(id, chosen) {
      const more = detokenizer.push(id);
      const from = seen;
      seen += more.length;
      if (chosen) held.push({ chosen, from, to: seen });
      const { text, stop } = matcher.push(more);
      out += text.length;
      // a token that a stop string swallowed is none of the answer's
      if (stop !== undefined) return { ...piece(text, (token) => token.from < out), stop };
      return { ...piece(text, (token) => text !== "" && token.to <= out), stop };
    },
    end() {
      const last = matcher.push(detokenizer.end());
      if (last.stop === undefined) return piece(last.text + matcher.end(), () => true);
      out += last.text.length;
      return piece(last.text, (token) => token.from < out);
    },
    shown(ids) {
      const again = makeDetokenizer();
      const texts = ids.map((id) => again.push(id));
      let [count, end] = [0, 0];
      while (count < texts.length && end + texts[count]!.length <= out) end += texts[count++]!.length;
      const rest = texts[count]?.slice(0, out - end) ?? "";
      while (count > 0 && texts[count - 1] === "") count--; // a character's beginning may be behind it
      return { count, rest };
    },
  };
}

/** Those of the texts that are one token. */
function idsOf(tokenizer: Tokenizer, texts: readonly string[]): ReadonlySet<number> {
  const encoded = texts.map((text) => tokenizer.encode(text, { addSpecial: false, parseSpecial: true }));
  return new Set(encoded.flatMap((ids) => (ids.length === 1 ? [ids[0]!] : [])));
}

/**
 * What is known of a chosen token.
 * @param logits (vocabSize) as the model gave them
 * @param count alternatives to name
 */
export function describeToken(
  tokenizer: Tokenizer,
  { logits, id, count }: { logits: Float32Array; id: number; count: number },
): ChosenToken {
  const { logprob, top } = logSoftmaxTop(logits, id, count);
  return { ...textOf(tokenizer, { id, logprob }), top: top.map((each) => textOf(tokenizer, each)) };
}

function textOf(tokenizer: Tokenizer, { id, logprob }: { id: number; logprob: number }): TokenText {
  const bytes = tokenizer.bytesOf(id, { special: true });
  return { token: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), bytes: Array.from(bytes), logprob };
}
