/** OTLP over HTTP in JSON: what OpenTelemetry's collectors take. */
import { isRecent } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Logger } from "./log.ts";

export type Attributes = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Where a signal (traces, metrics) is posted to, and as whose. */
export interface OtlpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Of this server: `service.name` and others. */
  readonly resource: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface OtlpOptions extends OtlpTarget {
  readonly log: Logger;
  readonly now: () => number;
}

/** `later`: another try may succeed. */
export type Posted = "taken" | "later" | "refused";

/** Failures to send are told once while they last, and at most so often. */
const WARN_MS = 60_000;
/** Statuses that another try may not meet again; OTLP's specification, "Failures". */
const TEMPORARY = new Set([429, 502, 503, 504]);

/** A collector, for one signal. */
export class OtlpSender {
  readonly #signal: string;
  readonly #options: OtlpOptions;
  #isFailing = false;
  #warnedAt = -Infinity;

  /** @param signal what is sent, for people: `traces` */
  constructor(signal: string, options: OtlpOptions) {
    this.#signal = signal;
    this.#options = options;
  }

  /** @param body without the resource. @param lost how much was left out before, for the warning */
  async post(makeBody: (resource: object) => object, lost?: () => number): Promise<Posted> {
    const { url, headers, resource, timeoutMs } = this.#options;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(makeBody({ attributes: encodeAttributes(resource) })),
        redirect: "error", // the headers are for this server alone
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      if (response.ok) {
        this.#isFailing = false;
        return "taken";
      }
      this.#failed(`answered ${response.status}`, lost);
      return TEMPORARY.has(response.status) ? "later" : "refused";
    } catch (error) {
      this.#failed(messageOf(error), lost);
      return "later";
    }
  }

  #failed(why: string, lost?: () => number): void {
    const { log, url, now } = this.#options;
    const isNews = !this.#isFailing && !isRecent(this.#warnedAt, now(), WARN_MS);
    this.#isFailing = true;
    if (!isNews) return;
    this.#warnedAt = now();
    log.warn(`${this.#signal} cannot be sent`, { url, why, ...(lost && { lost: lost() }) });
  }
}

/** As text: JSON's numbers are too short for it. */
export const nanoseconds = (ms: number): string => `${BigInt(Math.round(ms * 1000))}000`;

export function encodeAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: encodeValue(value) }],
  );
}

function encodeValue(value: string | number | readonly string[]): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "object") return { arrayValue: { values: value.map(encodeValue) } };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
