/**
 * The growing text of an answer: decodes ids, ends at stop strings, and attaches log-probabilities to the text that
 * completes their token. Text is held back while it may be part of a character or the start of a stop string, and so
 * are the tokens after it.
 */
import { remembering } from "../../base/index.ts";
import { logSoftmaxTop } from "../text/sampling/logprobs.ts";
import { compileStops, makeStopMatcher } from "../text/sampling/stop.ts";
import { makeStreamDetokenizer } from "../text/tokenizer/stream.ts";
import type { StreamDetokenizer, Tokenizer } from "../text/tokenizer/tokenizer.ts";

/** A token, and the natural logarithm of its probability. */
export interface TokenLogprob {
  readonly id: number;
  readonly token: string;
  /** UTF-8 bytes of the token, possibly part of a character. */
  readonly bytes: readonly number[];
  readonly logprob: number;
}

/** The chosen token and the likeliest ones, best first. */
export interface ChosenLogprob extends TokenLogprob {
  readonly top: readonly TokenLogprob[];
}

export interface AnswerPiece {
  readonly text: string;
  /** One per token whose text is complete now; undefined if not requested. */
  readonly logprobs: readonly ChosenLogprob[] | undefined;
}

export interface AnswerText {
  /** Appends a token; returns the text that it completes, and the stop string that it completes. */
  push(id: number, chosen?: ChosenLogprob): AnswerPiece & { readonly stop: string | undefined };
  /** The rest of the text, once no more tokens follow. @param last the token that ended the answer */
  end(last?: ChosenLogprob): AnswerPiece;
  /**
   * The number of pushed tokens whose text was returned completely, and the partial text of the next token, in which a
   * stop string may begin. Decodes the ids again.
   */
  shown(ids: readonly number[]): { readonly count: number; readonly rest: string };
}

/** A token whose text was not returned yet, with the range of its text in the whole answer. */
interface Held {
  readonly chosen: ChosenLogprob;
  readonly from: number;
  readonly to: number;
}

interface AnswerOptions {
  readonly stops: readonly string[];
  /** Control tokens that are shown as text. */
  readonly visible?: readonly string[] | undefined;
  /** True: tokens of stop strings and the one that ends the answer keep their log-probabilities. Default: false. */
  readonly keepsEnd?: boolean | undefined;
}

/** Makes answer decoders; compiled stop strings are cached, because requests repeat them. */
export function makeAnswerTexts(tokenizer: Tokenizer): (options: AnswerOptions) => AnswerText {
  const idsOfAll = remembering((texts) => idsOf(tokenizer, texts));
  const compiled = remembering(compileStops);
  return ({ stops, visible = [], keepsEnd = false }) => {
    const makeDetokenizer = (): StreamDetokenizer => makeStreamDetokenizer(tokenizer, idsOfAll(visible));
    return makeAnswerText(makeDetokenizer, { matcher: makeStopMatcher(compiled(stops)), keepsEnd });
  };
}

function makeAnswerText(
  makeDetokenizer: () => StreamDetokenizer,
  { matcher, keepsEnd }: { matcher: ReturnType<typeof makeStopMatcher>; keepsEnd: boolean },
): AnswerText {
  const detokenizer = makeDetokenizer();
  let held: Held[] = [];
  let seen = 0; // characters decoded so far
  let out = 0; // characters returned so far

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
      // tokens inside the stop string are not part of the answer
      if (stop !== undefined) return { ...piece(text, (token) => keepsEnd || token.from < out), stop };
      return { ...piece(text, (token) => text !== "" && token.to <= out), stop };
    },
    end(last) {
      const rest = matcher.push(detokenizer.end());
      if (last && keepsEnd) held.push({ chosen: last, from: seen, to: seen });
      if (rest.stop === undefined) return piece(rest.text + matcher.end(), () => true);
      out += rest.text.length;
      return piece(rest.text, (token) => keepsEnd || token.from < out);
    },
    shown(ids) {
      const again = makeDetokenizer();
      const texts = ids.map((id) => again.push(id));
      let [count, end] = [0, 0];
      while (count < texts.length && end + texts[count]!.length <= out) end += texts[count++]!.length;
      const rest = texts[count]?.slice(0, out - end) ?? "";
      while (count > 0 && texts[count - 1] === "") count--; // a character may begin in earlier tokens
      return { count, rest };
    },
  };
}

/** The ids of those texts that are a single token. */
export function idsOf(tokenizer: Tokenizer, texts: readonly string[]): ReadonlySet<number> {
  const encoded = texts.map((text) => tokenizer.encode(text, { addSpecial: false, parseSpecial: true }));
  return new Set(encoded.flatMap((ids) => (ids.length === 1 ? [ids[0]!] : [])));
}

/**
 * The log-probabilities of a chosen token.
 * @param logits (vocabSize) of the model, unmodified
 * @param count number of alternatives
 */
export function describeToken(
  tokenizer: Tokenizer,
  { logits, id, count }: { logits: Float32Array; id: number; count: number },
): ChosenLogprob {
  const { logprob, top } = logSoftmaxTop(logits, id, count);
  return {
    id,
    logprob,
    ...textOfToken(tokenizer, id),
    top: top.map((each) => ({ ...each, ...textOfToken(tokenizer, each.id) })),
  };
}

export function textOfToken(tokenizer: Tokenizer, id: number): Pick<TokenLogprob, "token" | "bytes"> {
  const bytes = tokenizer.bytesOf(id, { special: true });
  return { token: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), bytes: Array.from(bytes) };
}
