/** Bits of a packet, the highest of each byte first. */
export class Bits {
  readonly #bytes: Uint8Array;
  /** Bits that were read. */
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** The next 1 to 25 bits, with zeros after the last, and stays in front of them. */
  peek(count: number): number {
    const byte = this.at >> 3;
    const word =
      ((this.#bytes[byte] ?? 0) << 24) |
      ((this.#bytes[byte + 1] ?? 0) << 16) |
      ((this.#bytes[byte + 2] ?? 0) << 8) |
      (this.#bytes[byte + 3] ?? 0);
    return (word << (this.at & 7)) >>> (32 - count);
  }

  /** The next 1 to 25 bits. Throws if the packet ends before. */
  read(count: number): number {
    const value = this.peek(count);
    this.skip(count);
    return value;
  }

  flag(): boolean {
    return this.read(1) === 1;
  }

  /** Throws if the packet ends before. */
  skip(count: number): void {
    this.at += count;
    if (this.at > 8 * this.#bytes.length) throw new Error("the packet is cut off");
  }

  /** Skips to the beginning of a byte. */
  align(): void {
    this.at = (this.at + 7) & ~7;
  }
}
