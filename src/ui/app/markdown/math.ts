/**
 * Formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. Code comes first, so that formulas in it stay code; prices
 * stay text.
 */
import type { TokenizerAndRendererExtension, Tokens } from "marked";

export interface MathToken extends Tokens.Generic {
  readonly type: "math";
  readonly raw: string;
  /** Without its delimiters. */
  readonly text: string;
  /** On lines of its own. */
  readonly isDisplay: boolean;
  /** False: its end has not come yet. */
  readonly isWhole: boolean;
}

/** Longer ones are shown as they were written. */
const CHARS_MAX = 5000;

/** A display formula has no blank line in it, so that a block that is over never becomes part of one. */
const DISPLAY = /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[^$])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n|$)/;
/** One that has begun, up to the end of the text. */
const BEGUN = /^ {0,3}(?:\$\$|\\\[)(?:(?!\n[ \t]*\n)(?!\$\$|\\\])[\s\S])*$/;
const INLINE =
  /^(?:\$\$((?:(?!\n[ \t]*\n)[^$])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\]|\\\(((?:(?!\n[ \t]*\n)[\s\S])+?)\\\)|\$(?![\s$])((?:\\[^\n]|[^$\\`\n])+?)\$(?![\p{L}\p{N}$]))/u;
/** An amount of money, and words after it. */
const PRICE = /^\d[\d.,]*\s*(?:[kKMBm]|bn)?(?:[\s,;:/–-]+\p{L}{2,}|\s*[–-]\s*$)/u;

export const mathBlock: TokenizerAndRendererExtension = {
  name: "math",
  level: "block",
  start: (src) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(src)?.index,
  tokenizer(src) {
    const whole = DISPLAY.exec(src);
    if (whole) return token(whole[0], whole[1] ?? whole[2]!, { isDisplay: true });
    const begun = src.length <= CHARS_MAX ? BEGUN.exec(src) : null;
    if (!begun) return undefined;
    return { ...token(src, src.trim().slice(2), { isDisplay: true }), isWhole: false };
  },
};

export const mathInline: TokenizerAndRendererExtension = {
  name: "math",
  level: "inline",
  start: (src) => /\$|\\[([]/.exec(src)?.index,
  tokenizer(src) {
    const found = INLINE.exec(src.slice(0, CHARS_MAX));
    if (!found) return undefined;
    const [raw, dollars, square, round, single] = found;
    if (single !== undefined && (/\s$/.test(single) || PRICE.test(single))) return undefined;
    return token(raw, dollars ?? square ?? round ?? single!, { isDisplay: (dollars ?? square) !== undefined });
  },
};

const token = (raw: string, text: string, { isDisplay }: { isDisplay: boolean }): MathToken => ({
  type: "math",
  raw,
  text: text.trim(),
  isDisplay,
  isWhole: true,
});
