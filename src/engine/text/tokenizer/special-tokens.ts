/**
 * Tokens known by their text. Converters forget to mark the ends of turns, so llama.cpp finds them by name and
 * overrides the file; we do the same, because a model would otherwise talk past its end. Ported from
 * `llama_vocab::impl::load` in llama-vocab.cpp.
 */
import { FILE_MARKERS, FILL_MARKERS } from "./fill-in-the-middle.ts";
import { findPiece, type PieceIndex } from "./piece-index.ts";

/** Token attributes: flags, because an override adds to the file's. `LLAMA_TOKEN_ATTR_*`; zero is "undefined". */
export const NORMAL = 1;
export const UNKNOWN = 2;
export const CONTROL = 4;
export const USER_DEFINED = 8;
export const UNUSED = 16;
export const BYTE = 32;

const ENDS = [
  "<|eot_id|>",
  "<|im_end|>",
  "<|end|>",
  "<|return|>",
  "<|call|>",
  "<|flush|>",
  "<|calls|>",
  "<end_of_turn>",
  "<|endoftext|>",
  "</s>",
  "<|eom_id|>",
  "<EOT>",
  "_<EOT>",
  "[EOT]",
  "[EOS]",
  "<|end_of_text|>",
  "<end_of_utterance>",
  "<eos>",
  "<turn|>",
  "<|tool_response>",
  "<｜end▁of▁sentence｜>",
  "[e~[",
];

/**
 * Fill-in-the-middle tokens that also end a generation, by the key that names one; else the first of these that exists.
 */
const FILL_ENDS: Readonly<Record<string, readonly string[]>> = {
  fim_pad_token_id: ["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
  ...FILE_MARKERS,
};

/** Harmony's channel markers: part of the answer's text, which a parser reads. */
const ALWAYS_TEXT = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/** Keys of ids that the file may contain and `overrideByText` needs. */
export const FILL_KEYS = [...Object.keys(FILL_ENDS), ...Object.keys(FILL_MARKERS)];

/**
 * Corrects token attributes by text, in place, and returns the ids that end a generation.
 * @param attributes (pieces) flags
 * @param named ids that the file itself names, by key without `tokenizer.ggml.`
 */
export function overrideByText(
  index: PieceIndex,
  attributes: Uint8Array,
  named: ReadonlyMap<string, number | undefined>,
): Set<number> {
  const ends = new Set<number>();
  const idOf = (text: string): number | undefined => {
    const id = findPiece(index, text);
    return id < 0 ? undefined : id;
  };
  for (const [key, texts] of Object.entries({ ...FILL_ENDS, ...FILL_MARKERS })) {
    const found = texts.map(idOf).find((id) => id !== undefined);
    const id = named.get(key) ?? found;
    if (named.get(key) === undefined && found !== undefined) attributes[found]! |= CONTROL;
    if (id !== undefined && key in FILL_ENDS) ends.add(id);
  }
  for (const id of ENDS.map(idOf)) {
    if (id === undefined) continue;
    attributes[id]! |= CONTROL;
    ends.add(id);
  }
  for (const id of ALWAYS_TEXT.map(idOf)) if (id !== undefined) attributes[id] = USER_DEFINED;
  for (const key of ["eos_token_id", "eot_token_id", "eom_token_id"]) {
    const id = named.get(key);
    if (id !== undefined) ends.add(id);
  }
  /** Removes a token from the end tokens if all of `others` are end tokens. */
  const keepGoing = (text: string, others: readonly string[], attribute: number): void => {
    const id = idOf(text);
    const among = (other: string): boolean => ends.has(idOf(other) ?? -1);
    if (id === undefined || !ends.has(id) || !others.every(among)) return;
    ends.delete(id);
    attributes[id] = attribute;
  };
  keepGoing("<|end|>", ["<|return|>", "<|call|>"], USER_DEFINED); // Harmony: ends a message, not the turn
  keepGoing("<|end|>", ["<|return|>", "<|calls|>"], USER_DEFINED);
  keepGoing("<|end|>", ["<|flush|>", "<|call|>"], USER_DEFINED);
  keepGoing("<|end|>", ["<|flush|>", "<|calls|>"], USER_DEFINED);
  keepGoing("</s>", ["<|tool_response>"], NORMAL); // Gemma 4: a piece of HTML
  return ends;
}
