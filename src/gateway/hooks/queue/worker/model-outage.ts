/**
 * Tracks outages of models. While the server at `models.url` is down or busy, or a model is missing, runs wait without
 * losing attempts, and longer with the duration of the outage; the log has a line at the start and one at the end.
 */
import { canonical } from "../../../agent/models.ts";
import { type Logger, secondsBetween } from "../../../../base/index.ts";
import type { TurnResult } from "../../../agent/turn.ts";

const SHORTEST_MS = 1000;
const LONGEST_MS = 60_000;
/** The longest delay that a server may request. */
const ASKED_MAX_MS = 300_000;
/** Maximum number of missing models that are remembered. */
const MODELS_MAX = 100;
/** Stands for the model server; not a possible model name. */
const SERVER = "";

export class ModelOutage {
  readonly #log: Logger;
  /** Start of each outage, by the name of the missing model, or `SERVER`. */
  readonly #since = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Records the outcome of a turn. */
  note(result: TurnResult, nowMs: number): void {
    if (result.isUntried) return this.#begin(result, nowMs);
    if (result.status !== "ok") return;
    for (const key of [SERVER, nameOf(result)]) {
      const since = this.#since.get(key);
      if (since === undefined) continue;
      this.#since.delete(key);
      const about = { seconds: secondsBetween(since, nowMs), ...(key === SERVER ? {} : { model: result.model }) };
      this.#log.info("hooks: the model is back: turns continue", about);
    }
  }

  #begin(result: TurnResult, nowMs: number): void {
    const key = keyOf(result);
    if (this.#since.has(key)) return;
    if (this.#since.size >= MODELS_MAX) this.#since.delete(this.#since.keys().next().value!); // not empty
    this.#since.set(key, nowMs);
    this.#log.warn("hooks: the model is unavailable: turns wait", { reason: result.error });
  }

  /**
   * Delay for a run for which no model is available: half of the outage's duration, minus a random half, or the time
   * that the server asked for.
   * @param random from 0 up to 1
   */
  delayMs(result: TurnResult, { nowMs, random }: { nowMs: number; random: number }): number {
    const lastedMs = nowMs - (this.#since.get(keyOf(result)) ?? nowMs);
    const full = Math.max(SHORTEST_MS, Math.min(LONGEST_MS, lastedMs / 2));
    const askedMs = Math.min(result.retryAfterMs ?? 0, ASKED_MAX_MS);
    return Math.max(Math.ceil(askedMs), Math.round(full * (0.5 + random / 2)));
  }
}

const nameOf = ({ model = SERVER }: TurnResult): string => canonical(model) ?? model;

const keyOf = (result: TurnResult): string => (result.isModelMissing ? nameOf(result) : SERVER);
