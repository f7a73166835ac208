/**
 * Metrics for a monitoring system: counts and times of requests, tokens, models and memory, in the Prometheus text
 * format. Values held elsewhere are read on demand; no work is done per token.
 */
import type { MetricObjectWithValues, MetricValueWithName } from "prom-client";
import { Counter, Gauge, Histogram, Registry } from "./prom-client.ts";
import { capped } from "./label-values.ts";
import { makeGatewayMetrics, type CountHook, type WatchedGateway } from "./gateway-metrics.ts";
import { makeRouterMetrics } from "./router-metrics.ts";
import { residentBytes } from "../../base/system.ts";
import type { MetricsDialect } from "../../base/config/index.ts";
import type { LoadedModel, Runtime, Statistics } from "../../runtime/portable.ts";

/** Maximum number of values of one label: a client that invents names must not fill the memory. */
const NAMES_MAX = 100;
const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const FIRST_TOKEN_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const TOKEN_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

interface RequestFacts {
  readonly method: string;
  /** The pattern of its route; `other` for unknown paths. */
  readonly route: string;
  readonly status: number;
  /** Undefined for requests that were refused before they began. */
  readonly seconds?: number;
}

export interface Metrics {
  request(facts: RequestFacts): void;
  firstToken(model: string, seconds: number): void;
  answer(model: string, statistics: Answered): void;
  /** A request to the webhook ingress. */
  hook: CountHook;
  /** All metrics as text, including the router's if the dialect is on. */
  text(): Promise<string>;
  /** The same, as values. */
  gather(): Promise<MetricObjectWithValues<MetricValueWithName<string>>[]>;
  /** The router's metrics alone. */
  routerText(): Promise<string>;
  readonly contentType: string;
}

type Answered = Pick<Statistics, "promptEvalCount" | "promptCachedCount" | "evalCount" | "evalNs">;
type Watched = Pick<Runtime, "loaded" | "activity">;

interface MetricsOptions {
  /** Its metrics are included, if there is one. */
  readonly gateway?: WatchedGateway | undefined;
  readonly dialect?: MetricsDialect;
}

export function makeMetrics(runtime: Watched, { gateway, dialect = "hearth" }: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const model = capped(NAMES_MAX);
  const requests = new Counter({
    name: "hearth_http_requests_total",
    help: "Requests by route, method and status",
    labelNames: ["route", "method", "status"],
    registers,
  });
  const requestSeconds = new Histogram({
    name: "hearth_http_request_seconds",
    help: "Time from a request to the end of its answer",
    labelNames: ["route"],
    buckets: REQUEST_SECONDS,
    registers,
  });
  const firstTokenSeconds = new Histogram({
    name: "hearth_time_to_first_token_seconds",
    help: "Time from a request to its first text, loading and waiting included",
    labelNames: ["model"],
    buckets: FIRST_TOKEN_SECONDS,
    registers,
  });
  const tokenSeconds = new Histogram({
    name: "hearth_seconds_per_output_token",
    help: "Mean time of the generated tokens of an answer",
    labelNames: ["model"],
    buckets: TOKEN_SECONDS,
    registers,
  });
  const tokens = new Counter({
    name: "hearth_tokens_total",
    help: "Tokens of prompts and of answers",
    labelNames: ["model", "kind"],
    registers,
  });
  watchActivity(runtime, registers);
  watchImages(runtime, registers);
  watchMemory(runtime, registers);
  watchStreamed(runtime, registers);
  const routers = makeRouterMetrics(runtime, model);
  const registries = dialect === "vllm" ? [registry, routers.registry] : [registry];
  const ofAll = <T>(read: (registry: Registry) => Promise<T>): Promise<T[]> => Promise.all(registries.map(read));
  return {
    contentType: registry.contentType,
    text: async () => (await ofAll((each) => each.metrics())).join(""),
    gather: async () => (await ofAll((each) => each.getMetricsAsJSON())).flat(),
    routerText: () => routers.registry.metrics(),
    hook: gateway ? makeGatewayMetrics(gateway, registers) : () => {},
    request({ method, route, status, seconds }) {
      requests.inc({ route, method: METHODS.has(method) ? method : "other", status });
      if (seconds !== undefined) requestSeconds.observe({ route }, seconds);
    },
    firstToken: (name, seconds) => firstTokenSeconds.observe({ model: model(name) }, seconds),
    answer(name, { promptEvalCount, promptCachedCount, evalCount, evalNs }) {
      routers.prompt(name, { promptEvalCount, promptCachedCount });
      tokens.inc({ model: model(name), kind: "prompt" }, promptEvalCount);
      tokens.inc({ model: model(name), kind: "generated" }, evalCount);
      if (evalCount > 1) tokenSeconds.observe({ model: model(name) }, evalNs / evalCount / 1e9);
    },
  };
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

type Registers = Registry[];

/** Running and waiting requests, and events of runners. */
function watchActivity(runtime: Watched, registers: Registers): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    void new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge("hearth_requests_running", "Requests that a model works on", () => runtime.activity().running);
  gauge("hearth_requests_waiting", "Requests that wait for a model", () => runtime.activity().waiting);
  gauge("hearth_models_loaded", "Models in memory", () => runnersOf(runtime).length);
  new Counter({
    name: "hearth_model_events_total",
    help: "Loads, unloads, unloads that made room for another model (evict), crashes and hangs of runners",
    labelNames: ["event"],
    registers,
    collect() {
      this.reset();
      const { events } = runtime.activity();
      for (const [event, count] of Object.entries(events)) this.inc({ event }, count);
    },
  });
}

