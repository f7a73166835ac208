import { expect, test } from "bun:test";
import { readTracing } from "../../src/config/tracing.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" };

test("nothing is sent unless a variable names an endpoint or OTLP, and nothing where it is switched off", () => {
  expect(readTracing({})).toBeUndefined();
  expect(readTracing({ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_ENDPOINT: " " })).toBeUndefined();
  expect(readTracing({ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" })).toBeUndefined();
  expect(readTracing({ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" })).toBeUndefined();
  expect(readTracing({ OTEL_TRACES_EXPORTER: "otlp" })?.url).toBe("http://localhost:4318/v1/traces");
});

test("variables mean what the specification says", () => {
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
] as const) {
  test(`${name}=${value} is an error that names it`, () => {
    const read = () => readTracing({ ...ENDPOINT, [name]: value });
    expect(read).toThrow(name);
    expect(read).toThrow(expected);
    if (name.endsWith("HEADERS")) expect(read).not.toThrow("secret"); // it may be a key
  });
}

test("a ratio beyond one is an error", () => {
  const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" };
  expect(() => readTracing(env)).toThrow("OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got '2'");
});
