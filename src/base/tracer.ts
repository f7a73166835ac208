/**
 * Traces for OpenTelemetry: collects spans and sends them in batches as OTLP over HTTP in JSON. Failed batches are
 * retried while the queue has room and then dropped: no request ever waits for a collector.
 */
import { randomBytes } from "node:crypto";
import { encodeAttributes, nanoseconds, OtlpSender, type Attributes, type OtlpOptions } from "./otlp.ts";
import { newSpanId, type Trace } from "./traceparent.ts";

const KINDS = { internal: 1, server: 2, client: 3 } as const;
/** `STATUS_CODE_ERROR` of OTLP. */
const FAILED = 2;

export interface Span {
  /** The parent for its children. */
  readonly trace: Trace;
  readonly parentId: string | undefined;
  readonly startMs: number;
}

export interface SpanEnd {
  readonly name: string;
  readonly kind: keyof typeof KINDS;
  readonly attributes: Attributes;
  readonly error?: string | undefined;
}

export interface TracerOptions extends OtlpOptions {
  readonly sampling: { readonly share: number; readonly isParentBased: boolean };
  readonly delayMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
  readonly version: string;
}

/** Owns a timer while spans wait; `close` sends the rest. */
export class Tracer {
  readonly #options: TracerOptions;
  readonly #sender: OtlpSender;
  #queue: object[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #lost = 0;

  constructor(options: TracerOptions) {
    this.#options = options;
    this.#sender = new OtlpSender("traces", options);
  }

  /** @param parent undefined: a new trace. @param startMs epoch milliseconds; undefined: now */
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

  /** Sends the remaining spans, once. */
  async close(): Promise<void> {
    await this.#sending;
    clearTimeout(this.#timer);
    while (this.#queue.length > 0) if (!(await this.#post(this.#queue.splice(0, this.#options.batchMax)))) return;
  }

  #isRecorded(parent: Trace | undefined, traceId: string): boolean {
    const { share, isParentBased } = this.#options.sampling;
    if (parent && isParentBased) return (Number.parseInt(parent.flags, 16) & 1) === 1;
    // Every process makes the same decision for a trace
    return Number.parseInt(traceId.slice(-14), 16) < share * 2 ** 56;
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

  /** False if a repeat may succeed. */
  async #post(spans: readonly object[]): Promise<boolean> {
    const scope = { name: "hearth", version: this.#options.version };
    const posted = await this.#sender.post(
      (resource) => ({ resourceSpans: [{ resource, scopeSpans: [{ scope, spans }] }] }),
      () => this.#lost,
    );
    if (posted === "refused") this.#lost += spans.length;
    return posted !== "later";
  }
}
