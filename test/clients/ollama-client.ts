/**
 * Checks of a server with the `ollama` npm client: given a base URL and the name of an installed model. They do not
 * depend on the model's answers.
 */
import { expect } from "bun:test";
import { Ollama, type ChatResponse, type GenerateResponse } from "ollama";
import { NEVER_ENDING, type Target } from "./target.ts";

const MESSAGES = [{ role: "user", content: "Say hello." }];
/** Short answers, the same each time. */
const OPTIONS = { num_predict: 8, temperature: 0, seed: 1 };

const clientOf = ({ url }: Target): Ollama => new Ollama({ host: url });

function expectStatistics(done: GenerateResponse | ChatResponse): void {
  expect(done.done).toBe(true);
  expect(["stop", "length"]).toContain(done.done_reason);
  for (const key of ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"] as const) {
    expect<unknown>([key, Number.isInteger(done[key]) && done[key] >= 0]).toEqual([key, true]);
  }
  expect(done.prompt_eval_count).toBeGreaterThan(0);
  expect(done.eval_count).toBeWithin(1, OPTIONS.num_predict + 1);
  expect(`${done.created_at}`).toMatch(/^2\d{3}-[01]\d-[0-3]\dT[\d:.]+Z$/);
}

async function collect<T>(parts: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const part of parts) found.push(part);
  return found;
}

/** Streamed and not: the same text, and statistics only at the end. */
export async function generateBothWays(target: Target): Promise<void> {
  const request = { model: target.model, prompt: "Say hello.", options: OPTIONS };
  const whole = await clientOf(target).generate({ ...request, stream: false });
  expect(whole.model).toBe(target.model);
  expect(whole.context.length).toBeGreaterThan(0);
  expectStatistics(whole);
  const parts = await collect(await clientOf(target).generate({ ...request, stream: true }));
  for (const part of parts.slice(0, -1)) expect([part.done, "eval_count" in part]).toEqual([false, false]);
  expectStatistics(parts.at(-1)!);
  expect(parts.map((part) => part.response).join("")).toBe(whole.response ?? "");
}

export async function chatBothWays(target: Target): Promise<void> {
  const request = { model: target.model, messages: MESSAGES, options: OPTIONS };
  const whole = await clientOf(target).chat({ ...request, stream: false });
  expect(whole.message.role).toBe("assistant");
  expectStatistics(whole);
  const parts = await collect(await clientOf(target).chat({ ...request, stream: true }));
  for (const part of parts) expect(part.message.role).toBe("assistant");
  for (const part of parts.slice(0, -1)) expect(part.done).toBe(false);
  expectStatistics(parts.at(-1)!);
  expect(parts.map((part) => part.message.content).join("")).toBe(whole.message.content);
}

/** Raw answers carry no context; a context can be sent back. */
export async function contextAndRaw(target: Target): Promise<void> {
  const client = clientOf(target);
  const request = { model: target.model, prompt: "Say hello.", options: OPTIONS, stream: false as const };
  const raw = await client.generate({ ...request, raw: true });
  expect(raw.context).toBeUndefined();
  const first = await client.generate(request);
  expectStatistics(await client.generate({ ...request, context: first.context }));
}

/** `format`: any JSON object, and one that fits a schema. */
export async function jsonFormats(target: Target): Promise<void> {
  const request = {
    model: target.model,
    messages: [{ role: "user", content: "Reply with a JSON object." }],
    options: { ...OPTIONS, num_predict: 200 },
    stream: false as const,
  };
  const free = await clientOf(target).chat({ ...request, format: "json" });
  if (free.done_reason === "stop") expect(JSON.parse(free.message.content)).toBeObject();
  const schema = {
    type: "object",
    properties: { ok: { type: "boolean" } },
    required: ["ok"],
    additionalProperties: false,
  };
  const fitting = await clientOf(target).chat({ ...request, format: schema });
  expect(fitting.done_reason).toBe("stop");
  expect(JSON.parse(fitting.message.content)).toEqual({ ok: expect.any(Boolean) });
}

