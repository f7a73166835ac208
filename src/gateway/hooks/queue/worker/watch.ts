/**
 * Live news of runs: the status at every change, and the answer's text as it is generated. Kept in memory only: a late
 * watcher starts with the current status.
 */
import type { RunStatus } from "../deliveries/run-status.ts";
import { isFinal } from "../deliveries/state.ts";

export type RunNews =
  { readonly kind: "status"; readonly status: RunStatus } | { readonly kind: "text"; readonly text: string };

/** True if only a callback can still change. */
export const isOver = (status: RunStatus): boolean => isFinal(status.state) && status.reply !== "pending";

interface Watcher {
  /** Text since the last read, joined: a slow reader costs no more than the answer. */
  text: string;
  changed: boolean;
  wake: () => void;
}

export class RunWatchers {
  readonly #byRun = new Map<string, Set<Watcher>>();

  /** Announces that a run's row changed. */
  changed(runId: string): void {
    for (const watcher of this.#byRun.get(runId) ?? []) {
      watcher.changed = true;
      watcher.wake();
    }
  }

  has(runId: string): boolean {
    return this.#byRun.has(runId);
  }

  /** Announces that any row may have changed. */
  allChanged(): void {
    for (const runId of this.#byRun.keys()) this.changed(runId);
  }

  text(runId: string, text: string): void {
    for (const watcher of this.#byRun.get(runId) ?? []) {
      watcher.text += text;
      watcher.wake();
    }
  }

  /**
   * A run's status, then its news until it is over or the signal aborts; never the same status twice in a row. Yields
   * nothing if there is no such run.
   */
  async *watch(
    runId: string,
    find: () => Promise<RunStatus | undefined>,
    signal?: AbortSignal,
  ): AsyncGenerator<RunNews> {
    const watcher: Watcher = { text: "", changed: true, wake: () => {} };
    const all = this.#byRun.get(runId) ?? new Set();
    this.#byRun.set(runId, all.add(watcher));
    const wake = (): void => watcher.wake();
    signal?.addEventListener("abort", wake);
    let lastSent = "";
    try {
      while (!signal?.aborted) {
        if (watcher.text !== "") yield { kind: "text", text: takeText(watcher) };
        if (watcher.changed) {
          watcher.changed = false;
          const status = await find();
          if (!status) return;
          if (watcher.text !== "") yield { kind: "text", text: takeText(watcher) }; // the text preceded the status
          const standing = JSON.stringify(status);
          if (standing !== lastSent) yield { kind: "status", status };
          lastSent = standing;
          if (isOver(status)) return;
        }
        await news(watcher, signal);
      }
    } finally {
      signal?.removeEventListener("abort", wake);
      all.delete(watcher);
      if (all.size === 0) this.#byRun.delete(runId);
    }
  }
}

function takeText(watcher: Watcher): string {
  const { text } = watcher;
  watcher.text = "";
  return text;
}

function news(watcher: Watcher, signal: AbortSignal | undefined): Promise<void> {
  if (watcher.changed || watcher.text !== "" || signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => (watcher.wake = resolve));
}
