/** What a runner answers about its model's vocabulary: text to ids and back, without running the model. */
import { AppError } from "../base/errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { FromRunner, ToRunner } from "./messages.ts";

type Asked<K extends ToRunner["kind"]> = Extract<ToRunner, { kind: K }>;

export function tokenize(tokenizer: Tokenizer, message: Asked<"tokenize">): FromRunner {
  const { id, text, addSpecial, parseSpecial, wantsPieces } = message;
  const tokens = tokenizer.encode(text, { addSpecial, parseSpecial });
  const pieces = wantsPieces ? Array.from(tokens, (token) => tokenizer.bytesOf(token, { special: true })) : undefined;
  return { kind: "tokens", id, tokens, ...(pieces ? { pieces } : {}) };
}

/** Throws `bad_request` where an id is not one of the vocabulary. */
export function detokenize(tokenizer: Tokenizer, { id, tokens }: Asked<"detokenize">): FromRunner {
  const at = tokens.findIndex((token) => !(Number.isInteger(token) && token >= 0 && token < tokenizer.vocabSize));
  if (at >= 0) {
    const expected = `expected an id from 0 to ${tokenizer.vocabSize - 1}`;
    throw new AppError("bad_request", `tokens[${at}]: ${expected}, got ${tokens[at]}`);
  }
  return { kind: "text", id, text: tokenizer.detokenize(tokens, { special: true }) };
}
