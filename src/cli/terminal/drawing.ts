/**
 * Output that is safe for a terminal: outside text without its control characters, and our own sequences that move the
 * cursor or colour text. Models, registries and files are hostile: their text must not set a window's title, fill the
 * clipboard or overwrite earlier output.
 */
declare const brand: unique symbol;

/** Text that is safe for a terminal. Only this module makes it. */
export type Drawing = string & { readonly [brand]: true };

/** Control characters (C0, DEL, C1) except newline and tab, and marks that change the direction of a line. */
const CONTROLS = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu;
const REPLACEMENT = "\ufffd";

/**
 * Makes outside text plain, in pieces as they arrive: a line ending of `\r` and `\n` may be split between two pieces.
 */
export class PlainText {
  #hasReturn = false;

  push(text: string): Drawing {
    const held = this.#hasReturn ? `\r${text}` : text;
    this.#hasReturn = held.endsWith("\r");
    const whole = this.#hasReturn ? held.slice(0, -1) : held;
    return whole.replaceAll("\r\n", "\n").replace(CONTROLS, REPLACEMENT) as Drawing;
  }
}

/** Makes a complete text plain. */
export const plain = (text: string): Drawing => new PlainText().push(text);

/** Outside text as one line. */
export const plainLine = (text: string): Drawing => plain(text.replace(/\s+/g, " ").trim());

/** The control sequences that the command line writes. */
export const sequences = {
  eraseToEnd: "\x1b[K" as Drawing,
  eraseLine: "\r\x1b[K" as Drawing,
  lineStart: "\r" as Drawing,
  reportPastes: "\x1b[?2004h" as Drawing,
  ignorePastes: "\x1b[?2004l" as Drawing,
  left: (columns: number): Drawing => `\x1b[${columns}D` as Drawing,
};

export const grey = (drawing: Drawing): Drawing => `\x1b[90m${drawing}\x1b[0m` as Drawing;

export const joined = (drawings: readonly Drawing[]): Drawing => drawings.join("") as Drawing;
