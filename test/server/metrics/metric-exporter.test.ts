/** Metrics in a collector: the same as `/metrics`, at the right times. */
import { expect, test } from "bun:test";
import { makeLogger } from "../../../src/base/log.ts";
import { MetricExporter, type MetricExporterOptions } from "../../../src/server/metrics/metric-exporter.ts";
import { makeMetrics, type Metrics } from "../../../src/server/metrics/metrics.ts";
import { eventually } from "../../e2e/hearth.ts";
import { afterTest } from "../../cleanups.ts";
import { startCollector } from "../../otlp-collector.ts";
import { makeFakeRuntime } from "../fakes.ts";

const START_MS = 1_700_000_000_000;

/** An exporter that was started a second ago, and exports when it is closed. */
function exporterTo(url: string, metrics: Metrics, more: Partial<MetricExporterOptions> = {}) {
  const logs: string[] = [];
  let nowMs = START_MS;
  const exporter = new MetricExporter({
    url: `${url}/v1/metrics`,
    headers: { "x-key": "k" },
    resource: { "service.name": "test" },
    timeoutMs: 5000,
    intervalMs: 600_000,
    version: "1.2.3",
    log: makeLogger({ write: (line) => void logs.push(line), now: Date.now, debug: false }),
    now: () => nowMs,
    gather: () => metrics.gather(),
    ...more,
  });
  nowMs += 1000;
  afterTest(() => exporter.close());
  return { exporter, logs };
}

function busyMetrics(dialect: "hearth" | "vllm" = "hearth"): Metrics {
  const metrics = makeMetrics(makeFakeRuntime(), { dialect });
  for (const [status, seconds] of [
    [200, 0.004],
    [200, 0.2],
    [503, 400],
  ] as const)
    metrics.request({ method: "GET", route: "/api/version", status, seconds });
  metrics.answer("m", { promptEvalCount: 12, promptCachedCount: 4, evalCount: 5, evalNs: 1e8 });
  return metrics;
}

const labelsOf = (attributes: any[], more: Record<string, string> = {}): string =>
  JSON.stringify([...attributes.map(({ key, value }) => [key, value.stringValue]), ...Object.entries(more)].toSorted());

/** OTLP read as Prometheus would write it: `name labels` and its value. */
function samplesOf(metrics: readonly any[]): Map<string, number> {
  const samples = new Map<string, number>();
  for (const { name, gauge, sum, histogram } of metrics) {
    for (const { attributes, asDouble } of (gauge ?? sum)?.dataPoints ?? [])
      samples.set(`${name} ${labelsOf(attributes)}`, asDouble);
    for (const point of histogram?.dataPoints ?? []) {
      let upTo = 0;
      for (const [i, n] of point.bucketCounts.entries()) {
        const le = String(point.explicitBounds[i] ?? "+Inf");
        samples.set(`${name}_bucket ${labelsOf(point.attributes, { le })}`, (upTo += Number(n)));
      }
      samples.set(`${name}_count ${labelsOf(point.attributes)}`, Number(point.count));
      samples.set(`${name}_sum ${labelsOf(point.attributes)}`, point.sum);
    }
  }
  return samples;
}

function samplesOfText(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const [, name, labels = "", value] = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/.exec(line)!;
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key, text]) => [key, text]);
      return [`${name} ${JSON.stringify(pairs.toSorted())}`, Number(value)];
    }),
  );
}

for (const dialect of ["hearth", "vllm"] as const)
  test(`dialect ${dialect}: the exported values equal those of /metrics`, async () => {
    const { url, metrics: sent } = startCollector();
    const metrics = busyMetrics(dialect);
    await exporterTo(url, metrics).exporter.close();
    const memory = /^hearth_resident_bytes /;
    const steady = (samples: Map<string, number>) => [...samples].filter(([name]) => !memory.test(name)).toSorted();
    const expected = steady(samplesOfText(await metrics.text()));
    expect(expected.length).toBeGreaterThan(30);
    expect(steady(samplesOf(sent))).toEqual(expected);
    expect(sent.some(({ name }) => name.startsWith("vllm:"))).toBe(dialect === "vllm");
  });

