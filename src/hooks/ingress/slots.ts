/** A number of things that may happen at once; those beyond are refused, never made to wait. */

export class Slots {
  readonly #max: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** @param refuse makes what is thrown where all are taken */
  async run<T>(work: () => Promise<T>, refuse: () => Error): Promise<T> {
    if (this.#taken >= this.#max) throw refuse();
    this.#taken++;
    try {
      return await work();
    } finally {
      this.#taken--;
    }
  }
}