/** Images and recordings of prompts: encoded, or found in the cache. */
function watchImages(runtime: Watched, registers: Registers): void {
  const counter = (how: "encoded" | "reused", help: string): void =>
    void new Counter({
      name: `hearth_images_${how}_total`,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(runtime.activity().images[how]);
      },
    });
  counter("encoded", "Images and recordings of prompts that an encoder made rows of");
  counter("reused", "Images and recordings of prompts found in the cache");
}

/** Bytes of memory of the server and of each loaded model. */
function watchMemory(runtime: Watched, registers: Registers): void {
  new Gauge({
    name: "hearth_resident_bytes",
    help: "Memory of the server's process and of each model's, if known",
    labelNames: ["process"],
    registers,
    collect() {
      this.reset();
      this.set({ process: "server" }, process.memoryUsage.rss());
      for (const { name, pid } of runnersOf(runtime)) {
        const bytes = residentBytes(pid);
        if (bytes !== undefined) this.set({ process: name }, bytes);
      }
    },
  });
  const perModel = (name: string, help: string, read: (loaded: LoadedModel) => number): void =>
    void new Gauge({
      name,
      help,
      labelNames: ["model"],
      registers,
      collect() {
        this.reset();
        for (const loaded of runnersOf(runtime)) this.set({ model: loaded.name }, read(loaded));
      },
    });
  perModel("hearth_model_bytes", "Weights, KV cache and scratch of a loaded model", (loaded) => loaded.sizeBytes);
  perModel("hearth_model_vram_bytes", "The part of it on a GPU", (loaded) => loaded.vramBytes);
}

/** Weights of models that do not fit in memory. */
function watchStreamed(runtime: Watched, registers: Registers): void {
  type Streamed = NonNullable<LoadedModel["streamed"]>;
  const streamed = (): [string, Streamed][] =>
    runnersOf(runtime).flatMap(({ name, streamed: counts }) => (counts ? [[name, counts]] : []));
  new Counter({
    name: "hearth_expert_uses_total",
    help: "Uses of experts of models that do not fit in memory, by where their weights were: memory, disk",
    labelNames: ["model", "from"],
    registers,
    collect() {
      this.reset();
      for (const [model, { hits, misses }] of streamed()) {
        this.inc({ model, from: "memory" }, hits);
        this.inc({ model, from: "disk" }, misses);
      }
    },
  });
  new Counter({
    name: "hearth_weight_read_bytes_total",
    help: "Bytes of weights read from the disk while models run that do not fit in memory",
    labelNames: ["model"],
    registers,
    collect() {
      this.reset();
      for (const [model, { bytes }] of streamed()) this.inc({ model }, bytes);
    },
  });
}

/** Loaded models, each runner once. */
const runnersOf = (runtime: Watched): LoadedModel[] => runtime.loaded().filter(({ isBeside }) => !isBeside);
