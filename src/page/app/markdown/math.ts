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
  /** True if it is displayed on separate lines. */
  readonly isDisplay: boolean;
  /** False: its end has not arrived yet. */
  readonly isWhole: boolean;
}

/** Longer formulas are shown as plain text. */
const CHARS_MAX = 5000;

/** A display formula contains no blank line, so that a finished block never becomes part of one. */
const DISPLAY = /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[^$])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n|$)/;
/** An unfinished display formula at the end of the text. */
const BEGUN = /^ {0,3}(?:\$\$|\\\[)(?:(?!\n[ \t]*\n)(?!\$\$|\\\])[\s\S])*$/;
const DISPLAY_INLINE = [/^\$\$((?:(?!\n[ \t]*\n)[^$])+?)\$\$/, /^\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\]/] as const;
const ROUND = /^\\\(((?:(?!\n[ \t]*\n)[\s\S])+?)\\\)/;
/** `$` next to the content, and no letter or digit after it. */
const SINGLE = /^\$(?![\s$])((?:\\[^\n]|[^$\\`\n])+?)\$(?![\p{L}\p{N}$])/u;
/** An amount of money, followed by words. */
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
    const near = src.slice(0, CHARS_MAX);
    const display = DISPLAY_INLINE[0].exec(near) ?? DISPLAY_INLINE[1].exec(near);
    if (display) return token(display[0], display[1]!, { isDisplay: true });
    const round = ROUND.exec(near);
    if (round) return token(round[0], round[1]!, { isDisplay: false });
    const found = SINGLE.exec(near);
    if (!found || /\s\$$/.test(found[0]) || PRICE.test(found[1]!)) return undefined;
    return token(found[0], found[1]!, { isDisplay: false });
  },
};

const token = (raw: string, text: string, { isDisplay }: { isDisplay: boolean }): MathToken => ({
  type: "math",
  raw,
  text: text.trim(),
  isDisplay,
  isWhole: true,
});
