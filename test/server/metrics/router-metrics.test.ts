/** Metrics for routers: the names and labels that they look for. */
import { afterEach, expect, test } from "bun:test";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness | undefined;
afterEach(() => harness?.close());

/** Samples of a page by name and labels. */
async function samples(path: string): Promise<Map<string, number>> {
  const text = await (await harness!.call("GET", path)).text();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

const model = { name: "m:latest", running: 2, waiting: 3, isLoaded: true, hasAdapters: false };

test("each model says how many requests run and wait, and how full its cache is", async () => {
  harness = await makeHarness();
  harness.runtime.activities = [{ ...model, kv: { used: 512, room: 2048 } }];
  const found = await samples("/metrics/vllm");
  const about = (name: string): number | undefined => found.get(`vllm:${name}{model_name="m:latest"}`);
  expect([about("num_requests_running"), about("num_requests_waiting")]).toEqual([2, 3]);
  expect([about("kv_cache_usage_perc"), about("gpu_cache_usage_perc")]).toEqual([0.25, 0.25]);
  expect(found.get('vllm:cache_config_info{model_name="m:latest",block_size="16",num_gpu_blocks="128"}')).toBe(1);
  expect([...found.keys()].filter((name) => name.startsWith("vllm:lora"))).toEqual([]);
});

test("a server without a loaded model reports zero requests and an empty cache", async () => {
  harness = await makeHarness();
  const found = await samples("/metrics/vllm");
  for (const name of ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"])
    expect([name, found.get(`vllm:${name}{model_name=""}`)]).toEqual([name, 0]);
});

test("prompt tokens and their cached part add up by model", async () => {
  harness = await makeHarness();
  for (let i = 0; i < 2; i++) await (await harness.post("/api/generate", { model: "m", prompt: "hi" })).text();
  const found = await samples("/metrics/vllm");
  for (const prefix of ["prefix", "gpu_prefix"]) {
    expect(found.get(`vllm:${prefix}_cache_queries_total{model_name="m:latest"}`)).toBe(6);
    expect(found.get(`vllm:${prefix}_cache_hits_total{model_name="m:latest"}`)).toBe(2);
  }
});

test("models with adapters are reported as running and waiting adapters", async () => {
  harness = await makeHarness();
  const kv = { used: 0, room: 64 };
  harness.runtime.activities = [
    { ...model, kv },
    { ...model, kv, name: "poet", hasAdapters: true },
    { ...model, kv, name: "clerk", hasAdapters: true },
    { ...model, kv, name: "cook", hasAdapters: true, isLoaded: false },
  ];
  const found = await samples("/metrics/vllm");
  const info = 'max_lora="3",running_lora_adapters="poet,clerk",waiting_lora_adapters="cook"';
  expect(found.get(`vllm:lora_requests_info{${info}}`)).toBeGreaterThan(1e9);
});

test("/metrics has vLLM's names only if the setting says so, and both paths require a key if there are keys", async () => {
  harness = await makeHarness();
  expect([...(await samples("/metrics")).keys()].filter((name) => name.startsWith("vllm:"))).toEqual([]);
  await harness.close();
  harness = await makeHarness({ metricsDialect: "vllm" });
  const found = [...(await samples("/metrics")).keys()];
  expect(found).toContain('vllm:num_requests_waiting{model_name=""}');
  expect(found).toContain("hearth_requests_waiting");
  await harness.close();
  harness = await makeHarness({ apiKeys: ["k"] });
  const statuses = ["/metrics", "/metrics/vllm"].map(async (path) => (await harness!.call("GET", path)).status);
  expect(await Promise.all(statuses)).toEqual([401, 401]);
});
