/**
 * A runner process that is started ahead and waits for a model: a load then begins at once, instead of after the tenth
 * of a second that a process takes to start and to import its code. It has no model, and is counted as none.
 */
import type { FromRunner } from "../engine/index.ts";

/** A runner process without a model. */
export interface StartedRunner {
  readonly child: Bun.Subprocess;
  /** Says who hears it; before, it says nothing. */
  listen(receive: (message: FromRunner) => void): void;
}

interface SpareOptions {
  readonly spawn: () => StartedRunner;
  /** Whether nobody waits for this machine, and it has room. */
  readonly isIdle: () => boolean;
  /** How long after a load the next is started, where the machine is idle; else it looks again after as long. */
  readonly delayMs: number;
}

/** Owns the runner that waits, if any; `close` ends it. */
export class SpareRunner {
  readonly #options: SpareOptions;
  #waiting: StartedRunner | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: SpareOptions) {
    this.#options = options;
  }

  /** The runner that waits, else a new one. It is the caller's from here on. */
  take(): StartedRunner {
    const taken = this.#waiting;
    this.#waiting = undefined;
    return taken && isRunning(taken.child) ? taken : this.#options.spawn();
  }

  /** Has one started once the machine is idle. Called again, it begins to wait anew. */
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
