/** The Unigram model of a `tokenizer.json`, as XLM-RoBERTa and T5 have it. */
import { AppError, isObject } from "../../base/index.ts";
import { u32 } from "./architecture.ts";
import { describe } from "./folder.ts";
import { complete, wrong, type Model, type Tokens } from "./tokens.ts";
import { NORMAL, UNKNOWN, vocabularyMetadata } from "./vocabulary.ts";

const PIECES_MAX = 2 ** 20;
/** The largest seen has 240 KB. */
const CHARSMAP_BYTES_MAX = 2 ** 22;
/** Normalization steps, besides the map of characters, that concern spaces. */
const SPACES: readonly unknown[] = ["Replace", "Strip", "Nmt"];

/** Throws `unsupported` for a normalizer other than a map of characters. */
export function readUnigram(parts: Model): Tokens {
  const { model } = parts;
  const vocab = model["vocab"];
  if (!Array.isArray(vocab) || vocab.length > PIECES_MAX) {
    throw wrong(parts, `a 'vocab' of at most ${PIECES_MAX} pieces`, Array.isArray(vocab) ? vocab.length : vocab);
  }
  if (model["byte_fallback"] === true) throw wrong(parts, "Unigram without byte_fallback", true);
  const entries = vocab.map((entry: unknown): readonly [string, number] => {
    const [piece, score] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof piece === "string" && typeof score === "number" && Number.isFinite(score)) return [piece, score];
    throw wrong(parts, "pieces with a score", entry);
  });
  const pieces = entries.map(([piece]) => piece);
  const unknown = model["unk_id"];
  const types = entries.map((_, id) => (id === unknown ? UNKNOWN : NORMAL));
  const vocabulary = { pieces, types, scores: entries.map(([, score]) => score) };
  const leftOut = complete(vocabulary, parts);
  const charsmap = readCharsmap(parts);
  const metadata = {
    "tokenizer.ggml.model": "t5",
    "tokenizer.ggml.pre": "default",
    ...vocabularyMetadata(vocabulary),
    ...(typeof unknown === "number" &&
      types[unknown] === UNKNOWN && { "tokenizer.ggml.unknown_token_id": u32(unknown) }),
    "tokenizer.ggml.add_space_prefix": true,
    "tokenizer.ggml.remove_extra_whitespaces": joinsSpaces(parts),
    ...(charsmap && { "tokenizer.ggml.precompiled_charsmap": charsmap }),
  };
  return { metadata, pieces, leftOut };
}

/** True if several spaces count as one: words are split at them, or a step replaces them. */
function joinsSpaces({ json }: Model): boolean {
  const stages = [json["pre_tokenizer"], json["normalizer"]].flatMap((stage) =>
    isObject(stage) ? [stage, stage["pretokenizers"], stage["normalizers"]].flat() : [],
  );
  return stages.filter(isObject).some(({ type, pattern }) => {
    return type === "WhitespaceSplit" || (type === "Replace" && isObject(pattern) && pattern["Regex"] === " {2,}");
  });
}

/** SentencePiece's map of characters. */
function readCharsmap({ json, label }: Model): Uint8Array | undefined {
  const normalizer = json["normalizer"];
  if (normalizer === null || normalizer === undefined) return undefined;
  const steps = isObject(normalizer) && normalizer["type"] === "Sequence" ? normalizer["normalizers"] : [normalizer];
  const listed = [steps].flat().filter(isObject);
  const maps = listed.filter(({ type }) => type === "Precompiled");
  const text = maps[0]?.["precompiled_charsmap"];
  const isKnown = listed.every(({ type }) => type === "Precompiled" || SPACES.includes(type));
  if (!isKnown || maps.length > 1 || (text !== undefined && text !== null && typeof text !== "string")) {
    const expected = "a normalizer with one map of characters";
    throw new AppError("unsupported", `${label}: 'tokenizer.json': expected ${expected}, got ${describe(normalizer)}`);
  }
  if (typeof text !== "string" || text === "") return undefined;
  if (text.length > CHARSMAP_BYTES_MAX) {
    throw new AppError("bad_file", `${label}: 'tokenizer.json': expected a map of at most 4 MB, got ${text.length}`);
  }
  return new Uint8Array(Buffer.from(text, "base64"));
}
