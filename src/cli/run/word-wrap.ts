/**
 * Wraps streamed text at blanks. A word is shown as it arrives; if it becomes too long for its line, it is erased and
 * written on the next one.
 */
import { joined, plain, sequences, type Drawing } from "../terminal/drawing.ts";

export class WordWrap {
  readonly #width: number;
  #column = 0;
  #word = plain("");

  /** @param width columns; undefined: no wrapping */
  constructor(width: number | undefined) {
    this.#width = width === undefined ? Infinity : Math.max(10, width - 1);
  }

  /** The output for a piece of text. */
  push(text: Drawing): Drawing {
    if (this.#width === Infinity) return text;
    const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text);
    return joined(Array.from(segments, ({ segment }) => this.#next(plain(segment))));
  }

  #next(char: Drawing): Drawing {
    if (char === "\n" || char === "\r\n") {
      this.#column = 0;
      this.#word = plain("");
      return char;
    }
    const width = Bun.stringWidth(char);
    if (/\s/.test(char)) {
      this.#word = plain("");
      if (this.#column + width > this.#width) return this.#newLine(plain("")); // the line break replaces the blank
      this.#column += width;
      return char;
    }
    const broken = this.#column + width > this.#width ? this.#moveWord() : plain("");
    this.#word = joined([this.#word, char]);
    this.#column += width;
    return joined([broken, char]);
  }

  /** Erases the current word and writes it on the next line; a word as long as the line is cut. */
  #moveWord(): Drawing {
    const width = Bun.stringWidth(this.#word);
    if (width === 0 || width >= this.#width / 2) return this.#newLine(plain(""));
    return joined([sequences.left(width), sequences.eraseToEnd, this.#newLine(this.#word)]);
  }

  #newLine(word: Drawing): Drawing {
    this.#word = word;
    this.#column = Bun.stringWidth(word);
    return joined([plain("\n"), word]);
  }
}
