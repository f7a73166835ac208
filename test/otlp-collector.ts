/** The used part of an OpenTelemetry collector: OTLP over HTTP, in JSON, on loopback. */
import { afterTest } from "./cleanups.ts";

export interface Collector {
  readonly url: string;
  /** Spans and metrics of accepted requests, in order of arrival. */
  readonly spans: any[];
  readonly metrics: any[];
  readonly requests: { readonly path: string; readonly headers: Headers; readonly body: any }[];
  /** Status of the next answers. */
  status: number;
  stop(): Promise<void>;
}

/** Stops after the test at the latest. */
export function startCollector(): Collector {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body: any = await request.json();
      collector.requests.push({ path: new URL(request.url).pathname, headers: request.headers, body });
      const { status } = collector;
      if (status === 200) {
        for (const { scopeSpans } of body.resourceSpans ?? []) collector.spans.push(...scopeSpans[0].spans);
        for (const { scopeMetrics } of body.resourceMetrics ?? []) collector.metrics.push(...scopeMetrics[0].metrics);
      }
      return Response.json({}, { status });
    },
  });
  const collector: Collector = {
    url: `http://127.0.0.1:${server.port}`,
    spans: [],
    metrics: [],
    requests: [],
    status: 200,
    stop: () => server.stop(true),
  };
  afterTest(collector.stop);
  return collector;
}
