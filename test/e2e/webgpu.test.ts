/** The server with a model on the WebGPU backend, on a software adapter: its answers, alone and four at once. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { digestOf } from "../../src/library/store/digest.ts";
import type { WriteModel } from "../../src/engine/formats/files/write.ts";
import { makeAdapter } from "../engine/architectures/adapters.ts";
import { makeModel } from "../engine/architectures/models.ts";
import { QUICK_KERNELS, swiftShaderEnv } from "../engine/backends/webgpu/swiftshader.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { eventually, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(300_000); // a CPU that plays a GPU

const PROMPT = "Once upon a time, there was a little girl who lived near the sea.";
const GREEDY = { temperature: 0, num_predict: 8, num_ctx: 256 };
/** For the small model, whose vocabulary is the letters: the embedded one takes seconds of CPU time per token. */
const LETTERS = ["onceuponatime", "hello", "whatisthecapital", "whytheskyisblue"];
/** Two layers and the output. */
const SMALL = "small";
/** The same with an adapter each. */
const TUNED = ["ann", "bob"];

const env = { ...(await swiftShaderEnv()), HEARTH_GPU_KERNELS: QUICK_KERNELS };
let [gpu, cpu]: Hearth[] = [];
beforeAll(async () => {
  gpu = await startHearth({ env: { ...env, HEARTH_BACKEND: "webgpu", HEARTH_MAX_LOADED_MODELS: "1" } });
  cpu = await startHearth({ env: { HEARTH_BACKEND: "cpu" } });
  await Promise.all([gpu, cpu].map((hearth) => addSmallModel(hearth, TUNED)));
});
afterAll(async () => {
  await Promise.all([gpu?.stop(), cpu?.stop()]);
});

/** @param tuned names of models with an adapter each, which a GPU holds beside the base */
async function addSmallModel(hearth: Hearth, tuned: readonly string[] = []): Promise<void> {
  const model = makeModel("llama");
  await create(hearth, { model: SMALL }, { files: model });
  for (const [i, name] of tuned.entries()) {
    const adapter = makeAdapter(model, { rank: 4, alpha: 16, seed: 1 + i, targets: /attn|ffn|^output/ });
    await create(hearth, { model: name, from: SMALL }, { adapters: adapter });
  }
}

/** Creates a model from a file, or from its base and an adapter. */
async function create(hearth: Hearth, body: object, given: Record<string, WriteModel>): Promise<void> {
  const [[kind, model]] = Object.entries(given) as [[string, WriteModel]]; // one file
  const file = encodeGguf(model as MemoryModel); // its tensors are in memory
  const digest = digestOf(file);
  const uploaded = await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: file });
  expect(uploaded.status).toBe(201);
  const created = await hearth.post("/api/create", { ...body, [kind]: { "a.gguf": digest }, stream: false });
  expect(created.status).toBe(200);
}

async function generate(
  hearth: Hearth,
  prompt: string,
  options: object = GREEDY,
  model = LETTERS.includes(prompt) ? SMALL : "hearth",
): Promise<Record<string, any>> {
  const body = { model, prompt, options, stream: false };
  const response = await hearth.post("/api/generate", body);
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, any>; // the test checks the fields that it uses
}

/** Another number of layers reloads the model and recompiles its kernels: tests that need all of them run together. */
describe("with all layers on the GPU", () => {
  const all = { ...GREEDY, num_gpu: 99 };

  test("POST /api/generate: 16 greedy tokens are the reference's", async () => {
    const expected = await generate(cpu!, PROMPT, { ...GREEDY, num_predict: 16 });
    const got = await generate(gpu!, PROMPT, { ...all, num_predict: 16 });
    expect(expected["eval_count"]).toBeGreaterThan(10);
    expect(got["context"]).toEqual(expected["context"]);
  });

  test("POST /api/generate: the answer is the same whether the GPU returns candidates or all logits", async () => {
    const few = { ...all, num_predict: 5 };
    const kinds = [
      few,
      { ...few, temperature: 1, seed: 42, top_k: 40 },
      { ...few, temperature: 1.5, seed: 42, top_k: 100, min_p: 0.01, repeat_penalty: 1.3, frequency_penalty: 0.4 },
    ];
    const ask = async (options: object, logprobs: boolean): Promise<unknown> => {
      const body = { model: SMALL, prompt: LETTERS[0], options, logprobs, stream: false };
      const answer = (await (await gpu!.post("/api/generate", body)).json()) as Record<string, unknown>;
      expect(Array.isArray(answer["logprobs"])).toBe(logprobs);
      return answer["context"];
    };
    // log-probabilities depend on all logits
    const whole = await Promise.all(kinds.map((options) => ask(options, true)));
    expect(await Promise.all(kinds.map((options) => ask(options, false)))).toEqual(whole);
    expect(new Set(whole.map(String)).size).toBe(kinds.length);
  });

  test("models with adapters share a runner, and each gives its own answer in company", async () => {
    const names = [SMALL, ...TUNED];
    const [prompt] = LETTERS as [string];
    const alone: unknown[] = [];
    for (const name of names) {
      const { context } = await generate(gpu!, prompt, all, name);
      alone.push(context);
      expect(context).toEqual((await generate(cpu!, prompt, GREEDY, name))["context"]);
    }
    expect(new Set(alone.map(String)).size).toBe(names.length);
    const loads = async (): Promise<string | undefined> =>
      /^hearth_model_events_total\{event="load"\} (\d+)/m.exec(await (await fetch(`${gpu!.url}/metrics`)).text())?.[1];
    const before = await loads();
    const together = await Promise.all([...names, ...names].map((name) => generate(gpu!, prompt, all, name)));
    expect(together.map(({ context }) => context)).toEqual([...alone, ...alone]);
    expect(await loads()).toBe(before);
  });
});