test("sums and histograms are cumulative since the start, and gauges current, with names, units, resource and scope", async () => {
  const { url, metrics: sent, requests } = startCollector();
  await exporterTo(url, busyMetrics()).exporter.close();
  const find = (name: string) => sent.find((metric) => metric.name === name);
  const startTimeUnixNano = "1700000000000000000";
  const timeUnixNano = "1700000001000000000";
  expect(find("hearth_tokens_total")).toEqual({
    name: "hearth_tokens_total",
    description: "Tokens of prompts and of answers",
    unit: "1",
    sum: {
      aggregationTemporality: 2,
      isMonotonic: true,
      dataPoints: [
        { kind: "prompt", asDouble: 12 },
        { kind: "generated", asDouble: 5 },
      ].map(({ kind, asDouble }) => ({
        attributes: [
          { key: "model", value: { stringValue: "m" } },
          { key: "kind", value: { stringValue: kind } },
        ],
        asDouble,
        startTimeUnixNano,
        timeUnixNano,
      })),
    },
  });
  expect(find("hearth_http_request_seconds")).toMatchObject({
    unit: "s",
    histogram: {
      aggregationTemporality: 2,
      dataPoints: [
        {
          attributes: [{ key: "route", value: { stringValue: "/api/version" } }],
          explicitBounds: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
          bucketCounts: ["1", "0", "0", "1", "0", "0", "0", "0", "0", "0", "0", "1"],
          count: "3",
          sum: 400.204,
          startTimeUnixNano,
          timeUnixNano,
        },
      ],
    },
  });
  const resident = { key: "process", value: { stringValue: "server" } };
  expect(find("hearth_resident_bytes")).toMatchObject({
    unit: "By",
    gauge: { dataPoints: [{ attributes: [resident], timeUnixNano, asDouble: expect.any(Number) }] },
  });
  const [{ path, headers, body }] = requests as any;
  expect([path, headers.get("x-key"), headers.get("content-type")]).toEqual(["/v1/metrics", "k", "application/json"]);
  const [{ resource, scopeMetrics }] = body.resourceMetrics;
  expect(resource.attributes).toEqual([{ key: "service.name", value: { stringValue: "test" } }]);
  expect(scopeMetrics[0].scope).toEqual({ name: "hearth", version: "1.2.3" });
});

test("the next export contains the values that a collector refused, and a failure is logged once", async () => {
  const receiver = startCollector();
  receiver.status = 503;
  const metrics = busyMetrics();
  const { logs } = exporterTo(receiver.url, metrics, { intervalMs: 5 });
  expect(await eventually(() => receiver.requests.length > 3)).toBe(true);
  expect(receiver.metrics).toEqual([]);
  metrics.answer("m", { promptEvalCount: 1, promptCachedCount: 0, evalCount: 1, evalNs: 1 });
  receiver.status = 200;
  const prompts = 'hearth_tokens_total [["kind","prompt"],["model","m"]]';
  // the first one taken may have been gathered before the second answer
  expect(await eventually(() => samplesOf(receiver.metrics).get(prompts) === 13)).toBe(true);
  expect(logs).toHaveLength(1);
  expect(logs[0]).toContain("metrics cannot be sent");
});

test("an unreachable or silent collector costs one warning, and closing waits no longer than the time limit", async () => {
  const silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) });
  afterTest(() => silent.stop(true));
  for (const url of ["http://127.0.0.1:1", `http://127.0.0.1:${silent.port}`]) {
    const { exporter, logs } = exporterTo(url, busyMetrics(), { timeoutMs: 50 });
    await exporter.close();
    expect([url, logs.length]).toEqual([url, 1]);
  }
});
