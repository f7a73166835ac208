/**
 * Metrics for routers in front of several servers: llm-d and the Gateway API Inference Extension, and vLLM's router.
 * They expect vLLM's names. Each metric has a sample for every model that is loaded or for which requests wait. If
 * there is no such model, a sample without a model name shows that this server is idle, not unknown.
 */
import { Counter, Gauge, Registry } from "./prom-client.ts";
import type { ModelActivity, Runtime, Statistics } from "../../runtime/portable.ts";

/** Routers compare prompts in blocks of this many tokens; slots share prefixes of any length. */
const BLOCK_TOKENS = 16;

const IDLE: ModelActivity = {
  name: "",
  running: 0,
  waiting: 0,
  isLoaded: false,
  hasAdapters: false,
  kv: { used: 0, room: 0 },
};

export interface RouterMetrics {
  /** Counts a prompt, and its cached part. */
  prompt(model: string, tokens: Pick<Statistics, "promptEvalCount" | "promptCachedCount">): void;
  readonly registry: Registry;
}

/** @param label maps a model's name to a label value of a bounded set */
export function makeRouterMetrics(runtime: Pick<Runtime, "activity">, label: (name: string) => string): RouterMetrics {
  const registry = new Registry();
  const registers = [registry];
  const models = (): readonly ModelActivity[] => {
    const found = runtime.activity().models;
    return found.length > 0 ? found : [IDLE];
  };
  watchModels(models, registers);
  watchCache(models, registers);
  watchAdapters(runtime, registers);
  const counters = (names: readonly string[], help: string): Counter[] =>
    names.map((name) => new Counter({ name, help, labelNames: ["model_name"], registers }));
  const queries = counters(
    ["vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"],
    "Tokens of prompts that were looked for in the cache",
  );
  const hits = counters(
    ["vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"],
    "Tokens of prompts that were there",
  );
  return {
    registry,
    prompt(name, { promptEvalCount, promptCachedCount }) {
      for (const counter of queries) counter.inc({ model_name: label(name) }, promptEvalCount);
      for (const counter of hits) counter.inc({ model_name: label(name) }, promptCachedCount);
    },
  };
}

type Models = () => readonly ModelActivity[];

/** The same gauge under each of its names, which changed between versions of vLLM. */
function watchModels(models: Models, registers: Registry[]): void {
  const gauges = (names: readonly string[], help: string, read: (model: ModelActivity) => number): void => {
    for (const name of names)
      new Gauge({
        name,
        help,
        labelNames: ["model_name"],
        registers,
        collect() {
          this.reset();
          for (const model of models()) this.set({ model_name: model.name }, read(model));
        },
      });
  };
  gauges(["vllm:num_requests_running"], "Requests that a model works on", ({ running }) => running);
  gauges(["vllm:num_requests_waiting"], "Requests that wait for a model", ({ waiting }) => waiting);
  gauges(
    ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
    "Share of the slots' tokens that running requests keep, from 0 to 1",
    ({ kv }) => (kv.room === 0 ? 0 : Math.min(1, kv.used / kv.room)),
  );
}

function watchCache(models: Models, registers: Registry[]): void {
  new Gauge({
    name: "vllm:cache_config_info",
    help: "Size of a model's KV cache, in blocks",
    labelNames: ["model_name", "block_size", "num_gpu_blocks"],
    registers,
    collect() {
      this.reset();
      for (const { name, isLoaded, kv } of models()) {
        const blocks = Math.floor(kv.room / BLOCK_TOKENS);
        if (isLoaded) this.set({ model_name: name, block_size: BLOCK_TOKENS, num_gpu_blocks: blocks }, 1);
      }
    },
  });
}

/**
 * Here a model with adapters is a separate model: `running` lists loaded models, `waiting` the models to be loaded.
 */
function watchAdapters(runtime: Pick<Runtime, "activity">, registers: Registry[]): void {
  new Gauge({
    name: "vllm:lora_requests_info",
    help: "Models with adapters; the value is the time, in seconds",
    labelNames: ["max_lora", "running_lora_adapters", "waiting_lora_adapters"],
    registers,
    collect() {
      this.reset();
      const { models, modelsMax } = runtime.activity();
      const names = (isLoaded: boolean): string =>
        models.flatMap((model) => (model.hasAdapters && model.isLoaded === isLoaded ? model.name : [])).join(",");
      const [running, waiting] = [names(true), names(false)];
      const labels = { max_lora: modelsMax, running_lora_adapters: running, waiting_lora_adapters: waiting };
      if (running !== "" || waiting !== "") this.set(labels, Date.now() / 1000);
    },
  });
}