/** `abort` ends the stream with an error, and the server serves on. */
export async function abort(target: Target): Promise<void> {
  const client = clientOf(target);
  const parts = await client.generate({
    model: target.model,
    prompt: "Count.",
    format: NEVER_ENDING,
    options: { num_predict: 100_000 },
    stream: true,
  });
  const read = async (): Promise<void> => {
    for await (const part of parts) if (!part.done) client.abort();
  };
  expect(await read().catch((error: Error) => error.name)).toBe("AbortError");
  expect((await clientOf(target).list()).models.length).toBeGreaterThan(0);
}

export async function listAndShow(target: Target): Promise<void> {
  const client = clientOf(target);
  const { models } = await client.list();
  const item = models.find((model) => model.name === target.model);
  expect(structuredClone(item)).toMatchObject({
    model: target.model,
    size: expect.any(Number),
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    details: { format: "gguf", family: expect.any(String), quantization_level: expect.any(String) },
  });
  const shown = await client.show({ model: target.model });
  expect(shown.details).toMatchObject({ format: "gguf", family: item!.details.family });
  expect(shown.modelfile).toContain("FROM ");
  const info = shown.model_info as unknown as Record<string, unknown>; // typed as a Map, sent as an object
  expect(info["general.architecture"]).toBeString();
  expect(info["tokenizer.ggml.tokens"]).toEqual([]);
  expect((await client.version()).version).toBeString();
}

/** `keep_alive`, and requests without a prompt: the loaded models, and their expiry. */
export async function loadAndUnload(target: Target): Promise<void> {
  const client = clientOf(target);
  const { model } = target;
  const inMemory = async () => (await client.ps()).models.find((item) => item.name === model);
  const load = await client.generate({ model, prompt: "", keep_alive: "10m", stream: false });
  expect(load).toMatchObject({ response: "", done: true, done_reason: "load" });
  const minutes = (new Date((await inMemory())!.expires_at).getTime() - Date.now()) / 60_000;
  expect(minutes).toBeGreaterThan(9);
  expect(minutes).toBeLessThanOrEqual(10.1);
  const unload = await client.chat({ model, messages: [], keep_alive: 0, stream: false });
  expect(unload).toMatchObject({ message: { role: "assistant", content: "" }, done: true, done_reason: "unload" });
  while (await inMemory()) await Bun.sleep(20);
  await client.generate({ model, prompt: "hi", options: OPTIONS, keep_alive: 0, stream: false });
  while (await inMemory()) await Bun.sleep(20);
}

export async function clearErrors(target: Target): Promise<void> {
  const client = clientOf(target);
  const missing = client.generate({ model: "does-not-exist", prompt: "hi", stream: false });
  await expect(missing).rejects.toThrow("model 'does-not-exist' not found");
  const streamed = client.chat({ model: "does-not-exist", messages: MESSAGES, stream: true });
  await expect(streamed).rejects.toMatchObject({ status_code: 404 });
  const option = { temperature: "hot" as unknown as number }; // a value from an untyped client
  const wrong = client.chat({ model: target.model, messages: MESSAGES, options: option, stream: false });
  await expect(wrong).rejects.toThrow('option "temperature" must be of type float32');
  const image = client.generate({ model: target.model, prompt: "hi", images: ["not base64!"], stream: false });
  await expect(image).rejects.toThrow("images.0: expected base64");
}

