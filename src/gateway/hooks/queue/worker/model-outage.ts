/**
 * Whether turns find a model that takes them. While the server at `models.url` is away or full, or a model is not
 * there, runs wait and lose none of their attempts, longer the longer it lasts; the log tells of it twice, when it
 * begins and when it is over.
 */
import { canonical } from "../../../agent/models.ts";
import type { Logger } from "../../../../base/index.ts";
import type { TurnResult } from "../../../agent/turn.ts";

const SHORTEST_MS = 1000;
const LONGEST_MS = 60_000;
/** The longest wait that a server may ask for. */
const ASKED_MAX_MS = 300_000;
/** Missing models that are remembered. */
const MODELS_MAX = 100;
/** Stands for the server of the models; no model is called so. */
const SERVER = "";

export class ModelOutage {
  readonly #log: Logger;
  /** When each outage began, by the name of the model that is missing, or `SERVER`. */
  readonly #since = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Notes how a turn ended. */
  note(result: TurnResult, nowMs: number): void {
    if (result.isUntried) return this.#begin(result, nowMs);
    if (result.status !== "ok") return;
    for (const key of [SERVER, nameOf(result)]) {
      const since = this.#since.get(key);
      if (since === undefined) continue;
      this.#since.delete(key);
      const about = { seconds: Math.round((nowMs - since) / 1000), ...(key === SERVER ? {} : { model: result.model }) };
      this.#log.info("hooks: models take turns again", about);
    }
  }

  #begin(result: TurnResult, nowMs: number): void {
    const key = keyOf(result);
    if (this.#since.has(key)) return;
    if (this.#since.size >= MODELS_MAX) this.#since.delete(this.#since.keys().next().value!); // not empty
    this.#since.set(key, nowMs);
    this.#log.warn("hooks: no model takes turns; they wait", { reason: result.error });
  }

  /**
   * Milliseconds that a run waits whose turn no model took: half of what the outage has lasted, of which a random half
   * is taken off, or what the server asked for.
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
