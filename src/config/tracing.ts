/**
 * Whether and where traces go, by the variables that OpenTelemetry's specification names (its chapters "SDK environment
 * variables" and "OTLP exporter"). Nothing goes anywhere unless one of them names an endpoint, or OTLP as exporter.
 */
import { AppError } from "../base/errors.ts";
import { parseInteger, parseWebAddress } from "./values.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Shares of new traces that are recorded; those that come with a request are as their sender decided. */
export interface Sampling {
  /** From 0 to 1. */
  readonly share: number;
  /** Whether the sender's decision counts. */
  readonly isParentBased: boolean;
}

export interface TracingConfig {
  /** Where spans are posted to. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Of this server: `service.name` and others. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampling: Sampling;
  readonly timeoutMs: number;
  /** Spans wait at most so long, and at most so many, and go in batches of at most so many. */
  readonly delayMs: number;
  readonly queueMax: number;
  readonly batchMax: number;
}

const DEFAULT_ENDPOINT = "http://localhost:4318";

/** Undefined: no traces. Throws `bad_request` naming a variable that cannot be understood. */
export function readTracing(env: Env): TracingConfig | undefined {
  const get = (name: string): string | undefined => env[name]?.trim() || undefined;
  const either = (name: string): string | undefined =>
    get(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? get(`OTEL_EXPORTER_OTLP_${name}`);
  const exporter = get("OTEL_TRACES_EXPORTER");
  if (get("OTEL_SDK_DISABLED")?.toLowerCase() === "true" || exporter === "none") return undefined;
  if (either("ENDPOINT") === undefined && exporter === undefined) return undefined;
  const check = (name: string, value: string | undefined, known: readonly string[]): void => {
    if (value !== undefined && !known.includes(value)) throw wrong(name, known.join(" or "), value);
  };
  check("OTEL_TRACES_EXPORTER", exporter, ["otlp"]);
  check("OTEL_EXPORTER_OTLP_PROTOCOL", either("PROTOCOL"), ["http/json"]);
  const count = (name: string, initial: number): number => {
    const text = get(name);
    if (text === undefined) return initial;
    return parseInteger(text, { min: 1, max: 1e6 }) ?? fail(name, "a whole number from 1", text);
  };
  const resource = pairs("OTEL_RESOURCE_ATTRIBUTES", get("OTEL_RESOURCE_ATTRIBUTES"));
  const name = get("OTEL_SERVICE_NAME") ?? resource["service.name"] ?? "hearth";
  return {
    url: urlOf(get),
    headers: pairs("OTEL_EXPORTER_OTLP_HEADERS", either("HEADERS")),
    resource: { ...resource, "service.name": name },
    sampling: samplingOf(get),
    timeoutMs: count("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000),
    delayMs: count("OTEL_BSP_SCHEDULE_DELAY", 5000),
    queueMax: count("OTEL_BSP_MAX_QUEUE_SIZE", 2048),
    batchMax: count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
  };
}

type Get = (name: string) => string | undefined;

/** The endpoint of traces is taken as it is; below the general one there is a path for them. */
function urlOf(get: Get): string {
  const [own, general] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] as const;
  const [name, text] = get(own) === undefined ? [general, get(general) ?? DEFAULT_ENDPOINT] : [own, get(own)];
  const address = parseWebAddress(text) ?? fail(name, "http:// or https://", text ?? "");
  return name === own ? address : `${address}/v1/traces`;
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

const wrong = (name: string, expected: string, got: string): AppError =>
  new AppError("bad_request", `${name}: expected ${expected}, got '${got}'`);

function fail(name: string, expected: string, got: string): never {
  throw wrong(name, expected, got);
}
