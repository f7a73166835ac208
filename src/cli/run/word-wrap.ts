/**
 * Breaks streamed text at blanks so that no word is cut at the edge of the terminal. A word is shown as it comes; where
 * it turns out too long for its line it is taken back and begins the next one.
 */
export class WordWrap {
  readonly #width: number;
  #column = 0;
  #word = "";

  /** @param width columns; undefined: no wrapping */
  constructor(width: number | undefined) {
    this.#width = width === undefined ? Infinity : Math.max(10, width - 1);
  }

  /** What to write for a piece of text. */
  push(text: string): string {
    if (this.#width === Infinity) return text;
    let out = "";
    for (const { segment } of new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)) {
      out += this.#next(segment);
    }
    return out;
  }

  #next(char: string): string {
    if (char === "\n" || char === "\r\n") {
      this.#column = 0;
      this.#word = "";
      return char;
    }
    const width = Bun.stringWidth(char);
    if (/\s/.test(char)) {
      this.#word = "";
      if (this.#column + width > this.#width) return this.#newLine(""); // the break stands for the blank
      this.#column += width;
      return char;
    }
    const broken = this.#column + width > this.#width ? this.#moveWord() : "";
    this.#word += char;
    this.#column += width;
    return broken + char;
  }

  /** Takes the current word back and starts a line with it; a word as long as the line is cut. */
  #moveWord(): string {
    const width = Bun.stringWidth(this.#word);
    if (width === 0 || width >= this.#width / 2) return this.#newLine("");
    return `\x1b[${width}D\x1b[K${this.#newLine(this.#word)}`;
  }

  #newLine(word: string): string {
    this.#word = word;
    this.#column = Bun.stringWidth(word);
    return `\n${word}`;
  }
}
