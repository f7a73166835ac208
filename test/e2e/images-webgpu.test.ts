/** Images of a model on the WebGPU backend, through the three stock clients, and after a restart of the server. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { QUICK_KERNELS, swiftShaderEnv } from "../engine/backends/webgpu/swiftshader.ts";
import { makeProjector, makeVisionText, picture } from "../engine/vision/vision-model.ts";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000); // a CPU that plays a GPU

const folder = mkdtempSync(join(tmpdir(), "hearth-vision-gpu-"));
const MODEL = "sees";
const QUESTION = "what is this?";
const TOKENS = 6;
const image = picture(1).toString("base64");
const home = join(folder, "home");
let hearth: Hearth;

async function start(): Promise<Hearth> {
  const driver = { ...(await swiftShaderEnv()), HEARTH_GPU_KERNELS: QUICK_KERNELS };
  return startHearth({ env: { ...driver, HEARTH_BACKEND: "webgpu" }, home });
}

beforeAll(async () => {
  await writeGguf(join(folder, "text.gguf"), makeVisionText());
  await writeGguf(join(folder, "projector.gguf"), makeProjector());
  writeFileSync(join(folder, "Modelfile"), "FROM ./text.gguf\nFROM ./projector.gguf\nPARAMETER num_ctx 512\n");
  hearth = await start();
  const env = { HEARTH_HOST: hearth.url };
  const made = await runHearth(["create", MODEL, "-f", join(folder, "Modelfile")], { home: hearth.home, env });
  expect(made.code).toBe(0);
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** An answer through Ollama's client. @param layers on the GPU; undefined: as the model is loaded */
async function askOllama(content: string, layers?: number): Promise<string> {
  const reply = await new Ollama({ host: hearth.url }).chat({
    model: MODEL,
    messages: [{ role: "user", content, images: [image] }],
    options: { temperature: 0, num_predict: TOKENS, ...(layers !== undefined && { num_gpu: layers }) },
    stream: false,
  });
  return reply.message.content;
}

/** An answer through OpenAI's client, and the numbers of tokens of the prompt, all and cached. */
async function askOpenAi(): Promise<{ said: string | null; prompt: number; cached: number }> {
  const openai = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
  const completed = await openai.chat.completions.create({
    model: MODEL,
    max_tokens: TOKENS,
    temperature: 0,
    messages: [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } },
          { type: "text", text: QUESTION },
        ],
      },
    ],
  });
  const { prompt_tokens: prompt, prompt_tokens_details: details } = completed.usage!;
  return { said: completed.choices[0]!.message.content, prompt, cached: details?.cached_tokens ?? 0 };
}

async function encodedSoFar(): Promise<number> {
  const text = await (await fetch(`${hearth.url}/metrics`)).text();
  return Number(/^hearth_images_encoded_total (\d+)$/m.exec(text)?.[1]);
}

test("each client gets the CPU's answer, and an image is encoded once", async () => {
  const expected = await askOllama(QUESTION, 0);
  const before = await encodedSoFar();
  expect(await askOllama(QUESTION, 99)).toBe(expected);
  expect(await encodedSoFar()).toBe(before + 1); // a load forgets the images of the last one

  expect((await askOpenAi()).said).toBe(expected);

  const anthropic = new Anthropic({ baseURL: hearth.url, apiKey: "none", maxRetries: 0 });
  const message = await anthropic.messages.create({
    model: MODEL,
    max_tokens: TOKENS,
    messages: [
      {
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: image } },
          { type: "text", text: QUESTION },
        ],
      },
    ],
    ...({ temperature: 0 } as object),
  });
  expect(message.content).toEqual([expect.objectContaining({ type: "text", text: expected })]);
  expect(await askOllama("and what colour has it?")).not.toBe(expected);
  expect(await encodedSoFar()).toBe(before + 1);
});

test("a prompt with an image is cached across a restart", async () => {
  const before = await askOpenAi();
  hearth.process.kill("SIGTERM"); // prefixes in memory are written then
  await hearth.process.exited;
  hearth = await start();
  const after = await askOpenAi();
  expect(after.said).toBe(before.said);
  expect(after.cached).toBeGreaterThan(after.prompt - 4); // a few tokens at the end are read again
});
