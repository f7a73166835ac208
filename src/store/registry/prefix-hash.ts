/**
 * The digest of a blob that arrives in parts: follows the gapless start of the file while the rest still comes in, so
 * that little is left to hash when the last byte is there.
 */
import { parseDigest, type Digest } from "../digest.ts";

const PIECE_BYTES = 1024 * 1024; // under a millisecond of hashing: other work runs between the pieces

export interface PrefixSource {
  /** Bytes from the start without a gap. */
  readonly prefix: number;
  read(buffer: Uint8Array, offset: number): Promise<void>;
}

export class PrefixHash {
  readonly #source: PrefixSource;
  readonly #hasher = new Bun.CryptoHasher("sha256");
  readonly #buffer = new Uint8Array(PIECE_BYTES);
  #hashed = 0;
  #run: Promise<void> | undefined;
  #failure: { error: unknown } | undefined;
  #hasStopped = false;

  constructor(source: PrefixSource) {
    this.#source = source;
  }

  /** More of the start is there. */
  advance(): void {
    if (this.#failure || this.#hasStopped) return;
    this.#run ??= this.#follow()
      .catch((error: unknown) => void (this.#failure = { error }))
      .finally(() => void (this.#run = undefined));
  }

  /** The digest of the first `size` bytes, all of which are there. Throws what reading throws. */
  async finish(size: number): Promise<Digest> {
    while (this.#hashed < size && !this.#failure && !this.#hasStopped) {
      this.advance();
      await this.#run;
    }
    if (this.#failure) throw this.#failure.error;
    return parseDigest(`sha256:${this.#hasher.digest("hex")}`);
  }

  /** Nothing is read any more once this returns. */
  async stop(): Promise<void> {
    this.#hasStopped = true;
    await this.#run;
  }

  async #follow(): Promise<void> {
    for (let left = this.#left(); left > 0 && !this.#hasStopped; left = this.#left()) {
      const piece = this.#buffer.subarray(0, Math.min(left, PIECE_BYTES));
      await this.#source.read(piece, this.#hashed);
      this.#hasher.update(piece);
      this.#hashed += piece.length;
    }
  }

  #left(): number {
    return this.#source.prefix - this.#hashed;
  }
}
