/**
 * Traces for OpenTelemetry: spans are gathered, and sent in batches as OTLP over HTTP in JSON. What cannot be sent is
 * tried again while there is room for it, and then left out: no request ever waits for a collector.
 */
import { randomBytes } from "node:crypto";
import { messageOf } from "./errors.ts";
import type { Logger } from "./log.ts";
import { newSpanId, type Trace } from "./traceparent.ts";

export type Attributes = Readonly<Record<string, string | number | readonly string[] | undefined>>;

const KINDS = { internal: 1, server: 2, client: 3 } as const;
/** `STATUS_CODE_ERROR` of OTLP. */
const FAILED = 2;
/** Failures to send are told at most so often. */
const WARN_MS = 60_000;
/** Statuses that another try may not meet again; OTLP's specification, "Failures". */
const TEMPORARY = new Set([429, 502, 503, 504]);

/** A span that has begun. */
export interface Span {
  /** Where its children belong. */
  readonly trace: Trace;
  readonly parentId: string | undefined;
  readonly startMs: number;
}

export interface SpanEnd {
  readonly name: string;
  readonly kind: keyof typeof KINDS;
  readonly attributes: Attributes;
  /** Where it failed: why. */
  readonly error?: string | undefined;
}

export interface TracerOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  readonly sampling: { readonly share: number; readonly isParentBased: boolean };
  readonly timeoutMs: number;
  readonly delayMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
  readonly version: string;
  readonly log: Logger;
  readonly now: () => number;
}

/** Owns a timer while spans wait; `close` sends what is left. */
export class Tracer {
  readonly #options: TracerOptions;
  #queue: object[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #warnedAt = -Infinity;
  #lost = 0;

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  /** @param parent undefined: a trace begins. @param startMs epoch milliseconds; undefined: now */
  begin(parent: Trace | undefined, startMs: number = this.#options.now()): Span {
    const traceId = parent?.traceId ?? randomBytes(16).toString("hex");
    const flags = this.#isRecorded(parent, traceId) ? "01" : "00";
    return { trace: { traceId, parentId: newSpanId(), flags }, parentId: parent?.parentId, startMs };
  }

  end({ trace, parentId, startMs }: Span, { name, kind, attributes, error }: SpanEnd): void {
    if (trace.flags !== "01") return;
    if (this.#queue.length >= this.#options.queueMax) return void this.#lost++;
    this.#queue.push({
      traceId: trace.traceId,
      spanId: trace.parentId,
      ...(parentId === undefined ? {} : { parentSpanId: parentId }),
      name,
      kind: KINDS[kind],
      startTimeUnixNano: nanoseconds(startMs),
      endTimeUnixNano: nanoseconds(this.#options.now()),
      attributes: encodeAttributes(attributes),
      status: error === undefined ? {} : { code: FAILED, message: error },
    });
    if (this.#queue.length >= this.#options.batchMax) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), this.#options.delayMs);
  }

  /** Sends what is left, once. */
  async close(): Promise<void> {
    await this.#sending;
    clearTimeout(this.#timer);
    while (this.#queue.length > 0) if (!(await this.#post(this.#queue.splice(0, this.#options.batchMax)))) return;
  }

  #isRecorded(parent: Trace | undefined, traceId: string): boolean {
    const { share, isParentBased } = this.#options.sampling;
    if (parent && isParentBased) return (Number.parseInt(parent.flags, 16) & 1) === 1;
    return Number.parseInt(traceId.slice(-14), 16) < share * 2 ** 56; // the same answer wherever it is asked
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#options.batchMax);
      if (await this.#post(batch)) continue;
      const room = Math.max(0, this.#options.queueMax - this.#queue.length);
      this.#lost += Math.max(0, batch.length - room);
      this.#queue.unshift(...batch.slice(0, room));
      this.#timer ??= setTimeout(() => this.#send(), this.#options.delayMs);
      return;
    }
  }

  /** False where another try may succeed. */
  async #post(spans: readonly object[]): Promise<boolean> {
    const { url, headers, resource, version, timeoutMs } = this.#options;
    const scopeSpans = [{ scope: { name: "hearth", version }, spans }];
    const attributes = encodeAttributes({ "service.version": version, ...resource });
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans }] }),
        redirect: "error", // the headers are for this server alone
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      if (response.ok) return true;
      this.#warn(`answered ${response.status}`);
      if (TEMPORARY.has(response.status)) return false;
      this.#lost += spans.length;
      return true;
    } catch (error) {
      this.#warn(messageOf(error));
      return false;
    }
  }

  #warn(why: string): void {
    const nowMs = this.#options.now();
    if (nowMs - this.#warnedAt < WARN_MS) return;
    this.#warnedAt = nowMs;
    this.#options.log.warn("traces cannot be sent", { url: this.#options.url, why, lost: this.#lost });
  }
}

/** As text: JSON's numbers are too short for it. */
const nanoseconds = (ms: number): string => `${BigInt(Math.round(ms * 1000))}000`;

function encodeAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: encodeValue(value) }],
  );
}

function encodeValue(value: string | number | readonly string[]): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "object") return { arrayValue: { values: value.map(encodeValue) } };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
