/**
 * Reads RWKV's World vocabulary: a line for each token, with its id, its bytes as a Python literal, and their number. A
 * GGUF spells the bytes like Python. Ids and types: `_set_vocab_rwkv_world` of llama.cpp's converter.
 */
import { AppError } from "../../base/index.ts";
import { u32 } from "./architecture.ts";
import { WORLD_TURNS } from "../../engine/formats/index.ts";
import { describe } from "./folder.ts";
import type { Tokens, TokensPlace } from "./tokens.ts";
import { completeVocabulary, CONTROL, NORMAL, vocabularyMetadata } from "./vocabulary.ts";

export const WORLD_FILE = "rwkv_vocab_v20230424.txt";
/** The longest published token has 128. */
const PIECE_BYTES_MAX = 512;
/** Sixteen times the published vocabulary. */
const PIECES_MAX = 2 ** 20;
/** It begins and ends texts, and is not in the file. */
const END = "<s>";
/** The empty line, which ends a turn. */
const TURN_END = "\\n\\n";

/** Throws `bad_file` for a damaged file, or more tokens than rows. */
export function readWorld(text: string, place: TokensPlace): Tokens {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const pieces = [END];
  for (const line of lines) {
    const [, id, literal = "", count] = /^(\d{1,7}) (b?'.*'|b?".*") (\d{1,4})\r?$/.exec(line) ?? [];
    const bytes = bytesOf(literal);
    const isToken = bytes && bytes.length > 0 && bytes.length <= PIECE_BYTES_MAX && bytes.length === Number(count);
    if (!isToken || Number(id) !== pieces.length || pieces.length === PIECES_MAX) {
      const what = `${place.label}: '${WORLD_FILE}': line ${pieces.length}`;
      const expected = `the id ${pieces.length}, a token as Python spells it, and its count of bytes`;
      throw new AppError("bad_file", `${what}: expected ${expected}, got ${describe(line)}`);
    }
    pieces.push(spelled(bytes));
  }
  const types = pieces.map((_, id) => (id === 0 ? CONTROL : NORMAL));
  const vocabulary = { pieces, types, scores: [] };
  const turnEnd = pieces.indexOf(TURN_END);
  completeVocabulary(vocabulary, { added: [], ...place });
  const metadata = {
    "tokenizer.ggml.model": "rwkv",
    ...vocabularyMetadata(vocabulary),
    "tokenizer.ggml.bos_token_id": u32(0),
    "tokenizer.ggml.eos_token_id": u32(0),
    ...(turnEnd < 0 ? {} : { "tokenizer.ggml.eot_token_id": u32(turnEnd) }),
    "tokenizer.chat_template": `{{ bos_token }}${WORLD_TURNS}`,
  };
  return { metadata, pieces, leftOut: [] };
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/** The bytes of a literal, as text in UTF-8 or as bytes; undefined if it is not a literal. */
function bytesOf(literal: string): Uint8Array | undefined {
  const isBytes = literal.startsWith("b");
  const inner = literal.slice(isBytes ? 2 : 1, -1);
  const parts = inner.match(/\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|\\[\\'"nrt]|[^\\]+/g) ?? [];
  if (parts.join("") !== inner) return undefined;
  const text = parts.map((part) => {
    if (!part.startsWith("\\")) return part;
    const code = part.length > 2 ? parseInt(part.slice(2), 16) : undefined;
    return code === undefined ? (ESCAPES[part[1]!] ?? part[1]!) : String.fromCodePoint(Math.min(code, 0x10ffff));
  });
  const all = text.join("");
  if (!isBytes) return new TextEncoder().encode(all);
  return /^[\0-\xff]*$/.test(all) ? Uint8Array.from(all, (character) => character.charCodeAt(0)) : undefined;
}

/** Spells bytes like Python, without quotes. */
function spelled(bytes: Uint8Array): string {
  const quote = bytes.includes(39) && !bytes.includes(34) ? 34 : 39;
  const spell = (byte: number): string => {
    const known = { 9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\", [quote]: `\\${String.fromCharCode(quote)}` }[byte];
    if (known !== undefined) return known;
    return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  };
  return Array.from(bytes, spell).join("");
}
