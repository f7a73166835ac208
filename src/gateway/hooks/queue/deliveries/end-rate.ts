/** The rate at which runs end, used to compute `Retry-After` for a full queue: this node's rate, times the nodes. */

/** Maximum number of ends that are remembered; enough for any rate. */
const ENDS_MAX = 1024;
const WINDOW_MS = 60_000;
/** The answer if nothing ended recently. */
const UNKNOWN_MS = 60_000;
const WAIT_MAX_MS = 300_000;

export class EndRate {
  readonly #now: () => number;
  readonly #nodes: () => number;
  readonly #startedAt: number;
  #ends: { readonly at: number; readonly lane: string }[] = [];

  /** @param nodes number of nodes that share the queue */
  constructor(now: () => number, nodes: () => number = () => 1) {
    this.#now = now;
    this.#nodes = nodes;
    this.#startedAt = now();
  }

  ended(lane: string): void {
    if (this.#ends.length >= ENDS_MAX) this.#ends = this.#ends.slice(ENDS_MAX / 2);
    this.#ends.push({ at: this.#now(), lane });
  }

  /** Milliseconds until `count` runs have ended, of a lane or of all, at the rate of the last minute. */
  msUntil(count: number, lane?: string): number {
    const now = this.#now();
    const recent = this.#ends.filter(({ at }) => at > now - WINDOW_MS);
    const ended = lane === undefined ? recent.length : recent.filter((end) => end.lane === lane).length;
    if (ended === 0) return UNKNOWN_MS;
    const isCut = this.#ends.length >= ENDS_MAX / 2; // the window had more ends than are remembered
    const from = isCut ? recent[0]!.at : Math.max(this.#startedAt, now - WINDOW_MS);
    return Math.min(Math.ceil((count * Math.max(now - from, 1)) / (ended * this.#nodes())), WAIT_MAX_MS);
  }
}
