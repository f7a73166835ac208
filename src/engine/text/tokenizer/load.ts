/**
 * Builds the tokenizer that a GGUF's metadata describes: `tokenizer.ggml.model` selects the family, which defines how
 * text becomes ids. Special tokens, BOS and EOS are common to all. Ported from `llama_vocab::impl` in llama-vocab.cpp.
 */
import { AppError } from "../../../base/index.ts";
import type { Metadata } from "../../formats/gguf/gguf.ts";
import { getBool, getNumber, getString, getStrings } from "../../formats/gguf/keys.ts";
import { textsOf, type Texts } from "../../formats/gguf/texts.ts";
import { readCharsmap } from "./charsmap.ts";
import { makeByteBpe, makePairMerges, MERGES_KEY } from "./bpe.ts";
import { makeBytesOf, makeDetokenize } from "./detokenize.ts";
import { makeSentencePiece, makeTextBpe } from "./code-points.ts";
import { makeFragmentEncoder } from "./fragment-cache.ts";
import { makeIdList, pushId } from "./id-list.ts";
import { makePartition, type StripRules } from "./partition.ts";
import { findPiece } from "./piece-index.ts";
import { makePlamo } from "./plamo.ts";
import { findPreTokenizer } from "./pretokenize.ts";
import { CONTROL, UNKNOWN, USER_DEFINED } from "./special-tokens.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { makeUnigram } from "./unigram.ts";
import { PIECES_KEY, readPerPiece, readVocabulary, type Vocabulary } from "./vocabulary.ts";
import type { Encode } from "./word-cache.ts";
import { makeWordPiece } from "./word-piece.ts";
import { makeWorld } from "./world.ts";

export { vocabularyForGrammar } from "./grammar-vocabulary.ts";

/** A tokenizer with facts about its pieces; `undefined` if the model has no tokenizer. */
export interface LoadedTokenizer extends Tokenizer {
  readonly vocabulary: Vocabulary | undefined;
}

/** A family's readers of metadata: the vocabulary, and the encoder of text between special tokens. */
interface Family {
  readonly family: Tokenizer["family"];
  readonly vocabulary: Vocabulary;
  readonly encode: Encode;
}

const FAMILIES: Readonly<Record<string, (metadata: Metadata, texts: ListsOfTexts) => Family>> = {
  gpt2: (metadata, texts) => loadBpe(metadata, texts, getString(metadata, "tokenizer.ggml.pre", "default")),
  gemma4: (metadata, texts) => loadBpe(metadata, texts, "gemma4"),
  llama: loadSentencePiece,
  bert: loadWordPiece,
  t5: loadUnigram,
  plamo2: loadPlamo,
  rwkv: loadWorld,
};
const SCORES_KEY = "tokenizer.ggml.scores";
/** Names of "no tokenizer" in llama.cpp, and the name in its test models. */
const WITHOUT = ["none", "no_vocab", "test"];

type ListsOfTexts = ReadonlyMap<string, Texts>;

/** Lists of a header that may stay bytes for `loadTokenizer`. */
export const TEXT_KEYS = [MERGES_KEY];

/**
 * Throws `bad_file` or `unsupported`; the message names the file, the key, the expected and the actual value.
 * @param texts lists that are empty in the metadata
 */
