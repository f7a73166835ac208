/** OTLP over HTTP in JSON, the protocol of OpenTelemetry's collectors. */
import { isRecent } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Logger } from "./log.ts";

export type Attributes = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** The endpoint and the headers for a signal (traces, metrics). */
export interface OtlpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of this server: `service.name` and others. */
  readonly resource: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface OtlpOptions extends OtlpTarget {
  readonly log: Logger;
  readonly now: () => number;
}

/** `later`: a repeat may succeed. */
export type Posted = "taken" | "later" | "refused";

/** A lasting failure is logged once, at most this often. */
const WARN_MS = 60_000;
/** Retryable statuses; OTLP's specification, "Failures". */
const TEMPORARY = new Set([429, 502, 503, 504]);

/** A collector, for one signal. */
export class OtlpSender {
  readonly #signal: string;
  readonly #options: OtlpOptions;
  #isFailing = false;
  #warnedAt = -Infinity;

  /** @param signal displayed name of the data: `traces` */
  constructor(signal: string, options: OtlpOptions) {
    this.#signal = signal;
    this.#options = options;
  }

  /** @param body without the resource. @param lost the number of items dropped before, for the warning */
  async post(makeBody: (resource: object) => object, lost?: () => number): Promise<Posted> {
    const { url, headers, resource, timeoutMs } = this.#options;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(makeBody({ attributes: encodeAttributes(resource) })),
        redirect: "error", // the headers are meant for this server alone
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

/** As text: a JSON number has too few digits for it. */
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