/** One text or several, and the older endpoint. */
export async function embedTexts(target: Target): Promise<void> {
  const client = clientOf(target);
  const { embeddings, ...rest } = await client.embed({ model: target.model, input: ["a fox", "a hen"] });
  expect(embeddings).toHaveLength(2);
  for (const vector of embeddings) expect(Math.hypot(...vector)).toBeCloseTo(1, 4);
  expect(rest).toMatchObject({ model: target.model, prompt_eval_count: expect.any(Number) });
  const short = await client.embed({ model: target.model, input: "a fox", dimensions: 4, truncate: true });
  expect(short.embeddings.map((vector) => vector.length)).toEqual([4]);
  const { embedding } = await client.embeddings({ model: target.model, prompt: "a fox" });
  expect(embedding).toHaveLength(embeddings[0]!.length);
  await expect(client.embed({ model: "does-not-exist", input: "x" })).rejects.toMatchObject({ status_code: 404 });
}

/** A model is created, shown, copied and deleted; its base stays. */
export async function manageModels(target: Target): Promise<void> {
  const client = clientOf(target);
  const request = { model: "made:1", from: target.model, system: "You are a pirate.", parameters: { top_k: 3 } };
  const steps = await collect(await client.create({ ...request, stream: true }));
  expect(steps.at(-1)).toMatchObject({ status: "success" });
  expect(steps.map(({ status }) => status.split(" ")[0])).toContain("writing");
  expect(await client.create({ ...request, stream: false })).toMatchObject({ status: "success" });
  expect(await client.show({ model: "made:1" })).toMatchObject({
    system: "You are a pirate.",
    parameters: expect.stringMatching(/^top_k +3$/m),
    details: { parent_model: target.model },
  });
  expect(await client.copy({ source: "made:1", destination: "user/copy" })).toEqual({ status: "success" });
  expect(await client.delete({ model: "made:1" })).toEqual({ status: "success" });
  const names = (await client.list()).models.map((model) => model.name);
  expect([names.includes("user/copy:latest"), names.includes("made:1"), names.includes(target.model)]).toEqual([
    true,
    false,
    true,
  ]);
  await client.delete({ model: "user/copy" });
  const missing = client.copy({ source: "made:1", destination: "x" });
  await expect(missing).rejects.toMatchObject({ status_code: 404, message: 'model "made:1" not found' });
  await expect(client.delete({ model: "made:1" })).rejects.toThrow("model 'made:1' not found");
  // a missing base is pulled, here from a port without a server
  const base = client.create({ model: "x", from: "127.0.0.1:1/library/none", stream: true }).then(collect);
  await expect(base).rejects.toThrow("127.0.0.1:1");
}

/** Creates a model from an uploaded file. The client passes on fields that its types lack. */
export async function createFromUpload(target: Target): Promise<void> {
  const client = clientOf(target);
  const { modelfile } = await client.show({ model: target.model });
  const digest = /^FROM .*sha256-([0-9a-f]{64})$/m.exec(modelfile)?.[1];
  const url = `${target.url}/api/blobs/sha256:${digest}`;
  expect((await fetch(url, { method: "HEAD" })).status).toBe(200);
  expect((await fetch(url, { method: "POST", body: "not read: it is there" })).status).toBe(200);
  const request = { model: "uploaded", files: { "model.gguf": `sha256:${digest}` }, stream: true as const };
  const steps = await collect(await client.create(request));
  const said = steps.map(({ status }) => status);
  expect(said.slice(0, 2)).toEqual(["parsing GGUF", `using existing layer sha256:${digest}`]);
  // Between them the stop strings of the file's template
  expect(said.slice(-2)).toEqual(["writing manifest", "success"]);
  await client.delete({ model: "uploaded" });
  expect((await fetch(url, { method: "HEAD" })).status).toBe(200); // the other model still uses it
}

/** All checks, by name. */
export const CHECKS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "generate, streaming and not": generateBothWays,
  "chat, streaming and not": chatBothWays,
  "context and raw": contextAndRaw,
  "JSON and JSON schema": jsonFormats,
  abort,
  "list, show and version": listAndShow,
  "load, ps, keep_alive and unload": loadAndUnload,
  "embed, one text and several": embedTexts,
  "create, show, copy and delete": manageModels,
  "create from an upload": createFromUpload,
  "clear errors": clearErrors,
};
