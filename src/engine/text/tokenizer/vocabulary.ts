/**
 * The vocabulary of a GGUF: pieces, their attributes, and the special ids, read from `tokenizer.ggml.*` and checked.
 * Encoders are in `bpe.ts`, `code-points.ts`, `word-piece.ts` and `unigram.ts`. Ported from `llama_vocab::impl::load`
 * in llama-vocab.cpp.
 */
import { AppError } from "../../../base/index.ts";
import type { Metadata } from "../../formats/gguf/gguf.ts";
import { getBool, getNumber, getNumbers, getStrings, type Numbers } from "../../formats/gguf/keys.ts";
import { findFillTokens, OLD_FILL_KEYS } from "./fill-in-the-middle.ts";
import type { FillTokens } from "./tokenizer.ts";
import { findPiece, indexPieces, type PieceIndex } from "./piece-index.ts";
import { FILL_KEYS, NORMAL, overrideByText } from "./special-tokens.ts";

/** Maximum number of pieces; the largest published vocabulary has 262,400. */
const MAX_PIECES = 2 ** 22;
export const PIECES_KEY = "tokenizer.ggml.tokens";

export interface Vocabulary {
  /** As in the file, except empty ones, which are named after their id. */
  readonly pieces: readonly string[];
  /** (pieces) flags of special-tokens.ts. */
  readonly attributes: Uint8Array;
  readonly index: PieceIndex;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  readonly unknown: number | undefined;
  readonly separator: number | undefined;
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** SentencePiece: text at the start or after a special token gets a space before it. */
  readonly addSpacePrefix: boolean;
  /** Pieces spell a space as `▁`, and unknown characters as `<0xNN>` bytes. */
  readonly escapesSpaces: boolean;
  /** Pieces are verbatim text, except bytes. */
  readonly isVerbatim?: boolean;
  /** Pieces spell bytes with escapes (world.ts). */
  readonly escapesBytes?: boolean;
  readonly endOfGeneration: ReadonlySet<number>;
  /** Distinct ids that never occur in an answer. */
  readonly suppressed: Int32Array;
  /** Markers for filling in the middle. */
  readonly fill: FillTokens | undefined;
}

/** A family's defaults for missing keys. */
interface VocabularyDefaults {
  /** Ids by key without `tokenizer.ggml.`; ids outside the vocabulary count as absent. */
  readonly ids: Readonly<Record<string, number>>;
  readonly addBos: boolean;
  /** False where absent. */
  readonly addEos?: boolean;
  readonly addSpacePrefix: boolean;
  readonly escapesSpaces: boolean;
  /** Overrides the file. */
  readonly forceBos?: boolean;
}

/** Throws `bad_file` naming the key for anything missing, of a wrong type or length, or out of range. */
export function readVocabulary(metadata: Metadata, defaults: VocabularyDefaults): Vocabulary {
  const pieces = readPieces(metadata);
  const index = indexPieces(pieces, PIECES_KEY);
  const attributes = readAttributes(metadata, pieces.length);
  const ids = new Map<string, number | undefined>();
  for (const name of ["bos", "eos", "eot", "eom", "unknown", "seperator"]
    .map((word) => `${word}_token_id`)
    .concat(FILL_KEYS, Object.values(OLD_FILL_KEYS))) {
    ids.set(name, readId(metadata, name, pieces.length) ?? inRange(defaults.ids[name], pieces.length));
  }
  const endOfGeneration = new Set([...overrideByText(index, attributes, ids), ...readEnds(metadata, pieces.length)]);
  const bos = ids.get("bos_token_id");
  const eos = ids.get("eos_token_id");
  return {
    pieces,
    attributes,
    index,
    bos,
    eos,
    unknown: ids.get("unknown_token_id"),
    separator: ids.get("seperator_token_id"),
    addBos: readAdd(metadata, { word: "bos", fallback: defaults.addBos, id: bos, force: defaults.forceBos }),
    addEos: readAdd(metadata, { word: "eos", fallback: defaults.addEos ?? false, id: eos, force: false }),
    addSpacePrefix: getBool(metadata, "tokenizer.ggml.add_space_prefix", defaults.addSpacePrefix),
    escapesSpaces: defaults.escapesSpaces,
    endOfGeneration,
    suppressed: readSuppressed(metadata, pieces.length),
    fill: findFillTokens(ids, (text) => {
      const id = findPiece(index, text);
      return id < 0 ? undefined : id;
    }),
  };
}

