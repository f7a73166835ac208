/**
 * Removes from outside text everything that could let it speak as someone else: the boundary's markers, however
 * disguised, and the control tokens of the common model families, which would look like turns of the conversation. The
 * tokenizer already encodes an agent's messages without control tokens (`isOutside`); this removes them from the text
 * as well, and invisible characters too.
 */
import { fold } from "./fold.ts";
import { withoutInvisible } from "./invisible.ts";

export const MARKER = "EXTERNAL_UNTRUSTED_CONTENT";
const FORGED_START = "[[MARKER_SANITIZED]]";
const FORGED_END = "[[END_MARKER_SANITIZED]]";
const CONTROL_TOKEN = "[[TOKEN_SANITIZED]]";

/** Matches the letters of a word with up to three other characters between them. */
const spaced = (word: string): string => [...word].join("[^\\p{L}\\p{N}]{0,3}");
const WORDS = ["external", "untrusted", "content"];
const GAP = "[^\\p{L}\\p{N}]{0,8}";
/** A match begins only at the first bracket of a run, because trying each bracket would take quadratic time. */
const MARKERS = new RegExp(
  `(?:(?<!<)<+${GAP})?(?<end>${spaced("end")}${GAP})?${WORDS.map(spaced).join(GAP)}(?:[^<>\\n]{0,80}>+)?`,
  "gu",
);

/** Control tokens of the common families: ChatML, Llama, Gemma, Mistral, DeepSeek, harmony. */
const TOKENS = new RegExp(
  [
    String.raw`<[|｜][^<>\n]{1,64}[|｜]>`,
    String.raw`</?s>`,
    String.raw`<(?:bos|eos|pad|unk|mask)>`,
    String.raw`<(?:start|end)_of_(?:turn|image|role)>`,
    String.raw`\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS)\]`,
    String.raw`<</?SYS>>`,
    String.raw`</?(?:think|tool_call|tool_response|tools|function_calls)>`,
    String.raw`<(?:unused|reserved_special_token_)\d+>`,
  ].join("|"),
  "giu",
);

export const neutralize = (text: string): string =>
  withoutMarkers(withoutInvisible(text)).replace(TOKENS, CONTROL_TOKEN);

/** Returns text without markers unchanged. */
function withoutMarkers(text: string): string {
  const folded = fold(text);
  const forged = [...folded.text.matchAll(MARKERS)];
  if (forged.length === 0) return text;
  const origins = folded.origins(forged.map(({ index, 0: { length } }) => ({ start: index, end: index + length })));
  let out = "";
  let at = 0;
  for (const [i, { start, end }] of origins.entries()) {
    out += text.slice(at, Math.max(at, start)) + (forged[i]?.groups?.["end"] ? FORGED_END : FORGED_START);
    at = end;
  }
  return out + text.slice(at);
}
