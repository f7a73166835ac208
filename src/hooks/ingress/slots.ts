/**
 * Places for things that may happen at once, shared among addresses: one address never takes more than its share, nor
 * more than it leaves to others. Those beyond are refused, never made to wait.
 */

export class Slots {
  readonly #max: number;
  readonly #share: number;
  readonly #takenBy = new Map<string, number>();
  #taken = 0;

  constructor({ max, share }: { max: number; share: number }) {
    this.#max = max;
    this.#share = share;
  }

  /** @param key of the address; @param refuse makes what is thrown where there is no place for it */
  async run<T>(key: string, work: () => Promise<T>, refuse: () => Error): Promise<T> {
    const own = this.#takenBy.get(key) ?? 0;
    if (own >= Math.min(this.#share, this.#max - this.#taken)) throw refuse();
    this.#take(key, 1);
    try {
      return await work();
    } finally {
      this.#take(key, -1);
    }
  }

  #take(key: string, change: 1 | -1): void {
    const own = (this.#takenBy.get(key) ?? 0) + change;
    if (own > 0) this.#takenBy.set(key, own);
    else this.#takenBy.delete(key);
    this.#taken += change;
  }
}
