/**
 * Limits concurrent work, or bytes in memory, with a share per address: one address never takes more than its share,
 * nor more than the capacity that remains for others. Work beyond the limit is refused, not queued.
 */

export class ShareLimit {
  readonly #max: number;
  readonly #share: number;
  readonly #takenBy = new Map<string, number>();
  #taken = 0;

  constructor({ max, share }: { max: number; share: number }) {
    this.#max = max;
    this.#share = share;
  }

  /**
   * @param key of the address
   * @param refuse makes the error thrown if there is no slot
   */
  async run<T>(key: string, work: () => Promise<T>, refuse: () => Error): Promise<T> {
    if (!this.take(key, 1)) throw refuse();
    try {
      return await work();
    } finally {
      this.give(key, 1);
    }
  }

  /** True if there was enough; the address holds it until it returns it. */
  take(key: string, count: number): boolean {
    const own = (this.#takenBy.get(key) ?? 0) + count;
    if (own > Math.min(this.#share, this.#max - this.#taken)) return false;
    this.#takenBy.set(key, own);
    this.#taken += count;
    return true;
  }

  give(key: string, count: number): void {
    const own = (this.#takenBy.get(key) ?? 0) - count;
    if (own > 0) this.#takenBy.set(key, own);
    else this.#takenBy.delete(key);
    this.#taken -= count;
  }
}