test("POST /api/generate: four concurrent streams give the answers that each gives alone", async () => {
  const alone: string[] = [];
  for (const prompt of LETTERS) alone.push((await generate(gpu!, prompt))["response"]);
  const together = await Promise.all(LETTERS.map((prompt) => generate(gpu!, prompt)));
  expect(together.map((answer) => answer["response"])).toEqual(alone);
  expect(new Set(alone).size).toBe(LETTERS.length);
});

test("GET /api/ps: size_vram is 0 on a software adapter, whose memory is the machine's", async () => {
  await generate(gpu!, LETTERS[0]!);
  const { models } = (await (await fetch(`${gpu!.url}/api/ps`)).json()) as { models: Record<string, any>[] };
  const small = models.find(({ name }) => name === `${SMALL}:latest`);
  expect(small!["size"]).toBeGreaterThan(1e5); // counted just above
  expect(small!["size_vram"]).toBe(0);
});

/** The log's lines about models split between two devices. */
const splitLines = (hearth: Hearth): Record<string, any>[] =>
  hearth
    .log()
    .filter((line) => line.includes("on the GPU, the others on the CPU"))
    .map((line) => JSON.parse(line));

async function usesDriver(): Promise<boolean> {
  const pids = await gpu!.runnerPids();
  expect(pids).toHaveLength(1);
  return (await readFile(`/proc/${pids[0]}/maps`, "utf8")).includes("vk_swiftshader");
}

/** Each number of layers compiles all kernels again: steps with the same numbers share a test. */
test("options.num_gpu: 0 moves the model to the CPU; a number of layers moves them to the GPU and is logged once", async () => {
  await generate(gpu!, LETTERS[1]!, { ...GREEDY, num_gpu: -1 });
  expect(await usesDriver()).toBe(true);
  const off = await generate(gpu!, LETTERS[1]!, { ...GREEDY, num_gpu: 0 });
  expect(off["response"]).not.toBe("");
  expect(await usesDriver()).toBe(false);
  await generate(gpu!, LETTERS[1]!); // an option of one request does not affect the next
  expect(await usesDriver()).toBe(false);
  const known = splitLines(gpu!).length;
  const options = { ...GREEDY, num_predict: 24 };
  const expected = await generate(cpu!, LETTERS[0]!, options);
  const got = await generate(gpu!, LETTERS[0]!, { ...options, num_gpu: 2 });
  expect(expected["eval_count"]).toBeGreaterThan(10);
  expect(got["context"]).toEqual(expected["context"]);
  expect(await usesDriver()).toBe(true);
  const pids = await gpu!.runnerPids();
  const { models } = (await (await fetch(`${gpu!.url}/api/ps`)).json()) as { models: Record<string, any>[] };
  expect(models[0]!["size"]).toBeGreaterThan(1e5); // both parts
  expect(models[0]!["size_vram"]).toBe(0); // a software adapter has no VRAM
  await generate(gpu!, LETTERS[1]!, { ...GREEDY, num_gpu: 2 });
  await generate(gpu!, LETTERS[1]!); // leaves it open
  await generate(gpu!, LETTERS[1]!, { ...GREEDY, num_gpu: -1 }); // likewise
  expect(await gpu!.runnerPids()).toEqual(pids);
  expect(await eventually(() => splitLines(gpu!).length > known)).toBe(true);
  const lines = splitLines(gpu!).slice(known);
  expect(lines).toHaveLength(1);
  expect(lines[0]!["device"]).toMatch(/^SwiftShader.*: 2 of 3 layers, CPU \(\d+ threads?(, [^)]+)?\): the others$/);
});

test("HEARTH_GPU_MEMORY: layers that do not fit run on the CPU; num_gpu above the limit is an error with both sizes", async () => {
  const hearth = await startHearth({
    env: { ...env, HEARTH_BACKEND: "webgpu", HEARTH_GPU_MEMORY: "1000kB" },
  });
  try {
    await addSmallModel(hearth);
    const answer = await generate(hearth, LETTERS[0]!);
    expect(answer["response"]).toBe((await generate(cpu!, LETTERS[0]!))["response"]);
    expect(await eventually(() => splitLines(hearth).length > 0)).toBe(true);
    expect(splitLines(hearth)).toHaveLength(1);
    const [, count] = /: (\d) of 3 layers/.exec(splitLines(hearth)[0]!["device"])!;
    expect(Number(count)).toBeGreaterThanOrEqual(1);
    expect(Number(count)).toBeLessThan(3);
    const body = { model: SMALL, prompt: "a", options: { ...GREEDY, num_gpu: 3 }, stream: false };
    const refused = (await (await hearth.post("/api/generate", body)).json()) as { error: string };
    expect(refused.error).toMatch(/3 of 3 layers on the GPU: (\d+) bytes needed, 1000000 are there for a model/);
    expect((await generate(hearth, LETTERS[0]!))["response"]).toBe(answer["response"]);
  } finally {
    await hearth.stop();
  }
});

test("a client that disconnects while its model loads ends the load", async () => {
  await generate(gpu!, LETTERS[1]!);
  const [old] = await gpu!.runnerPids();
  const abort = new AbortController();
  const body = { model: SMALL, prompt: "a", options: { ...GREEDY, num_gpu: 1 }, stream: false };
  const left = gpu!.post("/api/generate", body, abort.signal).catch((error: Error) => error.name);
  const isLoading = async (): Promise<boolean> => (await gpu!.runnerPids()).some((pid) => pid !== old);
  expect(await eventually(isLoading, 60_000)).toBe(true);
  abort.abort();
  expect(await left).toBe("AbortError");
  expect(await eventually(async () => (await gpu!.runnerPids()).length === 0, 60_000)).toBe(true);
});
