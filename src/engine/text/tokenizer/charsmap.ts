/**
 * SentencePiece's character normalization map (`precompiled_charsmap`): a double array of UTF-8 bytes, then the
 * replacements, each ended by a zero. Format and walk follow `llm_tokenizer_ugm_session` in llama-vocab.cpp.
 */
import { AppError } from "../../../base/index.ts";
import type { Metadata } from "../../formats/gguf/gguf.ts";
import { getNumbers } from "../../formats/gguf/keys.ts";

const KEY = "tokenizer.ggml.precompiled_charsmap";
const REPLACEMENT = "\u{fffd}";

/** Replaces each longest known prefix; other text stays unchanged. */
export type Normalize = (text: string) => string;

/** The map of a file; without one, text stays unchanged. Throws `bad_file` for a map with inconsistent sizes. */
export function readCharsmap(metadata: Metadata): Normalize {
  const stored = getNumbers(metadata, KEY, undefined);
  if (stored === undefined || stored.length === 0) return (text) => text;
  const bytes = Uint8Array.from(stored, (byte) => byte & 0xff);
  const size = bytes.length < 4 ? -1 : new DataView(bytes.buffer).getUint32(0, true);
  if (size < 0 || size % 4 !== 0 || 4 + size > bytes.length) {
    const expected = "a whole number of entries of 4 bytes inside the map";
    throw new AppError("bad_file", `metadata '${KEY}': expected ${expected}, got ${size} of ${bytes.length} bytes`);
  }
  const view = new DataView(bytes.buffer, 4, size);
  const entries = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 * i, true));
  return makeNormalize(entries, makeReplacements(bytes.subarray(4 + size)));
}

/** Replacements by their offset, decoded once. */
function makeReplacements(bytes: Uint8Array): (offset: number) => string {
  const known = new Map<number, string>();
  const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  return (offset) => {
    let text = known.get(offset);
    if (text === undefined) {
      const end = bytes.indexOf(0, offset);
      if (offset >= bytes.length || end < 0) {
        throw new AppError("bad_file", `metadata '${KEY}': expected a replacement at byte ${offset}, got none`);
      }
      known.set(offset, (text = utf8.decode(bytes.subarray(offset, end))));
    }
    return text;
  };
}

function makeNormalize(entries: Uint32Array, replacementAt: (offset: number) => string): Normalize {
  const entry = (node: number): number => {
    if (node >= entries.length) {
      throw new AppError("bad_file", `metadata '${KEY}': expected an entry below ${entries.length}, got ${node}`);
    }
    return entries[node]!;
  };
  const base = (node: number): number => {
    const packed = entry(node);
    return ((packed >>> 10) << ((packed & 0x200) >>> 6)) >>> 0;
  };
  const utf8 = new TextEncoder();
  /**
   * Length in bytes of the longest known prefix at `start`, and the offset of its replacement; length 0: there is no
   * such prefix.
   */
  const longestPrefix = (bytes: Uint8Array, start: number): { length: number; offset: number } => {
    let found = { length: 0, offset: 0 };
    let node = base(0);
    for (let at = start; at < bytes.length && bytes[at] !== 0; at++) {
      node = (node ^ bytes[at]!) >>> 0;
      const packed = entry(node);
      if ((packed & 0x8000_00ff) >>> 0 !== bytes[at]) break;
      node = (node ^ base(node)) >>> 0;
      if ((packed & 0x100) !== 0) found = { length: at - start + 1, offset: entry(node) & 0x7fff_ffff };
    }
    return found;
  };
  return (text) => {
    const bytes = utf8.encode(text);
    let out = "";
    for (let at = 0; at < bytes.length;) {
      const { length, offset } = longestPrefix(bytes, at);
      if (length > 0) {
        out += replacementAt(offset);
        at += length;
        continue;
      }
      const size = characterBytes(bytes[at]!);
      out += size === 0 ? REPLACEMENT : codePointAt(bytes, at, size);
      at += Math.max(1, size);
    }
    return out;
  };
}

/** Bytes of the character that begins with this byte; 0 within a character, where a prefix has ended. */
function characterBytes(first: number): number {
  if (first < 0x80) return 1;
  return first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

function codePointAt(bytes: Uint8Array, at: number, size: number): string {
  if (size === 1) return String.fromCharCode(bytes[at]!);
  let codePoint = bytes[at]! & (0x7f >> size);
  for (let i = 1; i < size; i++) codePoint = (codePoint << 6) | (bytes[at + i]! & 0x3f);
  return String.fromCodePoint(codePoint);
}
