/**
 * What may be written to a terminal: text of others without its control characters, and the sequences of our own that
 * move the cursor or colour text. Models, registries and files are hostile: their text must not set a window's title,
 * fill the clipboard or hide what was written before.
 */
declare const brand: unique symbol;

/** Text that a terminal may get as it is. Only this module makes them. */
export type Drawing = string & { readonly [brand]: true };

/** Control characters (C0, DEL, C1) but for newline and tab, and marks that change the direction of a line. */
const CONTROLS = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu;
const REPLACEMENT = "\ufffd";

/** Makes text of others plain, in pieces as they come: a line may end in `\r` and `\n` of two pieces. */
export class PlainText {
  #hasReturn = false;

  push(text: string): Drawing {
    const held = this.#hasReturn ? `\r${text}` : text;
    this.#hasReturn = held.endsWith("\r");
    const whole = this.#hasReturn ? held.slice(0, -1) : held;
    return whole.replaceAll("\r\n", "\n").replace(CONTROLS, REPLACEMENT) as Drawing;
  }
}

/** As `PlainText`, of a text that is all there. */
export const plain = (text: string): Drawing => new PlainText().push(text);

/** Text of others as one line. */
export const plainLine = (text: string): Drawing => plain(text.replace(/\s+/g, " ").trim());

/** The sequences that the command line itself writes. */
export const sequences = {
  eraseToEnd: "\x1b[K" as Drawing,
  /** Erases the line that the cursor is in. */
  eraseLine: "\r\x1b[K" as Drawing,
  lineStart: "\r" as Drawing,
  reportPastes: "\x1b[?2004h" as Drawing,
  ignorePastes: "\x1b[?2004l" as Drawing,
  left: (columns: number): Drawing => `\x1b[${columns}D` as Drawing,
};

export const grey = (drawing: Drawing): Drawing => `\x1b[90m${drawing}\x1b[0m` as Drawing;

export const joined = (drawings: readonly Drawing[]): Drawing => drawings.join("") as Drawing;