export function loadTokenizer(metadata: Metadata, path: string, texts: ListsOfTexts = new Map()): LoadedTokenizer {
  try {
    const model = getString(metadata, "tokenizer.ggml.model");
    if (WITHOUT.includes(model)) return makeWithout(metadata, path);
    const family = familyOf(model)(metadata, texts);
    return makeTokenizer(family, stripRules(metadata, family.vocabulary));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}

/** Throws `unsupported`, like `loadTokenizer`, for an unknown tokenizer or pre-tokenizer. */
export function checkTokenizer(metadata: Metadata, path: string): void {
  const model = getString(metadata, "tokenizer.ggml.model", "none");
  if (WITHOUT.includes(model)) return;
  try {
    familyOf(model);
    if (model === "gpt2") findPreTokenizer(getString(metadata, "tokenizer.ggml.pre", "default"));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}

function familyOf(model: string): (typeof FAMILIES)[string] {
  const load = Object.hasOwn(FAMILIES, model) ? FAMILIES[model] : undefined;
  if (load) return load;
  const known = [...Object.keys(FAMILIES), ...WITHOUT].join(", ");
  throw new AppError("unsupported", `metadata 'tokenizer.ggml.model': expected one of ${known}; got '${model}'`);
}

function loadBpe(metadata: Metadata, texts: ListsOfTexts, pre: string): Family {
  const rule = findPreTokenizer(pre);
  const forceBos = rule.names.includes("gemma4"); // its files say false, but its models need it
  const vocabulary = readVocabulary(metadata, {
    ids: {},
    addBos: rule.addBos ?? false,
    addSpacePrefix: false,
    escapesSpaces: rule.escapesSpaces ?? false,
    forceBos,
  });
  const optional = pre === "kimi-k2"; // some of its files have no merges
  const stored = (): readonly string[] =>
    optional ? getStrings(metadata, MERGES_KEY, []) : getStrings(metadata, MERGES_KEY);
  const merges = makePairMerges(vocabulary.index, texts.get(MERGES_KEY) ?? textsOf(stored()));
  const encode = rule.escapesSpaces
    ? makeTextBpe(vocabulary, merges, rule)
    : makeByteBpe(vocabulary.index, merges, rule);
  return { family: "bpe", vocabulary, encode };
}

function loadSentencePiece(metadata: Metadata): Family {
  const vocabulary = readVocabulary(metadata, {
    ids: { bos_token_id: 1, eos_token_id: 2, unknown_token_id: 0 },
    addBos: true,
    addSpacePrefix: true,
    escapesSpaces: true,
  });
  const count = vocabulary.pieces.length;
  const scores = Float32Array.from(readPerPiece(metadata, SCORES_KEY, count) ?? new Float32Array(count));
  return { family: "spm", vocabulary, encode: makeSentencePiece(vocabulary, scores) };
}

function loadWordPiece(metadata: Metadata): Family {
  const vocabulary = readVocabulary(metadata, {
    ids: { bos_token_id: 101, unknown_token_id: 100, seperator_token_id: 102 },
    addBos: true,
    addSpacePrefix: false,
    escapesSpaces: true,
  });
  const lowercase = getBool(metadata, "tokenizer.ggml.normalizer.lowercase", true);
  const stripAccents = getBool(metadata, "tokenizer.ggml.normalizer.strip_accents", lowercase);
  return { family: "wpm", vocabulary, encode: makeWordPiece(vocabulary, { lowercase, stripAccents }) };
}

function loadUnigram(metadata: Metadata): Family {
  const vocabulary = readVocabulary(metadata, {
    ids: { eos_token_id: 1, unknown_token_id: 2 },
    addBos: false,
    addEos: true,
    addSpacePrefix: false,
    escapesSpaces: true,
  });
  const count = vocabulary.pieces.length;
  const scores = Float32Array.from(readPerPiece(metadata, SCORES_KEY, count) ?? new Float32Array(count));
  const removeExtraSpaces = getBool(metadata, "tokenizer.ggml.remove_extra_whitespaces", false);
  const encode = makeUnigram(vocabulary, { scores, normalize: readCharsmap(metadata), removeExtraSpaces });
  return { family: "ugm", vocabulary, encode };
}

/** Never adds special tokens around texts, even if the file says so, as in llama.cpp. */
function loadPlamo(metadata: Metadata): Family {
  const vocabulary = readVocabulary(metadata, {
    ids: { bos_token_id: 1, eos_token_id: 2, unknown_token_id: 0 },
    addBos: false,
    addSpacePrefix: false,
    escapesSpaces: true,
  });
  const count = vocabulary.pieces.length;
  const scores = Float32Array.from(readPerPiece(metadata, SCORES_KEY, count) ?? new Float32Array(count));
  const plain = { ...vocabulary, addBos: false, addEos: false, isVerbatim: true };
  return { family: "plamo", vocabulary: plain, encode: makePlamo(plain, scores) };
}

/** Never adds special tokens around texts, as in llama.cpp. */
function loadWorld(metadata: Metadata): Family {
  const defaults = { ids: {}, addBos: false, addSpacePrefix: false, escapesSpaces: false };
  const vocabulary = { ...readVocabulary(metadata, defaults), addBos: false, addEos: false, escapesBytes: true };
  return { family: "world", vocabulary, encode: makeWorld(vocabulary) };
}

/** The special tokens that strip white space, by the model's name, because GGUF does not say. */
function stripRules(metadata: Metadata, { index, pieces, attributes }: Vocabulary): StripRules {
  const pre = getString(metadata, "tokenizer.ggml.pre", "");
  const arch = getString(metadata, "general.architecture", "");
  const name = getString(metadata, "general.name", "").toLowerCase();
  const idsOf = (...texts: string[]): number[] => texts.map((text) => findPiece(index, text)).filter((id) => id >= 0);
  if (/jina-v2-(de|es|code)/.test(pre) || /nomic-bert-moe|jina-bert-v3/.test(arch)) {
    return { before: new Set(idsOf("<mask>")), after: new Set() };
  }
  if (/phi-?3/.test(name)) {
    const special = (_: string, id: number): boolean => (attributes[id]! & (CONTROL | UNKNOWN | USER_DEFINED)) !== 0;
    const after = new Set(idsOf(...pieces.filter(special), "</s>"));
    for (const id of idsOf("<unk>", "<s>", "<|endoftext|>")) after.delete(id);
    return { before: new Set(), after };
  }
  return { before: new Set(name.includes("modern-bert") ? idsOf("[MASK]") : []), after: new Set() };
}

function makeTokenizer({ family, vocabulary, encode }: Family, strip: StripRules): LoadedTokenizer {
  const { pieces, bos, eos, separator, addBos, addEos, addSpacePrefix, endOfGeneration, suppressed } = vocabulary;
  const { partition, findControl } = makePartition(vocabulary, strip);
  const bytesOf = makeBytesOf(vocabulary);
  const isWordPiece = family === "wpm"; // always between [CLS] and [SEP]
  const first = isWordPiece || addBos ? bos : undefined;
  const last = isWordPiece ? separator : addEos ? eos : undefined;
  const addsPrefix = addSpacePrefix && (family === "spm" || family === "ugm");
  const prefix = family === "spm" && addsPrefix ? " " : ""; // Unigram adds its own at the start of a word
  const encodeFragment = makeFragmentEncoder(encode);
  const encodeText: Tokenizer["encode"] = (text, { addSpecial, parseSpecial }) => {
    const segments = typeof text === "string" ? [{ text, control: true }] : text;
    const out = makeIdList(segments.reduce((sum, segment) => sum + segment.text.length, 0) / 2);
    if (addSpecial && first !== undefined) pushId(out, first);
    let afterSpecial = true;
    for (const fragment of partition(segments, parseSpecial)) {
      if (typeof fragment === "number") pushId(out, fragment);
      else encodeFragment(afterSpecial ? prefix + fragment : fragment, out);
      afterSpecial = typeof fragment === "number";
    }
    if (addSpecial && last !== undefined) pushId(out, last);
    return out.ids.slice(0, out.length);
  };
  const newline = (): number | undefined =>
    isWordPiece ? undefined : encodeText("\n", { addSpecial: false, parseSpecial: false }).at(-1);
  let newlineId: { readonly id: number | undefined } | undefined; // made at first use
  return {
    family,
    vocabulary,
    vocabSize: pieces.length,
    bos,
    eos,
    before: first,
    after: last,
    endOfGeneration,
    suppressed,
    ...(vocabulary.fill ? { fill: vocabulary.fill } : {}),
    encode: encodeText,
    findControl,
    bytesOf,
    detokenize: makeDetokenize(bytesOf, addsPrefix),
    get newlineId() {
      return (newlineId ??= { id: newline() }).id;
    },
  };
}

/** The tokenizer of a model whose input is ids: it has their number, and no texts. */
function makeWithout(metadata: Metadata, path: string): LoadedTokenizer {
  const arch = getString(metadata, "general.architecture", "");
  const listed = getStrings(metadata, PIECES_KEY, []).length;
  return {
    family: "none",
    vocabulary: undefined,
    vocabSize: listed || getNumber(metadata, `${arch}.vocab_size`, 0),
    bos: undefined,
    eos: undefined,
    before: undefined,
    after: undefined,
    endOfGeneration: new Set(),
    suppressed: new Int32Array(0),
    encode: (text) => {
      const texts = typeof text === "string" ? [text] : text.map((segment) => segment.text);
      if (texts.every((each) => each === "")) return new Int32Array(0); // beside a prompt of ids
      throw new AppError("unsupported", `${path}: expected ids, since the model has no tokenizer; got text`);
    },
    findControl: () => [],
    bytesOf: () => new Uint8Array(0),
    detokenize: () => "",
    newlineId: undefined,
  };
}
