/** Work that is tried again and again: a log tells a problem once while it lasts, and when it is over. */
import { type Logger, messageOf } from "../../base/index.ts";

export class Trouble {
  readonly #what: string;
  /** The last one; undefined: there is none. */
  #problem: string | undefined;

  /** @param what cannot be done, for the log */
  constructor(what: string) {
    this.#what = what;
  }

  /** A try failed. */
  met(error: unknown, log: Logger): void {
    const problem = messageOf(error);
    if (problem !== this.#problem) log.error(this.#what, { error: problem });
    this.#problem = problem;
  }

  /** A try succeeded. */
  over(log: Logger): void {
    if (this.#problem !== undefined) log.info(`no longer: ${this.#what}`);
    this.#problem = undefined;
  }
}
