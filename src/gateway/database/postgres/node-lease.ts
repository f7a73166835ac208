/** A node's view of a lease that it holds or wants. */
import type { Lease } from "../peers.ts";
import type { Transaction } from "../store.ts";

export class NodeLease implements Lease {
  readonly holds: () => Transaction<boolean>;
  readonly #listeners: ((isHeld: boolean) => void)[] = [];
  #isHeld = false;
  #sureUntil = 0;

  constructor(holds: () => Transaction<boolean>) {
    this.holds = holds;
  }

  get isHeld(): boolean {
    return this.#isHeld && performance.now() < this.#sureUntil;
  }

  /**
   * Returns true if that changed.
   * @param sureUntil by `performance.now()`
   */
  become(isHeld: boolean, sureUntil: number): boolean {
    const was = this.#isHeld;
    this.#sureUntil = sureUntil;
    this.#isHeld = isHeld;
    if (was !== isHeld) for (const listener of this.#listeners) listener(isHeld);
    return was !== isHeld;
  }

  /** @param now by `performance.now()` */
  checkTime(now: number): void {
    if (this.#isHeld && now >= this.#sureUntil) this.become(false, 0);
  }

  onChange(listener: (isHeld: boolean) => void): void {
    this.#listeners.push(listener);
  }
}
