/**
 * Whether turns find a model that takes them. While the server at `models.url` is away or full, runs wait and lose none
 * of their attempts, longer the longer it lasts; the log tells of it twice, when it begins and when it is over.
 */
import type { Logger } from "../../base/log.ts";
import type { TurnResult } from "../../agent/turn.ts";

const SHORTEST_MS = 1000;
const LONGEST_MS = 60_000;
/** The longest wait that a server may ask for. */
const ASKED_MAX_MS = 300_000;

export class ModelOutage {
  readonly #log: Logger;
  #sinceMs: number | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Notes how a turn ended. */
  note(result: TurnResult, nowMs: number): void {
    if (result.isUntried) {
      if (this.#sinceMs === undefined)
        this.#log.warn("hooks: no model takes turns; they wait", {
          reason: result.error,
        });
      this.#sinceMs ??= nowMs;
    } else if (this.#sinceMs !== undefined && result.status === "ok") {
      this.#log.info("hooks: models take turns again", {
        seconds: Math.round((nowMs - this.#sinceMs) / 1000),
      });
      this.#sinceMs = undefined;
    }
  }

  /**
   * Milliseconds that a run waits whose turn no model took: half of what the outage has lasted, of which a random half
   * is taken off, or what the server asked for.
   * @param random from 0 up to 1
   */
  delayMs({ retryAfterMs = 0 }: TurnResult, { nowMs, random }: { nowMs: number; random: number }): number {
    const lastedMs = nowMs - (this.#sinceMs ?? nowMs);
    const full = Math.max(SHORTEST_MS, Math.min(LONGEST_MS, lastedMs / 2));
    return Math.max(Math.ceil(Math.min(retryAfterMs, ASKED_MAX_MS)), Math.round(full * (0.5 + random / 2)));
  }
}
