/** Types and helpers that the readers of all kinds of `tokenizer.json` share. */
import { AppError } from "../../base/index.ts";
import type { WriteValue } from "../../engine/formats/index.ts";
import type { Architecture } from "./architecture.ts";
import { describe, type JsonObject } from "./folder.ts";
import { addedTokens, completeVocabulary, type AddedToken, type Vocabulary } from "./vocabulary.ts";

export interface Tokens {
  readonly metadata: Record<string, WriteValue>;
  readonly pieces: readonly string[];
  /** Tokens without a row in the embedding. */
  readonly leftOut: readonly AddedToken[];
}

export interface TokensPlace {
  /** Rows of the embedding. */
  readonly rows: number;
  readonly label: string;
  /** As for `Architecture`. */
  readonly textTokens?: Architecture["textTokens"];
}

/** A file and its `model`. */
export type Model = { readonly json: JsonObject; readonly model: JsonObject } & TokensPlace;

export const wrong = ({ label }: TokensPlace, expected: string, got: unknown): AppError =>
  new AppError("bad_file", `${label}: 'tokenizer.json': expected ${expected}, got ${describe(got)}`);

/** Adds the added tokens and unused ids; returns the tokens without a row. */
export function complete(vocabulary: Vocabulary, { json, rows, label }: Model): AddedToken[] {
  return completeVocabulary(vocabulary, { added: addedTokens(json, label), rows, label });
}
