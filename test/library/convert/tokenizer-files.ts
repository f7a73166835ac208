/** Tokenizer files in the formats of Hugging Face and SentencePiece, made from a GGUF's metadata. */
import type { Metadata } from "../../../src/engine/formats/gguf/gguf.ts";

const raw = String.raw;
const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const END = raw`\s*[\r\n]+|\s+(?!\S)|\s+`;

const split = (regex: string) => ({
  type: "Sequence",
  pretokenizers: [
    { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false },
    { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
  ],
});
const BYTE_LEVEL = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
const WORDS = (digits: string): string =>
  raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?\p{L}+|${digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|${END}`;

/** The content of `pre_tokenizer`, by the name in a GGUF. */
export const PRE_TOKENIZERS: Readonly<Record<string, object>> = {
  "gpt-2": BYTE_LEVEL,
  starcoder: { type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits: true }, BYTE_LEVEL] },
  qwen2: split(WORDS(raw`\p{N}`)),
  "llama-bpe": split(WORDS(raw`\p{N}{1,3}`)),
};

export const piecesOf = (metadata: Metadata): string[] => metadata.get("tokenizer.ggml.tokens") as string[];
const typesOf = (metadata: Metadata): number[] => [...(metadata.get("tokenizer.ggml.token_type") as Int32Array)];

/** Control and user-defined tokens, as in `added_tokens`. */
export function addedTokens(metadata: Metadata): { id: number; content: string; special: boolean }[] {
  const types = typesOf(metadata);
  return piecesOf(metadata).flatMap((content, id) =>
    types[id] === 3 || types[id] === 4 ? [{ id, content, special: types[id] === 3 }] : [],
  );
}

/**
 * `tokenizer.json` of byte-level BPE.
 * @param pairs merges as lists, as in newer files
 */
export function byteLevelJson(metadata: Metadata, { pairs }: { pairs: boolean }): Record<string, unknown> {
  const pre = String(metadata.get("tokenizer.ggml.pre"));
  const added = addedTokens(metadata);
  const apart = new Set(added.map(({ id }) => id));
  const merges = metadata.get("tokenizer.ggml.merges") as string[];
  return {
    version: "1.0",
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: PRE_TOKENIZERS[pre],
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      ignore_merges: pre === "llama-bpe",
      vocab: Object.fromEntries(piecesOf(metadata).flatMap((piece, id) => (apart.has(id) ? [] : [[piece, id]]))),
      merges: pairs ? merges.map((merge) => merge.split(" ")) : merges,
    },
  };
}

/** `tokenizer.json` of WordPiece. */
export function wordPieceJson(metadata: Metadata): Record<string, unknown> {
  const types = typesOf(metadata);
  const pieces = piecesOf(metadata).map((piece, id) =>
    types[id] !== 1 ? piece : piece.startsWith("▁") ? piece.slice(1) : `##${piece}`,
  );
  const added = pieces.flatMap((content, id) => (types[id] === 1 ? [] : [{ id, content, special: true }]));
  return {
    added_tokens: added,
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
    },
  };
}

/** `tokenizer.json` of SentencePiece's BPE: a merge for every way to part a piece, the best scores first. */
export function textJson(metadata: Metadata): Record<string, unknown> {
  const pieces = piecesOf(metadata);
  const scores = metadata.get("tokenizer.ggml.scores") as Float32Array;
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  const types = typesOf(metadata);
  const merges = pieces.flatMap((piece, id) => {
    if (types[id] !== 1) return [];
    const cuts = Array.from({ length: Math.max(0, piece.length - 1) }, (_, i) => i + 1);
    const parts = cuts.map((cut) => [piece.slice(0, cut), piece.slice(cut)] as const);
    return parts
      .filter(([left, right]) => ids.has(left) && ids.has(right))
      .map((pair) => ({ pair, score: scores[id]! }));
  });
  return {
    added_tokens: addedTokens(metadata),
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "Prepend", prepend: "▁" },
        { type: "Replace", pattern: { String: " " }, content: "▁" },
      ],
    },
    pre_tokenizer: null,
    model: {
      type: "BPE",
      byte_fallback: true,
      unk_token: "<unk>",
      vocab: Object.fromEntries(ids),
      merges: merges.toSorted((a, b) => b.score - a.score).map(({ pair }) => pair.join(" ")),
    },
  };
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
const bytesField = (number: number, bytes: Uint8Array): Uint8Array =>
  Buffer.concat([Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
const numberField = (number: number, value: number): Uint8Array =>
  Uint8Array.from([...varint(number * 8), ...varint(value)]);

/** `tokenizer.model`. @param modelType 2 for BPE, 1 for Unigram */
export function sentencePieceModel(metadata: Metadata, modelType = 2): Uint8Array {
  const scores = metadata.get("tokenizer.ggml.scores") as Float32Array;
  const types = typesOf(metadata);
  const pieces = piecesOf(metadata).map((piece, id) => {
    const score = Buffer.alloc(5);
    score[0] = 2 * 8 + 5;
    score.writeFloatLE(scores[id]!, 1);
    const type = types[id] === 1 ? new Uint8Array(0) : numberField(3, types[id]!);
    return bytesField(1, Buffer.concat([bytesField(1, Buffer.from(piece)), score, type]));
  });
  const none = Uint8Array.from([...varint(43 * 8), 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]); // pad_id: -1
  const trainer = Buffer.concat([numberField(3, modelType), numberField(41, 1), numberField(42, 2), none]);
  const normalizer = Buffer.concat([bytesField(1, Buffer.from("identity")), numberField(3, 1)]);
  return Buffer.concat([...pieces, bytesField(2, trainer), bytesField(3, normalizer)]);
}

/** `tokenizer.json` of a Unigram model of twelve pieces. */
export function unigramJson(): Record<string, unknown> {
  const marks = ["<s>", "<pad>", "</s>", "<unk>"];
  const pieces = { "▁": -3, a: -4, b: -4.5, c: -4, ab: -5, "▁ab": -5.5, "▁a": -6, abc: -9 };
  const special = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  return {
    added_tokens: marks.map((content, id) => ({ id, content, special: true })),
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [{ type: "WhitespaceSplit" }, { type: "Metaspace", replacement: "▁", prepend_scheme: "always" }],
    },
    post_processor: {
      type: "TemplateProcessing",
      single: [special("<s>"), { Sequence: { id: "A" } }, special("</s>")],
    },
    model: { type: "Unigram", unk_id: 3, vocab: [...marks.map((mark) => [mark, 0]), ...Object.entries(pieces)] },
  };
}
