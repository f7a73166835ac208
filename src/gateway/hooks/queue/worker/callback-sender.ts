/**
 * Sends due callbacks, a few at once, from one node. Each is repeated, with the same id, until it arrives or is given
 * up.
 */
import { type Logger, messageOf } from "../../../../base/index.ts";
import type { Lease } from "../../../database/peers.ts";
import type { Store } from "../../../database/store.ts";
import { sendCallback, type CallbackOutcome } from "../callback.ts";
import {
  dueCallbacks,
  nextCallbackAt,
  settleCallback,
  type CallbackState,
  type DueCallback,
} from "./callback-queue.ts";

const AT_ONCE = 4;

export interface CallbackSettings {
  /** `whsec_…`; undefined: not signed. */
  readonly secret: string | undefined;
  readonly allowPrivate: boolean;
}

export interface CallbackSenderDeps {
  readonly store: Store;
  readonly lease: Lease;
  readonly settings: () => CallbackSettings;
  readonly log: Logger;
  readonly now: () => number;
  readonly random: () => number;
  /** Called after every attempt. */
  readonly onTried: (outcome: CallbackOutcome["kind"]) => void;
  readonly onSettled: (runId: string) => void;
}

export class CallbackSender {
  readonly #deps: CallbackSenderDeps;
  readonly #stopped = new AbortController();
  readonly #underway = new Map<string, Promise<void>>();

  constructor(deps: CallbackSenderDeps) {
    this.#deps = deps;
  }

  /** Due time of the next callback that is not under way. */
  async nextAt(): Promise<number | undefined> {
    if (!this.#deps.lease.isHeld) return undefined;
    // each finished callback triggers the next look
    return this.#underway.size > 0 ? undefined : this.#deps.store.read(nextCallbackAt);
  }

  /** Starts due callbacks without waiting for them. */
  async send(): Promise<void> {
    const { store, lease, now } = this.#deps;
    if (!lease.isHeld) return;
    const before = new Set(this.#underway.keys()); // a callback that ends during the read is no longer due
    const due = await store.read(() => dueCallbacks({ now: now(), limit: 2 * AT_ONCE }));
    if (this.#stopped.signal.aborted) return;
    for (const callback of due.filter(({ runId }) => !before.has(runId))) {
      if (this.#underway.size >= AT_ONCE) return;
      this.#underway.set(callback.runId, this.#send(callback));
    }
  }

  /** Aborts callbacks under way, which stay due for the next process. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#underway.values());
  }

  async #send(callback: DueCallback): Promise<void> {
    const { store, settings, now, random, onTried, log, onSettled } = this.#deps;
    const { signal } = this.#stopped;
    try {
      const outcome = await sendCallback({ ...settings(), ...callback, id: callback.runId, nowMs: now(), signal });
      if (signal.aborted && outcome.kind !== "sent") return;
      const state = await store.write(() => settleCallback(callback, { outcome, now: now(), random }));
      onTried(outcome.kind);
      this.#note(callback, { outcome, state });
    } catch (error) {
      log.error("hooks: storing a callback's outcome failed", { runId: callback.runId, error: messageOf(error) });
      await Bun.sleep(1000);
    } finally {
      this.#underway.delete(callback.runId);
      onSettled(callback.runId);
    }
  }

  /** Logs the first failure and the end of an outage, and counts the failures in between. */
  #note(
    { runId, attempts }: DueCallback,
    { outcome, state }: { outcome: CallbackOutcome; state: CallbackState },
  ): void {
    const { log } = this.#deps;
    if (outcome.kind === "sent") {
      if (attempts > 0) log.info("hooks: a callback arrived after a retry", { runId, attempts: attempts + 1 });
    } else if (state === "failed") {
      log.warn("hooks: a callback failed for the last time and will not be retried", {
        runId,
        attempts: attempts + 1,
        reason: outcome.reason,
      });
    } else if (attempts === 0) {
      log.warn("hooks: a callback failed; it will be retried", { runId, reason: outcome.reason });
    }
  }
}