function readPieces(metadata: Metadata): readonly string[] {
  const stored = getStrings(metadata, PIECES_KEY);
  if (stored.length === 0 || stored.length > MAX_PIECES) {
    throw new AppError(
      "bad_file",
      `metadata '${PIECES_KEY}': expected 1 to ${MAX_PIECES} pieces, got ${stored.length}`,
    );
  }
  return stored.includes("") ? stored.map((piece, id) => piece || `[EMPTY_${id}]`) : stored;
}

/** Flags from the file's token types: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte (gguf.md). */
function readAttributes(metadata: Metadata, count: number): Uint8Array {
  const types = readPerPiece(metadata, "tokenizer.ggml.token_type", count);
  const attributes = new Uint8Array(count).fill(NORMAL);
  for (let id = 0; types && id < count; id++)
    attributes[id] = types[id]! >= 1 && types[id]! <= 6 ? 1 << (types[id]! - 1) : 0;
  return attributes; // `from` with a function would take as long as the rest of the index
}

/** One number per piece; undefined if absent. */
export function readPerPiece(metadata: Metadata, key: string, count: number): Numbers | undefined {
  const values = getNumbers(metadata, key, undefined);
  if (values !== undefined && values.length !== count) {
    throw new AppError("bad_file", `metadata '${key}': expected ${count} numbers, one per piece, got ${values.length}`);
  }
  return values;
}

/** An id; undefined if the key is absent or has the converters' value for "none": -1, signed or not. */
function readId(metadata: Metadata, name: string, count: number): number | undefined {
  const key = `tokenizer.ggml.${name}`;
  const id = getNumber(metadata, key, undefined);
  if (id === undefined || id === -1 || id === 0xffffffff) return undefined;
  if (!Number.isInteger(id) || inRange(id, count) === undefined) {
    throw new AppError("bad_file", `metadata '${key}': expected an id from 0 to ${count - 1}, got ${id}`);
  }
  return id;
}

/** Further ids that end an answer, as some converters list them. */
function readEnds(metadata: Metadata, count: number): number[] {
  const key = "tokenizer.ggml.eos_token_ids";
  const ids = Array.from(getNumbers(metadata, key, undefined) ?? []);
  const wrong = ids.find((id) => !Number.isInteger(id) || inRange(id, count) === undefined);
  if (wrong === undefined) return ids;
  throw new AppError("bad_file", `metadata '${key}': expected ids from 0 to ${count - 1}, got ${wrong}`);
}

/** Drops ids outside the vocabulary, as llama.cpp does. */
function readSuppressed(metadata: Metadata, count: number): Int32Array {
  const key = "tokenizer.ggml.suppress_tokens";
  const stored = getNumbers(metadata, key, undefined) ?? [];
  const ids = new Set<number>();
  for (const id of stored) {
    if (!Number.isInteger(id)) throw new AppError("bad_file", `metadata '${key}': expected ids, got ${id}`);
    if (inRange(id, count) !== undefined) ids.add(id);
  }
  if (ids.size === count) {
    throw new AppError("bad_file", `metadata '${key}': expected fewer than all ${count} tokens, got all`);
  }
  return Int32Array.from(ids);
}

function inRange(id: number | undefined, count: number): number | undefined {
  return id !== undefined && id >= 0 && id < count ? id : undefined;
}

interface Add {
  readonly word: "bos" | "eos";
  readonly fallback: boolean;
  readonly id: number | undefined;
  readonly force: boolean | undefined;
}

function readAdd(metadata: Metadata, { word, fallback, id, force }: Add): boolean {
  const add = getBool(metadata, `tokenizer.ggml.add_${word}_token`, fallback) || force === true;
  if (add && id === undefined) {
    throw new AppError(
      "bad_file",
      `metadata 'tokenizer.ggml.${word}_token_id': expected an id, since one is added; got nothing`,
    );
  }
  return add;
}
