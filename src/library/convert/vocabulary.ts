/**
 * A vocabulary during conversion, and the common parts of all tokenizer files: added tokens and unused ids. Token types
 * follow gguf.md.
 */
import { AppError, isObject } from "../../base/index.ts";
import type { WriteValue } from "../../engine/formats/index.ts";
import { describe, type JsonObject } from "./folder.ts";

export const NORMAL = 1;
export const UNKNOWN = 2;
export const CONTROL = 3;
export const USER_DEFINED = 4;
export const UNUSED = 5;
export const BYTE = 6;

/** Four times the largest published vocabulary. */
const ROWS_MAX = 2 ** 20;
/** The score that converters give to tokens that are never merged. */
const ADDED_SCORE = -1000;
const UNUSED_SCORE = -10_000;

export interface Vocabulary {
  readonly pieces: string[];
  readonly types: number[];
  /** SentencePiece's scores, by id; empty for other families. */
  readonly scores: number[];
}

/** A token besides the trained vocabulary, from `tokenizer.json` or `tokenizer_config.json`. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly isSpecial: boolean;
}

/** True for tokens that models use as markers although their files declare them as text. */
function looksSpecial(text: string): boolean {
  return /^(<\|.*\|>|<｜.*｜>|<unused.*>)$/s.test(text) || ["<pad>", "<mask>", "<2mass>", "[@BOS@]"].includes(text);
}

/** @param wrong makes the error for an entry that is not a token */
export function parseAddedToken(entry: JsonObject, id: unknown, wrong: (got: unknown) => AppError): AddedToken {
  const { content } = entry;
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0 || typeof content !== "string") throw wrong(entry);
  return { id, content, isSpecial: entry["special"] === true };
}

/** The `added_tokens` of a `tokenizer.json`. */
export function addedTokens(json: JsonObject, label: string): AddedToken[] {
  const listed = json["added_tokens"] ?? [];
  const wrong = (got: unknown): AppError =>
    new AppError(
      "bad_file",
      `${label}: 'tokenizer.json': 'added_tokens': expected {id, content}, got ${describe(got)}`,
    );
  if (!Array.isArray(listed)) throw wrong(listed);
  return listed.map((entry: unknown) => {
    if (!isObject(entry)) throw wrong(entry);
    return parseAddedToken(entry, entry["id"], wrong);
  });
}

/**
 * Extends a vocabulary to the rows of the embedding. Added tokens without a row, which some releases list, are dropped
 * and returned.
 */
export function completeVocabulary(
  { pieces, types, scores }: Vocabulary,
  { added, rows, label }: { added: readonly AddedToken[]; rows: number; label: string },
): AddedToken[] {
  const hasScores = scores.length > 0;
  if (rows > ROWS_MAX) {
    throw new AppError("bad_file", `${label}: embedding: expected at most ${ROWS_MAX} rows, got ${rows}`);
  }
  if (pieces.length > rows) {
    const expected = `at most ${rows} tokens, one for each row of the embedding`;
    throw new AppError("bad_file", `${label}: tokenizer: expected ${expected}, got ${pieces.length}`);
  }
  for (let id = 0; id < rows; id++) {
    if (pieces[id] !== undefined) continue;
    pieces[id] = `[PAD${id}]`;
    types[id] = UNUSED;
    if (hasScores) scores[id] = UNUSED_SCORE;
  }
  for (const { id, content, isSpecial } of added) {
    if (id >= rows) continue;
    const isMark = isSpecial || looksSpecial(content);
    const isKnown = types[id] === UNKNOWN || types[id] === BYTE; // these keep their type
    pieces[id] = isMark ? content : content.replaceAll("▁", " ");
    if (!isKnown) types[id] = isMark ? CONTROL : USER_DEFINED;
    if (hasScores && !isKnown) scores[id] = ADDED_SCORE;
  }
  return added.filter(({ id }) => id >= rows);
}

export function vocabularyMetadata({ pieces, types, scores }: Vocabulary): Record<string, WriteValue> {
  return {
    "tokenizer.ggml.tokens": pieces,
    ...(scores.length > 0 ? { "tokenizer.ggml.scores": Float32Array.from(scores) } : {}),
    "tokenizer.ggml.token_type": Int32Array.from(types),
  };
}
