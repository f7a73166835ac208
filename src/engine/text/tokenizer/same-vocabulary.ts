/** Compares vocabularies: a model and its draft model must use the same ids. */
import type { Metadata } from "../../formats/gguf/gguf.ts";
import { getNumbers, getString, getStrings } from "../../formats/gguf/keys.ts";
import { PIECES_KEY } from "./vocabulary.ts";

const MODEL_KEY = "tokenizer.ggml.model";
const TYPES_KEY = "tokenizer.ggml.token_type";
const NORMAL_TYPE = 1;
/** Maximum number of additional ids in one vocabulary, which are padding. */
const LONGER_MAX = 1024;

/** Undefined if the vocabularies match; else the expected and the actual value. Control tokens may have other names. */
export function vocabularyDifference(model: Metadata, draft: Metadata): string | undefined {
  const kinds = [model, draft].map((metadata) => getString(metadata, MODEL_KEY, ""));
  if (kinds[0] !== kinds[1]) return `expected a tokenizer '${kinds[0]}' as the model has, got '${kinds[1]}'`;
  const [own, other] = [model, draft].map((metadata) => getStrings(metadata, PIECES_KEY, []));
  const [a, b] = [own!, other!]; // pairs
  if (a.length === 0 || Math.abs(a.length - b.length) > LONGER_MAX)
    return `expected a vocabulary of ${a.length} tokens as the model has, got ${b.length}`;
  const types = [model, draft].map((metadata) => getNumbers(metadata, TYPES_KEY, undefined));
  for (let id = 0; id < Math.min(a.length, b.length); id++) {
    if (a[id] === b[id]) continue;
    if (types.some((each) => each && each[id] !== NORMAL_TYPE)) continue;
    return `expected token ${id} to be ${JSON.stringify(a[id])} as in the model, got ${JSON.stringify(b[id])}`;
  }
  return undefined;
}
