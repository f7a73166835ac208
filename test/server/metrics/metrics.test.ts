import { afterEach, beforeEach, expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { makeMetrics } from "../../../src/server/metrics/metrics.ts";
import { makeFakeRuntime, play } from "../fakes.ts";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

/** The value of one sample of `/metrics`. */
async function sample(name: string): Promise<number | undefined> {
  const text = await (await harness.call("GET", "/metrics")).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

test("the reply is in the text format of Prometheus", async () => {
  const response = await harness.call("GET", "/metrics");
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const line of (await response.text()).trimEnd().split("\n")) {
    expect(line).toMatch(/^$|^# (HELP|TYPE) hearth_|^hearth_[a-z_]+(\{[^}]*\})? [\d.e+-]+$/);
  }
});

test("requests count by the pattern of their route, never by their path", async () => {
  await harness.call("GET", "/api/version");
  await harness.call("GET", "/api/version/");
  await harness.call("HEAD", `/api/blobs/sha256:${"0".repeat(64)}`);
  await harness.call("GET", "/nowhere/in/particular");
  const count = (labels: string) => sample(`hearth_http_requests_total{${labels}}`);
  expect(await count('route="/api/version",method="GET",status="200"')).toBe(2);
  expect(await count('route="/api/blobs/:digest",method="HEAD",status="404"')).toBe(1);
  expect(await count('route="other",method="GET",status="404"')).toBe(1);
  expect(await sample('hearth_http_request_seconds_count{route="/api/version"}')).toBe(2);
});

test("tokens and times of answers count by model, streamed or not", async () => {
  await (await harness.post("/api/generate", { model: "m", prompt: "hi" })).text();
  await harness.post("/api/chat", { model: "m", stream: false, messages: [{ role: "user", content: "hi" }] });
  expect(await sample('hearth_tokens_total{model="m:latest",kind="prompt"}')).toBe(6);
  expect(await sample('hearth_tokens_total{model="m:latest",kind="generated"}')).toBe(4);
  expect(await sample('hearth_time_to_first_token_seconds_count{model="m:latest"}')).toBe(2);
  expect(await sample('hearth_seconds_per_output_token_sum{model="m:latest"}')).toBeCloseTo(2 * 0.00075, 6);
});

test("a model counts under one name, however requests write it", async () => {
  for (const model of ["m", "M", " m:latest ", "registry.ollama.ai/library/m", "m:local"]) {
    await harness.post("/api/generate", { model, prompt: "hi", stream: false });
    await harness.post("/api/embed", { model, input: "hi" });
  }
  expect(await sample('hearth_tokens_total{model="m:latest",kind="prompt"}')).toBe(5 * 3 + 5 * 2);
  const text = await (await harness.call("GET", "/metrics")).text();
  expect(text.match(/^hearth_tokens_total\{.*kind="prompt"\}/gm)).toHaveLength(1);
});

test("a failed answer counts as a request, without tokens", async () => {
  harness.runtime.script = async function* () {
    yield* [];
    throw new AppError("runner", "it stopped");
  };
  await harness.post("/api/generate", { model: "m", prompt: "hi" });
  expect(await sample('hearth_http_requests_total{route="/api/generate",method="POST",status="500"}')).toBe(1);
  expect(await sample('hearth_tokens_total{model="m:latest",kind="prompt"}')).toBeUndefined();
});

test("running requests and loaded models are counted at the time of the scrape", async () => {
  expect(await sample("hearth_models_loaded")).toBe(0);
  harness.runtime.script = play([{ kind: "text", text: "a" }], 60_000);
  const gone = new AbortController();
  const body = JSON.stringify({ model: "m", prompt: "hi" });
  const request = new Request("http://localhost/api/generate", { method: "POST", body, signal: gone.signal });
  const pending = harness.app.handle(request);
  while (harness.runtime.running() === 0) await Bun.sleep(1);
  expect(await sample("hearth_requests_running")).toBe(1);
  expect(await sample("hearth_models_loaded")).toBe(1);
  expect(await sample('hearth_model_bytes{model="m"}')).toBe(1);
  expect(await sample('hearth_resident_bytes{process="server"}')).toBeGreaterThan(1e6);
  expect(await sample('hearth_model_events_total{event="load"}')).toBe(1);
  gone.abort();
  await pending;
});

test('many model names and unknown methods count as "other", so that metrics stay small', async () => {
  const metrics = makeMetrics(makeFakeRuntime());
  for (let i = 0; i < 1000; i++)
    metrics.answer(`model-${i}`, { promptEvalCount: 1, promptCachedCount: 0, evalCount: 1, evalNs: 1 });
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("hearth_tokens_total{"));
  metrics.request({ method: "BREW", route: "other", status: 405 });
  expect(await metrics.text()).toContain('hearth_http_requests_total{route="other",method="other",status="405"} 1');
  expect(lines.length).toBe(2 * 101);
  expect(lines).toContain('hearth_tokens_total{model="other",kind="prompt"} 900');
});

test("reads of experts and weights count by their source, memory or disk", async () => {
  const model = { name: "m:latest", digest: "d", paths: { model: "/m", adapters: [], files: [] }, sizeBytes: 9 };
  const rest = { vramBytes: 0, ctxLen: 1, expiresAt: new Date(), pid: process.pid };
  harness.runtime.models = [{ ...model, ...rest, streamed: { memory: 4, hits: 30, misses: 10, bytes: 5000 } }];
  expect(await sample('hearth_expert_uses_total{model="m:latest",from="memory"}')).toBe(30);
  expect(await sample('hearth_expert_uses_total{model="m:latest",from="disk"}')).toBe(10);
  expect(await sample('hearth_weight_read_bytes_total{model="m:latest"}')).toBe(5000);
});
