/**
 * Exports metrics to an OpenTelemetry collector at intervals, as OTLP over HTTP in JSON. Sums are cumulative, so a
 * failed export is made up for by the next; no request ever waits for a collector.
 */
import { type OtlpOptions, OtlpSender } from "../../base/tracing.ts";
import type { Metrics } from "./metrics.ts";
import { otlpMetrics } from "./otlp-metrics.ts";

export interface MetricExporterOptions extends OtlpOptions {
  readonly intervalMs: number;
  readonly version: string;
  readonly gather: Metrics["gather"];
}

/** Owns a timer; `close` exports one last time. */
export class MetricExporter {
  readonly #options: MetricExporterOptions;
  readonly #sender: OtlpSender;
  readonly #startMs: number;
  readonly #timer: Timer;
  #sending: Promise<void> | undefined;

  constructor(options: MetricExporterOptions) {
    this.#options = options;
    this.#sender = new OtlpSender("metrics", options);
    this.#startMs = options.now();
    this.#timer = setInterval(() => this.#export(), options.intervalMs);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending;
    await this.#export();
  }

  /** One at a time: a slow collector gets fewer exports. */
  #export(): Promise<void> {
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
    return this.#sending;
  }

  async #send(): Promise<void> {
    const { gather, now, version } = this.#options;
    const gathered = await gather();
    const metrics = otlpMetrics(gathered, { startMs: this.#startMs, nowMs: now() });
    const scope = { name: "hearth", version };
    await this.#sender.post((resource) => ({ resourceMetrics: [{ resource, scopeMetrics: [{ scope, metrics }] }] }));
  }
}
