/**
 * RWKV's World vocabulary: pieces spell bytes, and a text is divided from left to right into the longest matching
 * pieces. Ported from `llm_tokenizer_rwkv` in llama-vocab.cpp, which never returns for a text that is only the
 * beginning of a piece; here such a text is unknown.
 */
import { AppError } from "../../../base/index.ts";
import { pushId } from "./id-list.ts";
import { extendHash, findPiece, findRange, indexPieces } from "./piece-index.ts";
import { CONTROL, UNKNOWN } from "./special-tokens.ts";
import { PIECES_KEY, type Vocabulary } from "./vocabulary.ts";
import type { Encode } from "./word-cache.ts";

/** llama.cpp recognises control tokens in any text; here they are split out earlier. */
const NO_TEXT = CONTROL | UNKNOWN;
/** First character of the name of a piece that no text contains: text is one character per byte. */
const NOTHING = "\uffff";
const ESCAPES: Readonly<Record<string, number>> = { t: 9, n: 10, r: 13 };
/** Bytes per call of `String.fromCharCode`. */
const CHUNK = 4096;

/** The bytes of a piece, whose text has escapes: `\t`, `\n`, `\r`, `\xNN`, and `\` before any other character. */
export function worldBytes(piece: string): Uint8Array {
  const utf8 = new TextEncoder();
  const parts = piece.match(/\\x[0-9a-f]{2}|\\[^]|[^\\]+/gi) ?? [];
  const bytes = parts.flatMap((part) => {
    if (!part.startsWith("\\")) return [...utf8.encode(part)];
    if (part.length === 4) return [parseInt(part.slice(2), 16)];
    return ESCAPES[part[1]!] ?? [...utf8.encode(part.slice(1))];
  });
  return Uint8Array.from(bytes);
}

/** Throws `bad_file` if two pieces are equal, or if a byte has no piece and the vocabulary has no unknown token. */
export function makeWorld({ pieces, attributes, unknown }: Vocabulary): Encode {
  const texts = pieces.map((piece, id) => {
    const text = (attributes[id]! & NO_TEXT) === 0 ? oneUnitEach(worldBytes(piece)) : "";
    return text || `${NOTHING}${id}`;
  });
  const index = indexPieces(texts, PIECES_KEY);
  const single = Int32Array.from({ length: 256 }, (_, byte) => findPiece(index, String.fromCharCode(byte)));
  const lost = single.indexOf(-1);
  if (lost >= 0 && unknown === undefined) {
    const byte = `\\x${lost.toString(16).padStart(2, "0")}`;
    throw new AppError("bad_file", `metadata '${PIECES_KEY}': expected a piece '${byte}' for a byte, got none`);
  }
  const longest = new Uint16Array(2 ** 16); // by the first two bytes
  for (const text of texts) {
    if (text.length < 2 || text.startsWith(NOTHING)) continue;
    const pair = (text.charCodeAt(0) << 8) | text.charCodeAt(1);
    longest[pair] = Math.max(longest[pair]!, text.length);
  }
  const utf8 = new TextEncoder();
  return (given, out) => {
    const text = oneUnitEach(utf8.encode(given));
    for (let at = 0; at < text.length;) {
      let id = single[text.charCodeAt(at)]!;
      let end = at + 1;
      const most = at + 1 < text.length ? longest[(text.charCodeAt(at) << 8) | text.charCodeAt(at + 1)]! : 0;
      const last = Math.min(text.length, at + most);
      for (let to = at, hash = 0; to < last;) {
        hash = extendHash(hash, text.charCodeAt(to++));
        const found = findRange(index, text, at, to, hash);
        if (found >= 0) [id, end] = [found, to];
      }
      pushId(out, id < 0 ? unknown! : id); // checked above
      at = end;
    }
  };
}

/** A text whose UTF-16 units are these bytes. */
function oneUnitEach(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return text;
}
