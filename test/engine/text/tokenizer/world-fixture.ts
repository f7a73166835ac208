/** A small World vocabulary of RWKV, and texts whose ids llama.cpp gives. */
import type { Metadata, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { TYPE } from "./fixtures.ts";

/** As converters spell a byte. */
function escaped(byte: number): string {
  const known = { 9: "\\t", 10: "\\n", 13: "\\r", 39: "\\'", 92: "\\\\" }[byte];
  if (known !== undefined) return known;
  return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
}

const MORE = [
  "\\n\\n",
  " world",
  "world",
  "hell",
  "hello",
  "lo w",
  "ab",
  "abcde",
  "\\xe6\\x97\\xa5",
  "\\xe6\\x97",
  "\\xe6\\x97\\xa5\\xe6\\x9c",
  "\\xc3\\xa9t",
  "caf\\xc3",
  "\\xf0\\x9f",
  "it\\'s",
  "C:\\\\",
  "    ",
];
/** The first one is a control token, as in converted files. */
export const PIECES: readonly string[] = ["<s>", ...Array.from({ length: 256 }, (_, byte) => escaped(byte)), ...MORE];

export const worldMetadata = (pieces = PIECES): Metadata =>
  new Map<string, MetadataValue>(
    Object.entries({
      "general.architecture": "rwkv7",
      "tokenizer.ggml.model": "rwkv",
      "tokenizer.ggml.tokens": [...pieces],
      "tokenizer.ggml.token_type": Int32Array.from(pieces, (_, id) => (id === 0 ? TYPE.control : TYPE.normal)),
      "tokenizer.ggml.bos_token_id": 0,
      "tokenizer.ggml.eos_token_id": 0,
      "tokenizer.ggml.eot_token_id": 257,
    }),
  );

export const TEXTS = [
  "hello world",
  "hello\n\nworld",
  "abcd abcde abc",
  "日本 日曜 早",
  "café été",
  "🙂🙃",
  "it's C:\\ \\n",
  "     x\t\r\n",
] as const;
