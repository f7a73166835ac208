/** Ids to bytes and text. Ported from `llama_vocab::impl::token_to_piece` and `detokenize` in llama-vocab.cpp. */
import { concatBytes } from "../../formats/bytes.ts";
import { utf8Text } from "../utf8.ts";
import { bytesOfCharacters } from "./byte-alphabet.ts";
import { SPACE } from "./code-points.ts";
import { BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED } from "./special-tokens.ts";
import type { Tokenizer } from "./tokenizer.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { worldBytes } from "./world.ts";

const NOTHING = new Uint8Array(0);

/**
 * Makes `bytesOf`. Ids outside the vocabulary have no bytes, because models pad their logits. Callers must not change
 * the result.
 */
export function makeBytesOf({
  pieces,
  attributes,
  escapesSpaces,
  isVerbatim,
  escapesBytes,
}: Vocabulary): Tokenizer["bytesOf"] {
  const utf8 = new TextEncoder();
  const byteOf = bytesOfCharacters();
  const known: (Uint8Array | undefined)[] = [];
  const spell = (piece: string): Uint8Array =>
    Uint8Array.from([...piece].flatMap((character) => byteOf.get(character) ?? [...utf8.encode(character)]));
  const make = (id: number): Uint8Array => {
    const piece = pieces[id]!;
    const attribute = attributes[id]!;
    if (escapesBytes) return worldBytes(piece);
    const isPlain = isVerbatim && (attribute & BYTE) === 0;
    if (isPlain || attribute & (CONTROL | UNKNOWN | USER_DEFINED)) return utf8.encode(piece);
    if (attribute & NORMAL) return escapesSpaces ? utf8.encode(piece.replaceAll(SPACE, " ")) : spell(piece);
    const byte = attribute & BYTE ? /^<0x([0-9A-Fa-f]{2})>$/.exec(piece) : null;
    return byte === null ? NOTHING : Uint8Array.of(parseInt(byte[1]!, 16));
  };
  return (id, options) => {
    if (!(id >= 0 && id < pieces.length)) return NOTHING;
    if ((attributes[id]! & (CONTROL | UNKNOWN)) !== 0 && options?.special !== true) return NOTHING;
    return (known[id] ??= make(id));
  };
}

/**
 * Makes `detokenize`. With `stripSpace`, removes the space that encoding prepended to a text, if the first id starts
 * with one.
 */
export function makeDetokenize(bytesOf: Tokenizer["bytesOf"], stripSpace: boolean): Tokenizer["detokenize"] {
  return (ids, options) => {
    const parts: Uint8Array[] = [];
    for (const id of ids) {
      const bytes = bytesOf(id, options);
      parts.push(stripSpace && parts.length === 0 && bytes[0] === 32 ? bytes.subarray(1) : bytes);
    }
    return utf8Text(concatBytes(parts));
  };
}
