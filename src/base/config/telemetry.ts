/**
 * Destinations of traces and metrics, from the variables in OpenTelemetry's specification (chapters "SDK environment
 * variables" and "OTLP exporter"). Nothing is sent unless a variable names an endpoint, or OTLP as exporter.
 */
import { AppError } from "../errors.ts";
import type { OtlpTarget } from "../otlp.ts";
import { parseInteger, parseWebAddress } from "./values.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Share of new traces to record. For traces that come with a request, the sender has decided. */
export interface Sampling {
  /** Between 0 and 1. */
  readonly share: number;
  /** True if the sender's decision counts. */
  readonly isParentBased: boolean;
}

export interface TracingConfig extends OtlpTarget {
  readonly sampling: Sampling;
  /** Limits of the span queue: delay, length, and spans per batch. */
  readonly delayMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
}

export interface MetricExportConfig extends OtlpTarget {
  readonly intervalMs: number;
}

const DEFAULT_ENDPOINT = "http://localhost:4318";

/** Undefined: no traces. Throws `bad_request` naming an invalid variable. */
export function readTracing(env: Env): TracingConfig | undefined {
  const read = readerOf(env);
  const target = targetOf(read, "TRACES");
  return (
    target && {
      ...target,
      sampling: samplingOf(read.get),
      delayMs: read.count("OTEL_BSP_SCHEDULE_DELAY", 5000),
      queueMax: read.count("OTEL_BSP_MAX_QUEUE_SIZE", 2048),
      batchMax: read.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
    }
  );
}

/** Undefined: no metrics. Throws as `readTracing`. */
export function readMetricExport(env: Env): MetricExportConfig | undefined {
  const read = readerOf(env);
  const target = targetOf(read, "METRICS");
  if (target === undefined) return undefined;
  read.check("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", ["cumulative"]);
  read.check("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", ["explicit_bucket_histogram"]);
  return {
    ...target,
    timeoutMs: Math.min(target.timeoutMs, read.count("OTEL_METRIC_EXPORT_TIMEOUT", 30_000)),
    intervalMs: read.count("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
  };
}

type Get = (name: string) => string | undefined;
type Signal = "TRACES" | "METRICS";

interface Reader {
  readonly get: Get;
  /** A whole number, at least 1. */
  readonly count: (name: string, initial: number) => number;
  /** Throws if the value is present and is not a known one. */
  readonly check: (name: string, known: readonly string[]) => void;
}

function readerOf(env: Env): Reader {
  const get: Get = (name) => env[name]?.trim() || undefined;
  return {
    get,
    count(name, initial) {
      const text = get(name);
      if (text === undefined) return initial;
      return parseInteger(text, { min: 1, max: 1e6 }) ?? fail(name, "a whole number from 1 to 1000000", text);
    },
    check(name, known) {
      const value = get(name)?.toLowerCase();
      if (value !== undefined && !known.includes(value)) fail(name, known.join(" or "), value);
    },
  };
}

/** Undefined: the signal is not exported. */
function targetOf({ get, count, check }: Reader, signal: Signal): OtlpTarget | undefined {
  /** The variable for the signal, or else the general one. */
  const nameOf = (what: string): string => {
    const own = `OTEL_EXPORTER_OTLP_${signal}_${what}`;
    return get(own) === undefined ? `OTEL_EXPORTER_OTLP_${what}` : own;
  };
  const exporter = get(`OTEL_${signal}_EXPORTER`);
  if (get("OTEL_SDK_DISABLED")?.toLowerCase() === "true" || exporter === "none") return undefined;
  if (get(nameOf("ENDPOINT")) === undefined && exporter === undefined) return undefined;
  check(`OTEL_${signal}_EXPORTER`, ["otlp"]);
  check(nameOf("PROTOCOL"), ["http/json"]);
  const resource = pairs("OTEL_RESOURCE_ATTRIBUTES", get("OTEL_RESOURCE_ATTRIBUTES"));
  const name = get("OTEL_SERVICE_NAME") ?? resource["service.name"] ?? "hearth";
  return {
    url: urlOf(get, nameOf("ENDPOINT"), signal),
    headers: pairs(nameOf("HEADERS"), get(nameOf("HEADERS"))),
    resource: { ...resource, "service.name": name },
    timeoutMs: count(nameOf("TIMEOUT"), 10_000),
  };
}

/** The endpoint of a signal is used unchanged; the general endpoint gets a path per signal. */
function urlOf(get: Get, name: string, signal: Signal): string {
  const text = get(name) ?? DEFAULT_ENDPOINT;
  const address = parseWebAddress(text) ?? fail(name, "http:// or https://", text);
  return name === "OTEL_EXPORTER_OTLP_ENDPOINT" ? `${address}/v1/${signal.toLowerCase()}` : address;
}

function samplingOf(get: Get): Sampling {
  const name = get("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const [, parent, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined) {
    fail("OTEL_TRACES_SAMPLER", "always_on, always_off or traceidratio, or one with parentbased_ before it", name);
  }
  const text = get("OTEL_TRACES_SAMPLER_ARG") ?? "1";
  const ratio = kind === "traceidratio" ? Number(text) : 1;
  if (!(ratio >= 0 && ratio <= 1)) fail("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", text);
  return { share: kind === "always_off" ? 0 : ratio, isParentBased: parent !== undefined };
}

/** `key=value` pairs separated by commas, percent-encoded. Values are never shown: they may be keys. */
function pairs(name: string, text = ""): Record<string, string> {
  const items = text.split(",").filter((item) => item.trim() !== "");
  return Object.fromEntries(
    items.map((item) => {
      const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(item) ?? [];
      if (key === undefined || value === undefined) fail(name, "key=value pairs separated by commas", "another text");
      try {
        return [decodeURIComponent(key), decodeURIComponent(value)];
      } catch {
        return fail(name, "percent-encoded values", "another text");
      }
    }),
  );
}

function fail(name: string, expected: string, got: string): never {
  throw new AppError("bad_request", `${name}: expected ${expected}, got '${got}'`);
}
