/** Answers questions about the model's vocabulary: text to ids and back, without running the model. */
import { AppError } from "../../base/index.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import type { FromRunner, ToRunner } from "./messages.ts";

type Question<K extends ToRunner["kind"]> = Extract<ToRunner, { kind: K }>;

export function tokenize(tokenizer: Tokenizer, message: Question<"tokenize">): FromRunner {
  const { id, text, addSpecial, parseSpecial, wantsPieces } = message;
  const tokens = tokenizer.encode(text, { addSpecial, parseSpecial });
  const pieces = wantsPieces ? Array.from(tokens, (token) => tokenizer.bytesOf(token, { special: true })) : undefined;
  return { kind: "tokens", id, tokens, ...(pieces ? { pieces } : {}) };
}

/** Throws `bad_request` for an id outside the vocabulary. */
export function detokenize(tokenizer: Tokenizer, { id, tokens }: Question<"detokenize">): FromRunner {
  return { kind: "text", id, text: textOfIds(tokenizer, tokens, "tokens") };
}

/** The text of the ids in `field` of a request. Throws `bad_request` for an id outside the vocabulary. */
export function textOfIds(tokenizer: Tokenizer, ids: readonly number[], field: string): string {
  const at = ids.findIndex((id) => !(Number.isInteger(id) && id >= 0 && id < tokenizer.vocabSize));
  if (at >= 0) {
    const expected = `expected an id from 0 to ${tokenizer.vocabSize - 1}`;
    throw new AppError("bad_request", `${field}[${at}]: ${expected}, got ${ids[at]}`);
  }
  return tokenizer.detokenize(ids, { special: true });
}
