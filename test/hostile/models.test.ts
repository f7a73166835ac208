/** Model files that were damaged on purpose, loaded as a server loads them: an error that names file and field. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { AppError, messageOf } from "../../src/base/errors.ts";
import { chooseBackend } from "../../src/engine/backends/index.ts";
import { loadEngine } from "../../src/engine/batching/load.ts";
import { mapFile } from "../../src/engine/formats/files/map.ts";
import { systemLoop } from "../../src/engine/batching/event-loop.ts";
import type { WriteValue } from "../../src/engine/formats/files/write.ts";
import { RunnerProcess } from "../../src/runtime/processes/runner-process.ts";
import { SAMPLING_DEFAULTS } from "../../src/engine/text/sampling/options.ts";
import { RUNNER } from "../program.ts";
import { BUN_ENV } from "../bun-env.ts";
import { writeEdited, type Edit } from "./edited.ts";

setDefaultTimeout(20_000);

const forever = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "hearth-hostile-"));
const path = join(folder, "broken.gguf");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes the embedded model with something else in it. */
const writeBroken = (edit: Edit): Promise<void> => writeEdited(path, edit);

const set =
  (key: string, value: WriteValue | undefined): Edit =>
  (metadata) =>
    void (metadata[key] = value);

const broken: [name: string, edit: Edit, message: string][] = [
  ["no context", set("llama.context_length", { u32: 0 }), "'llama.context_length': expected a whole number of 1 … "],
  ["an endless context", set("llama.context_length", { u64: 2n ** 53n }), "'llama.context_length': expected "],
  ["a context of NaN", set("llama.context_length", { f32: NaN }), "'llama.context_length': expected "],
  ["heads that do not divide", set("llama.attention.head_count_kv", { u32: 3 }), "'llama.attention.head_count_kv': "],
  ["negative layers", set("llama.block_count", { i32: -1 }), "'llama.block_count': expected "],
  [
    "a rotation wider than the head",
    set("llama.rope.dimension_count", { u32: 4096 }),
    "'llama.rope.dimension_count': ",
  ],
  ["experts that are not there", set("llama.expert_count", { u32: 64 }), "expert"],
  ["no tokens", set("tokenizer.ggml.tokens", undefined), "'tokenizer.ggml.tokens': expected an array of strings"],
  ["one token", set("tokenizer.ggml.tokens", ["a"]), "'tokenizer.ggml."],
  ["an unknown tokenizer", set("tokenizer.ggml.model", "x"), "'tokenizer.ggml.model': expected one of "],
  ["an end token of text", set("tokenizer.ggml.eos_token_id", "x"), "'tokenizer.ggml.eos_token_id': expected a number"],
  [
    "a template that is a number",
    set("tokenizer.chat_template", { u32: 3 }),
    "'tokenizer.chat_template': expected text",
  ],
  ["an unknown architecture", set("general.architecture", "x"), "general.architecture: expected one of "],
  ["no embedding", (_, tensors) => void tensors.delete("token_embd.weight"), "'token_embd.weight': expected "],
];

for (const [name, edit, message] of broken) {
  test(`${name}: the error names the file and the fault`, async () => {
    await writeBroken(edit);
    const options = { ctxLen: 64, slots: 1, chunk: 64, threads: 1, precise: false, cacheDir: undefined };
    const quiet = { emit() {}, onEmbed() {}, loop: systemLoop(), open: mapFile };
    const load = loadEngine(path, { ...options, ...quiet, backend: await chooseBackend("cpu") });
    const error = await load.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(AppError);
    expect(messageOf(error)).toStartWith(`${path}: `);
    expect(messageOf(error)).toContain(message);
  });
}

for (const backend of ["cpu", "simd", "onnx"]) {
  test(`${backend}: weights that make NaN or Infinity end the answer with an error, and the runner continues`, async () => {
    await writeBroken((_, tensors) => tensors.get("output_norm.weight")!.data.fill(0x7f));
    const runner = await startRunner(backend);
    for (const prompt of ["hello", "hello again"]) {
      expect(await failureOf(runner, prompt)).toMatch(
        /(logits|'output_norm.weight'\)): expected .*(NaN|Infinity) at row 0/,
      );
    }
    await runner.close();
  });

  test(`${backend}: prompt tokens beyond the embedding table are refused, and the runner continues`, async () => {
    await writeBroken((_, tensors) => {
      const table = tensors.get("token_embd.weight")!;
      const rows = 300; // bytes only, 4096 in all
      tensors.set(table.name, {
        ...table,
        shape: [table.shape[0]!, rows],
        data: table.data.subarray(0, (table.data.length / table.shape[1]!) * rows),
      });
    });
    const runner = await startRunner(backend);
    expect(await failureOf(runner, "hello world")).toMatch(/^token \d+: expected /);
    expect(await failureOf(runner, "hello world")).toMatch(/^token \d+: expected /);
    await runner.close();
  });
}

function startRunner(backend: string): Promise<RunnerProcess> {
  const load = {
    kind: "load",
    path,
    adapters: [],
    template: { go: undefined, prefersGo: undefined },
    backend,
    ctxLen: 64,
    slots: 2,
    chunk: 64,
    threads: 1,
    precise: false,
    gpuLayers: undefined,
    gpuMemory: undefined,
  } as const;
  const spawn = {
    command: RUNNER,
    env: { PATH: process.env["PATH"], ...BUN_ENV },
    loadTimeoutMs: 15_000,
  };
  return RunnerProcess.start({ ...load, cacheDir: undefined }, spawn, forever);
}

async function failureOf(runner: RunnerProcess, prompt: string): Promise<string> {
  try {
    const options = { ...SAMPLING_DEFAULTS, num_predict: 3 };
    for await (const _ of runner.generate(
      { asked: { kind: "text", text: prompt, context: [] }, options, shift: true },
      forever,
    ))
      continue;
    return "no failure";
  } catch (error) {
    return messageOf(error);
  }
}
