/**
 * A runner process that is started in advance: a load then begins at once, instead of after the 0.1 s that a process
 * takes to start and to import its code. It has no model and does not count as one.
 */
import type { FromRunner } from "../../engine/index.ts";

/** A runner process without a model. */
export interface StartedRunner {
  readonly child: Bun.Subprocess;
  /** Sets the receiver of messages; the process sends none before. */
  listen(receive: (message: FromRunner) => void): void;
}

interface SpareOptions {
  readonly spawn: () => StartedRunner;
  /** Returns whether the machine is idle and has memory for another process. */
  readonly isIdle: () => boolean;
  /** Delay from a load to the next start, if the machine is idle; otherwise the delay to the next check. */
  readonly delayMs: number;
}

/** Owns the waiting runner, if any; `close` ends it. */
export class SpareRunner {
  readonly #options: SpareOptions;
  #waiting: StartedRunner | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: SpareOptions) {
    this.#options = options;
  }

  /** The waiting runner, or a new one; the caller owns it. */
  take(): StartedRunner {
    const taken = this.#waiting;
    this.#waiting = undefined;
    return taken && isRunning(taken.child) ? taken : this.#options.spawn();
  }

  /** Schedules a start for when the machine is idle. Another call restarts the wait. */
  prepare(): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      if (this.#waiting && isRunning(this.#waiting.child)) return;
      if (this.#options.isIdle()) this.#waiting = this.#options.spawn();
      else this.prepare();
    }, this.#options.delayMs);
    this.#timer.unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting?.child.kill("SIGKILL");
    this.#waiting = undefined;
  }
}

const isRunning = ({ exitCode, signalCode }: Bun.Subprocess): boolean => exitCode === null && signalCode === null;
