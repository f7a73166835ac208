/**
 * Converts `tokenizer.json` to GGUF metadata. Supported models: BPE on bytes (as in GPT-2), BPE on text with byte
 * fallback (as in SentencePiece; scores follow from the order of merges), and WordPiece. Format: the `tokenizers`
 * library.
 */
import { AppError, isObject } from "../../base/index.ts";
import { describe, type JsonObject } from "./folder.ts";
import { preTokenizerName } from "./pre-tokenizer.ts";
import { complete, wrong, type Model, type Tokens, type TokensPlace } from "./tokens.ts";
import { readUnigram } from "./unigram-json.ts";
import { addedTokens, BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, vocabularyMetadata } from "./vocabulary.ts";

/** Four times the largest published vocabulary or list of merges. */
const PIECES_MAX = 2 ** 20;
const MERGES_MAX = 2 ** 21;

export function readTokenizerJson(json: JsonObject, place: TokensPlace): Tokens {
  const model = json["model"];
  if (!isObject(model)) throw wrong(place, "a 'model'", model);
  const parts = { json, model, ...place };
  switch (model["type"] ?? guessType(model)) {
    case "BPE":
      return isByteLevel(json) ? readByteBpe(parts) : readTextBpe(parts);
    case "WordPiece":
      return readWordPiece(parts);
    case "Unigram":
      return readUnigram(parts);
    default:
      throw new AppError(
        "unsupported",
        `${place.label}: 'tokenizer.json': expected a model of type BPE, WordPiece or Unigram, got ${describe(model["type"])}`,
      );
  }
}

/** Old files omit the type. */
const guessType = (model: JsonObject): string | undefined => (Array.isArray(model["merges"]) ? "BPE" : undefined);

/** Returns whether text is mapped to bytes in GPT-2's alphabet before it is split. */
export function isByteLevel(json: JsonObject): boolean {
  const mentions = (stage: unknown, depth = 0): boolean =>
    isObject(stage) &&
    depth < 8 &&
    (stage["type"] === "ByteLevel" ||
      [stage["pretokenizers"], stage["decoders"]].flat().some((part) => mentions(part, depth + 1)));
  return mentions(json["pre_tokenizer"]) || mentions(json["decoder"]);
}

/** Pieces by id; some places may be empty. */
function readPieces({ model, ...place }: Model): string[] {
  const vocab = model["vocab"];
  if (!isObject(vocab)) throw wrong(place, "a 'vocab' of ids by piece", vocab);
  const pieces: string[] = [];
  for (const [piece, id] of Object.entries(vocab)) {
    const isId = typeof id === "number" && Number.isSafeInteger(id) && id >= 0 && id < PIECES_MAX;
    if (!isId || pieces[id] !== undefined) throw wrong(place, `an id of its own for ${describe(piece)}`, id);
    pieces[id] = piece;
  }
  return pieces;
}

/** Merges, each "left right"; files store them as texts or pairs. */
function readMerges({ model, ...place }: Model): string[] {
  const merges = model["merges"];
  if (!Array.isArray(merges) || merges.length > MERGES_MAX) {
    throw wrong(place, `a list of at most ${MERGES_MAX} 'merges'`, Array.isArray(merges) ? merges.length : merges);
  }
  return merges.map((merge: unknown) => {
    if (typeof merge === "string") return merge;
    const isPair = Array.isArray(merge) && merge.length === 2 && merge.every((part) => typeof part === "string");
    if (!isPair) throw wrong(place, "merges of two pieces", merge);
    return merge.join(" ");
  });
}

function readByteBpe(parts: Model): Tokens {
  checkNormalizer(parts, ["NFC"]); // GGUF cannot express other normalizers, and llama.cpp does not apply them
  const pieces = readPieces(parts);
  const vocabulary = { pieces, types: pieces.map(() => NORMAL), scores: [] };
  const leftOut = complete(vocabulary, parts);
  const metadata = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": preTokenizerName(parts.json, parts.label),
    ...vocabularyMetadata(vocabulary),
    "tokenizer.ggml.merges": readMerges(parts),
  };
  return { metadata, pieces, leftOut };
}

