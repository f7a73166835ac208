/** Logs a problem of repeated work once while it lasts, and once when it is over. */
import { type Logger, messageOf } from "../../base/index.ts";

export class FailureLog {
  readonly #what: string;
  /** The current problem; undefined: none. */
  #problem: string | undefined;

  /** @param what names the failing work in the log */
  constructor(what: string) {
    this.#what = what;
  }

  /** Records a failed try. */
  failed(error: unknown, log: Logger): void {
    const problem = messageOf(error);
    if (problem !== this.#problem) log.error(this.#what, { error: problem });
    this.#problem = problem;
  }

  /** Records a successful try. */
  succeeded(log: Logger): void {
    if (this.#problem !== undefined) log.info(`recovered: ${this.#what}`);
    this.#problem = undefined;
  }
}
