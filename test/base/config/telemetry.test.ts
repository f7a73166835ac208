import { expect, test } from "bun:test";
import { readMetricExport, readTracing } from "../../../src/base/config/telemetry.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" };

test("traces and metrics are sent only if a variable names an endpoint or OTLP, and not if switched off", () => {
  expect(readTracing({})).toBeUndefined();
  expect(readTracing({ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_ENDPOINT: " " })).toBeUndefined();
  expect(readTracing({ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" })).toBeUndefined();
  expect(readTracing({ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" })).toBeUndefined();
  expect(readTracing({ OTEL_TRACES_EXPORTER: "otlp" })?.url).toBe("http://localhost:4318/v1/traces");
  expect(readMetricExport({})).toBeUndefined();
  expect(readMetricExport({ ...ENDPOINT, OTEL_SDK_DISABLED: "true" })).toBeUndefined();
  expect(readMetricExport({ OTEL_METRICS_EXPORTER: "otlp" })?.url).toBe("http://localhost:4318/v1/metrics");
});

test("traces and metrics have separate switches, endpoints and headers", () => {
  const both = { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: "k=all", OTEL_EXPORTER_OTLP_METRICS_HEADERS: "k=own" };
  const urlsOf = (env: Record<string, string>) => [readTracing(env)?.url, readMetricExport(env)?.url];
  const [traces, metrics] = ["http://collector:4318/v1/traces", "http://collector:4318/v1/metrics"];
  expect(urlsOf(both)).toEqual([traces, metrics]);
  expect(urlsOf({ ...both, OTEL_METRICS_EXPORTER: "none" })).toEqual([traces, undefined]);
  expect(urlsOf({ ...both, OTEL_TRACES_EXPORTER: "none" })).toEqual([undefined, metrics]);
  expect(urlsOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t/x" })).toEqual(["http://t/x", undefined]);
  expect(urlsOf({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://m/x" })).toEqual([undefined, "http://m/x"]);
  expect([readTracing(both)?.headers, readMetricExport(both)?.headers]).toEqual([{ k: "all" }, { k: "own" }]);
});

test("metrics are sent once a minute unless variables set another interval", () => {
  expect(readMetricExport(ENDPOINT)).toEqual({
    url: "http://collector:4318/v1/metrics",
    headers: {},
    resource: { "service.name": "hearth" },
    timeoutMs: 10_000,
    intervalMs: 60_000,
  });
  const all = {
    ...ENDPOINT,
    OTEL_METRICS_EXPORTER: "otlp",
    OTEL_METRIC_EXPORT_INTERVAL: "5000",
    OTEL_METRIC_EXPORT_TIMEOUT: "3000",
    OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: "4000",
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", // another program's
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "Cumulative",
    OTEL_SERVICE_NAME: "kept",
  };
  expect(readMetricExport(all)).toMatchObject({
    resource: { "service.name": "kept" },
    timeoutMs: 3000,
    intervalMs: 5000,
  });
});

test("variables of tracing have the meanings and defaults of the specification", () => {
  expect(readTracing(ENDPOINT)).toEqual({
    url: "http://collector:4318/v1/traces",
    headers: {},
    resource: { "service.name": "hearth" },
    sampling: { share: 1, isParentBased: true },
    timeoutMs: 10_000,
    delayMs: 5000,
    queueMax: 2048,
    batchMax: 512,
  });
  const all = readTracing({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://other/otlp",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20a%2Cb, x-y = z ",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=lost,deployment.environment=test",
    OTEL_SERVICE_NAME: "kept",
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_BSP_SCHEDULE_DELAY: "100",
  });
  expect(all).toMatchObject({
    url: "https://other/otlp",
    headers: { authorization: "Bearer a,b", "x-y": "z" },
    resource: { "service.name": "kept", "deployment.environment": "test" },
    sampling: { share: 0.25, isParentBased: false },
    delayMs: 100,
  });
  const off = readTracing({ ...ENDPOINT, OTEL_TRACES_SAMPLER: "parentbased_always_off" });
  expect(off?.sampling).toEqual({ share: 0, isParentBased: true });
});

for (const [name, value, expected] of [
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "http:// or https://"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/json"],
  ["OTEL_TRACES_EXPORTER", "zipkin", "otlp"],
  ["OTEL_TRACES_SAMPLER", "jaeger_remote", "traceidratio"],
  ["OTEL_BSP_MAX_QUEUE_SIZE", "0", "a whole number from 1"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "secret", "key=value pairs"],
  ["OTEL_METRICS_EXPORTER", "prometheus", "otlp"],
  ["OTEL_METRIC_EXPORT_INTERVAL", "often", "a whole number from 1"],
  ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector", "http:// or https://"],
  ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "secret", "key=value pairs"],
  ["OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "cumulative"],
] as const) {
  test(`${name}=${value} is an error that names it`, () => {
    const readOne = /METRIC/.test(name) ? readMetricExport : readTracing;
    const read = () => readOne({ ...ENDPOINT, [name]: value });
    expect(read).toThrow(name);
    expect(read).toThrow(expected);
    if (name.endsWith("HEADERS")) expect(read).not.toThrow("secret"); // it may be a key
  });
}

test("a sampling ratio above 1 is an error", () => {
  const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" };
  expect(() => readTracing(env)).toThrow("OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got '2'");
});