/** The types of steps that normalize text. */
function checkNormalizer({ json, label }: Model, known: readonly string[]): void {
  const normalizer = json["normalizer"];
  if (normalizer === null || normalizer === undefined) return;
  const type = isObject(normalizer) ? normalizer["type"] : normalizer;
  const parts = type === "Sequence" && isObject(normalizer) ? [normalizer["normalizers"]].flat() : [normalizer];
  if (parts.every((part) => isObject(part) && known.includes(String(part["type"])))) return;
  throw new AppError(
    "unsupported",
    `${label}: 'tokenizer.json': expected a normalizer of ${known.join(", ")}, got ${describe(normalizer)}`,
  );
}

function readTextBpe(parts: Model): Tokens {
  const { model, json, label } = parts;
  if (model["byte_fallback"] !== true) {
    throw new AppError("unsupported", `${label}: 'tokenizer.json': expected BPE on bytes or with byte_fallback`);
  }
  checkNormalizer(parts, ["Prepend", "Replace"]);
  const pieces = readPieces(parts);
  const rank = new Map<string, number>();
  for (const [i, merge] of readMerges(parts).entries()) {
    const space = merge.indexOf(" ", 1);
    const joined = merge.slice(0, space) + merge.slice(space + 1);
    if (!rank.has(joined)) rank.set(joined, i);
  }
  const unknown = model["unk_token"];
  const typeOf = (piece: string): number =>
    piece === unknown ? UNKNOWN : /^<0x[0-9A-F]{2}>$/.test(piece) ? BYTE : NORMAL;
  const vocabulary = {
    pieces,
    types: pieces.map(typeOf),
    // Gives tokens that are never merged a score: single characters, whose score is unused, and added tokens.
    scores: pieces.map((piece) => -(rank.get(piece) ?? rank.size)),
  };
  const leftOut = complete(vocabulary, parts);
  if (parts.textTokens) {
    const { model: name, visible } = parts.textTokens;
    const types = vocabulary.types.map((type, id) => (visible.includes(pieces[id]!) ? USER_DEFINED : type));
    const merges = { "tokenizer.ggml.merges": readMerges(parts) };
    const metadata = { "tokenizer.ggml.model": name, ...vocabularyMetadata({ ...vocabulary, types }), ...merges };
    return { metadata, pieces, leftOut };
  }
  const metadata = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.pre": "default",
    ...vocabularyMetadata(vocabulary),
    "tokenizer.ggml.add_space_prefix": addsSpace(json),
  };
  return { metadata, pieces, leftOut };
}

/** True for a prepending normalizer, or for Metaspace. */
function addsSpace(json: JsonObject): boolean {
  const stages = [json["normalizer"], json["pre_tokenizer"]].flatMap((stage) =>
    isObject(stage) ? [stage, stage["normalizers"], stage["pretokenizers"]].flat() : [],
  );
  return stages.filter(isObject).some((stage) => {
    if (stage["type"] === "Prepend") return true;
    if (stage["type"] !== "Metaspace") return false;
    return (stage["prepend_scheme"] ?? "always") !== "never" && stage["add_prefix_space"] !== false;
  });
}

function readWordPiece(parts: Model): Tokens {
  const { model, json } = parts;
  if ((model["continuing_subword_prefix"] ?? "##") !== "##") {
    throw wrong(parts, "'continuing_subword_prefix' to be '##'", model["continuing_subword_prefix"]);
  }
  checkNormalizer(parts, ["BertNormalizer"]);
  const added = new Set(addedTokens(json, parts.label).map(({ id }) => id));
  const unknown = model["unk_token"] ?? "[UNK]";
  const pieces = readPieces(parts);
  const types = pieces.map((piece, id) => (piece === unknown ? UNKNOWN : added.has(id) ? CONTROL : NORMAL));
  const phantom = pieces.map((piece, id) => (types[id] === NORMAL ? wordPiece(piece) : piece));
  const vocabulary = { pieces: phantom, types, scores: [] };
  const leftOut = complete(vocabulary, parts);
  const { lowercase, strip_accents: strip } = isObject(json["normalizer"]) ? json["normalizer"] : {};
  const isLower = lowercase !== false;
  const metadata = {
    "tokenizer.ggml.model": "bert",
    "tokenizer.ggml.pre": "default",
    ...vocabularyMetadata(vocabulary),
    "tokenizer.ggml.normalizer.lowercase": isLower,
    "tokenizer.ggml.normalizer.strip_accents": typeof strip === "boolean" ? strip : isLower,
  };
  return { metadata, pieces: phantom, leftOut };
}

/** GGUF marks the start of a word; BERT's files mark continuations. */
function wordPiece(piece: string): string {
  return piece.startsWith("##") ? piece.slice(2) : `▁${piece}`;
}
