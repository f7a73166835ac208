/**
 * The blocks of a growing text: finished blocks are never parsed again, only the last one is. So the cost of a long
 * answer per frame is that of its last block.
 */
import { Marked, type Token } from "marked";
import { mathBlock, mathInline } from "./math.ts";

/** A longer block is shown as plain text: it is slow to parse, and no answer is that long. */
const BLOCK_CHARS_MAX = 200_000;
/** Deeply nested quotes or lists take seconds to parse. */
const NESTED = /(?:>[ \t]?){40}|(?:[-*+][ \t]){40}/;

export interface Blocks {
  /** The parsed text. */
  readonly text: string;
  readonly done: readonly Token[];
  /** Offset of the last block. */
  readonly tailAt: number;
  /** The last block so far. */
  readonly tail: readonly Token[];
}

export const NO_BLOCKS: Blocks = { text: "", done: [], tailAt: 0, tail: [] };

/** @param lex parses a text: the whole text, or its unfinished part */
export function readBlocks(before: Blocks, text: string, lex: (text: string) => Token[] = lexBlocks): Blocks {
  if (text === before.text) return before;
  const from = text.startsWith(before.text) ? before : NO_BLOCKS;
  const tokens = lex(text.slice(from.tailAt));
  const last = tokens.findLastIndex(({ type }) => type !== "space");
  const over = tokens.slice(0, Math.max(0, last));
  const overChars = over.reduce((sum, { raw }) => sum + raw.length, 0);
  return {
    text,
    done: over.length === 0 ? from.done : [...from.done, ...over.filter(({ type }) => type !== "space")],
    tailAt: from.tailAt + overChars,
    tail: tokens.slice(Math.max(0, last)),
  };
}

/** The blocks of a complete text. */
export const blocksOf = (text: string): readonly Token[] => lexBlocks(text);

/** Text that is nested too deep or too long for the lexer becomes one paragraph of plain text. */
function lexBlocks(text: string): Token[] {
  const isHuge = text.length > BLOCK_CHARS_MAX && !text.slice(0, BLOCK_CHARS_MAX).includes("\n\n");
  if (isHuge || NESTED.test(text)) return [plain(text)];
  try {
    return new Marked({ gfm: true, extensions: [mathBlock, mathInline] }).lexer(text);
  } catch {
    return [plain(text)];
  }
}

const plain = (text: string): Token => ({ type: "html", raw: text, text, block: true, pre: false });

/** A model's text with uniform line breaks, for offsets. */
export const normalLines = (text: string): string => text.replace(/\r\n?/g, "\n");
