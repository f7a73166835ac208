/** Reads Huffman codes whose words of one length are consecutive numbers. */
import type { Bits } from "./bits.ts";
import type { CodeTable } from "./tables.ts";

const WORD_BITS_MAX = 19;

export class HuffmanCode {
  readonly #symbols: readonly number[];
  /** By length: the first number of 19 bits that begins with no word of this or a smaller length. */
  readonly #ends: readonly number[];
  /** By length: the index of a symbol less the number that its word is. */
  readonly #shifts: readonly number[];

  constructor({ counts, symbols }: CodeTable) {
    const [ends, shifts]: [number[], number[]] = [[0], [0]];
    let [word, index] = [0, 0];
    for (const [i, count] of counts.entries()) {
      word *= 2;
      shifts.push(index - word);
      word += count;
      index += count;
      ends.push(word << (WORD_BITS_MAX - 1 - i));
    }
    this.#symbols = symbols;
    this.#ends = ends;
    this.#shifts = shifts;
  }

  /** Throws if the packet ends before. */
  read(bits: Bits): number {
    const next = bits.peek(WORD_BITS_MAX);
    let length = 1;
    while (next >= this.#ends[length]!) length++; // the last end is beyond all numbers
    bits.skip(length);
    return this.#symbols[(next >> (WORD_BITS_MAX - length)) + this.#shifts[length]!]!; // inside, as codes are complete
  }
}
