/**
 * The blocks of a text that grows: those that are over are never read again, only the last one is. So a long answer
 * costs as much per frame as its last block.
 */
import { Marked, type Token } from "marked";
import { mathBlock, mathInline } from "./math.ts";

/** One that is longer is shown as it is: nobody's answer, and slow to read. */
const BLOCK_CHARS_MAX = 200_000;
/** So many quotes or lists inside each other take seconds to read. */
const NESTED = /(?:>[ \t]?){40}|(?:[-*+][ \t]){40}/;

export interface Blocks {
  /** What was read. */
  readonly text: string;
  /** Blocks that are over. */
  readonly done: readonly Token[];
  /** Where the last block begins. */
  readonly tailAt: number;
  /** What the last block is so far. */
  readonly tail: readonly Token[];
}

export const NO_BLOCKS: Blocks = { text: "", done: [], tailAt: 0, tail: [] };

/** @param lex reads a text: all of it, or what of it is not over */
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

/** The blocks of a text that does not grow. */
export const blocksOf = (text: string): readonly Token[] => lexBlocks(text);

/** Text that the lexer cannot take, because it is nested too deep or too long, is one paragraph of plain text. */
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

/** What a model wrote, in the shape that blocks are counted in. */
export const normalLines = (text: string): string => text.replace(/\r\n?/g, "\n");
