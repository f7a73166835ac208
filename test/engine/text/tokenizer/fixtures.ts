/** Small vocabularies built in code, in the form of a GGUF's metadata. */
import type { Metadata, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { byteCharacters } from "../../../../src/engine/text/tokenizer/byte-alphabet.ts";

export const TYPE = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;
export const PLAIN = { addSpecial: false, parseSpecial: false } as const;
export const PARSED = { addSpecial: false, parseSpecial: true } as const;
export const WHOLE = { addSpecial: true, parseSpecial: true } as const;

type Extra = readonly (readonly [piece: string, type: number])[];

function metadata(model: string, extra: Record<string, MetadataValue>): Metadata {
  return new Map(Object.entries({ "general.architecture": "llama", "tokenizer.ggml.model": model, ...extra }));
}

/** Byte-level BPE: 256 bytes, then the result of each merge, then `special` pieces. */
export function bpeMetadata(
  merges: readonly string[],
  special: Extra = [],
  extra: Record<string, MetadataValue> = {},
): Metadata {
  const pieces = [...byteCharacters(), ...new Set(merges.map((merge) => merge.replace(" ", "")))];
  const types = [...pieces.map(() => TYPE.normal as number), ...special.map(([, type]) => type)];
  return metadata("gpt2", {
    "tokenizer.ggml.pre": "llama-bpe",
    "tokenizer.ggml.tokens": [...pieces, ...special.map(([piece]) => piece)],
    "tokenizer.ggml.token_type": Int32Array.from(types),
    "tokenizer.ggml.merges": [...merges],
    "tokenizer.ggml.add_bos_token": false,
    ...extra,
  });
}

/** SentencePiece: `<unk> <s> </s>`, 256 bytes, then pieces with falling scores. */
export function spmMetadata(
  pieces: readonly string[],
  special: Extra = [],
  extra: Record<string, MetadataValue> = {},
): Metadata {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  const controls = [TYPE.unknown, TYPE.control, TYPE.control];
  const types = [
    ...controls,
    ...bytes.map(() => TYPE.byte),
    ...pieces.map(() => TYPE.normal),
    ...special.map(([, type]) => type),
  ];
  const scores = [...controls, ...bytes].map(() => 0);
  return metadata("llama", {
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", ...bytes, ...pieces, ...special.map(([piece]) => piece)],
    "tokenizer.ggml.token_type": Int32Array.from(types),
    "tokenizer.ggml.scores": Float32Array.from([...scores, ...pieces.map((_, i) => -i), ...special.map(() => -1e9)]),
    ...extra,
  });
}

/** WordPiece: `[PAD] [UNK] [CLS] [SEP]`, then pieces. */
export function wpmMetadata(pieces: readonly string[], extra: Record<string, MetadataValue> = {}): Metadata {
  return metadata("bert", {
    "tokenizer.ggml.tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ...pieces],
    "tokenizer.ggml.token_type": Int32Array.from([3, 2, 3, 3, ...pieces.map(() => TYPE.normal)]),
    "tokenizer.ggml.unknown_token_id": 1,
    "tokenizer.ggml.bos_token_id": 2,
    "tokenizer.ggml.seperator_token_id": 3,
    ...extra,
  });
}

/** Merges that build the words of a text, as training would, the most frequent pair first. */
export function trainMerges(text: string, count: number): string[] {
  const characters = byteCharacters();
  const words = new Map<string, { symbols: string[]; weight: number }>();
  for (const word of text.match(/ ?\S+|\s+/g) ?? []) {
    const known = words.get(word);
    if (known !== undefined) known.weight++;
    else words.set(word, { symbols: Array.from(Buffer.from(word), (byte) => characters[byte]!), weight: 1 });
  }
  const merges: string[] = [];
  while (merges.length < count) {
    const pairs = new Map<string, number>();
    for (const { symbols, weight } of words.values()) {
      for (let i = 0; i + 1 < symbols.length; i++) {
        const pair = `${symbols[i]} ${symbols[i + 1]}`;
        pairs.set(pair, (pairs.get(pair) ?? 0) + weight);
      }
    }
    const best = [...pairs].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))[0];
    if (best === undefined) break;
    merges.push(best[0]);
    const [left, right] = best[0].split(" ") as [string, string];
    for (const word of words.values()) {
      for (let i = 0; i + 1 < word.symbols.length; i++) {
        if (word.symbols[i] === left && word.symbols[i + 1] === right) word.symbols.splice(i, 2, left + right);
      }
    }
  }
  return merges;
}

/**
 * Text with English-like statistics for a tokenizer: 5,000 words by Zipf's law, sentences, lines, some numbers. Seeded.
 */
export function makeProse(length: number, seed = 1): string {
  const rng = makeRng(seed);
  const below = (limit: number): number => Math.floor(rng.float() * limit);
  const syllables =
    "the an er in to re con ing ed al pre st ment ous ight ock ain ure bel dra fo gu hi ja ki lo mu ne".split(" ");
  const words = Array.from({ length: 5000 }, (_, rank) =>
    Array.from({ length: 1 + below(rank < 50 ? 1 : 4) }, () => syllables[below(syllables.length)]).join(""),
  );
  const parts: string[] = [];
  for (let size = 0; size < length;) {
    const word = rng.float() < 0.02 ? String(below(10_000)) : words[Math.floor(5000 ** rng.float()) - 1]!;
    const part = word + (rng.float() < 0.1 ? (rng.float() < 0.2 ? ".\n\n" : ", ") : rng.float() < 0.01 ? "'s " : " ");
    parts.push(part);
    size += part.length;
  }
  return parts.join("").slice(0, length);
}
