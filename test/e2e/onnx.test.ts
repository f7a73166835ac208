/** ONNX folders made by the test: they answer and embed like the library when it is called directly. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { encoderFolder, llamaFolder, writeFiles, type FolderFiles } from "../library/convert/onnx-folder.ts";
import { startFront } from "../library/registry/front.ts";
import { byLibrary, type LibraryAnswers } from "../library/convert/library-answers.ts";
import { eventually, ndjson, startHearth, type Hearth } from "./hearth.ts";
import { uploadedFiles } from "./upload.ts";

setDefaultTimeout(60_000);

const PROMPT = "Once upon a time there was";
const MESSAGES = [
  { role: "system", content: "Be short." },
  { role: "user", content: "Hello, who are you?" },
];
const INPUTS = ["abc def", "x", "the quick brown fox jumps"];
const GREEDY = { temperature: 0, num_predict: 40, num_ctx: 256 };

let home: string;
let hearth: Hearth;
let library: LibraryAnswers;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "hearth-onnx-test-"));
  const imports = join(home, "imports");
  const gguf = openGguf(join(import.meta.dir, "../../models/hearth/hearth.gguf"));
  const llama = await writeFiles(join(imports, "llama/model"), llamaFolder(gguf.metadata, { isExternal: true }));
  await writeFiles(join(imports, "other/model"), llamaFolder(gguf.metadata, { seed: 2 }));
  gguf.close();
  const encoder = await writeFiles(join(imports, "encoder"), encoderFolder());
  library = await byLibrary({ llama, encoder, prompt: PROMPT, messages: MESSAGES, inputs: INPUTS, tokens: 40 });
  hearth = await startHearth({ home, env: { HEARTH_IMPORT_DIRS: imports } });
  for (const model of ["llama", "other"]) {
    expect(await steps("/api/create", { model, modelfile: `FROM ${join(imports, model, "model")}` })).toContain(
      "success",
    );
  }
  expect(await steps("/api/create", { model: "encoder", files: await uploaded(encoderFolder()) })).toContain("success");
});
afterAll(async () => {
  await hearth.stop();
  await rm(home, { recursive: true });
});

const uploaded = (files: FolderFiles) => uploadedFiles(hearth, files, "encoder/");

async function steps(path: string, body: object): Promise<string[]> {
  const all = await Array.fromAsync(ndjson(await hearth.post(path, body)));
  return all.map((step) => String(step["error"] ?? step["status"]));
}

const ask = async (path: string, body: object): Promise<any> =>
  (await hearth.post(path, { model: "llama", stream: false, options: GREEDY, ...body })).json();

test("generate gives the library's text, streamed or not", async () => {
  const whole = await ask("/api/generate", { prompt: PROMPT, raw: true });
  expect(whole.response).toBe(library.text);
  expect(whole).toMatchObject({ done_reason: "length", eval_count: 40, prompt_eval_count: library.promptTokens });
  const pieces = await Array.fromAsync(
    ndjson(await hearth.post("/api/generate", { model: "llama", prompt: PROMPT, raw: true, options: GREEDY })),
  );
  expect(pieces.length).toBeGreaterThan(20); // tokens, not words
  expect(pieces.map(({ response }) => response).join("")).toBe(library.text);
});

test("chat uses the template of the model's folder", async () => {
  const answer = await ask("/api/chat", { messages: MESSAGES });
  expect(answer.prompt_eval_count).toBe(library.chatTokens);
  expect(answer.message.content).toBe(library.chatText);
  const { template, capabilities, details } = await ask("/api/show", { model: "llama" });
  expect(template).toContain("<|im_start|>");
  expect(capabilities).toEqual(expect.arrayContaining(["completion", "tools"]));
  expect(details).toMatchObject({ format: "onnx", family: "llama", quantization_level: "F32" });
});

test("stop strings, seeds, formats and a context shift work as on other backends", async () => {
  const stop = library.text.slice(20, 26);
  const stopped = await ask("/api/generate", { prompt: PROMPT, raw: true, options: { ...GREEDY, stop: [stop] } });
  expect(stopped).toMatchObject({ response: library.text.slice(0, library.text.indexOf(stop)), done_reason: "stop" });
  const drawn = { prompt: PROMPT, raw: true, options: { temperature: 1, seed: 5, num_predict: 8 } };
  expect((await ask("/api/generate", drawn)).response).toBe((await ask("/api/generate", drawn)).response);
  const { response } = await ask("/api/generate", { prompt: "x", format: { enum: ["yes", "no"] } });
  expect(["yes", "no"]).toContain(JSON.parse(response));
  const long = await ask("/api/generate", { prompt: PROMPT, raw: true, options: { ...GREEDY, num_ctx: 24 } });
  expect(long).toMatchObject({ eval_count: 40, done_reason: "length" });
});

test("embed gives the library's vectors", async () => {
  const { embeddings } = await ask("/api/embed", { model: "encoder", input: INPUTS });
  expect(embeddings).toHaveLength(INPUTS.length);
  for (const [i, wanted] of library.embeddings.entries()) {
    const off = wanted.map((value, k) => Math.abs(value - embeddings[i][k]));
    expect(Math.max(...off)).toBeLessThan(1e-6);
    expect(embeddings[i]).toHaveLength(wanted.length);
  }
  expect((await ask("/api/show", { model: "encoder" })).capabilities).toEqual(["embedding"]);
  expect(await ask("/api/embed", { input: "x" })).toEqual({
    error: "the model does not support embeddings: its graph has logits only",
  });
});

test("a client that disconnects ends its answer, and the next request is answered", async () => {
  const abort = new AbortController();
  const options = { ...GREEDY, num_predict: 100_000 };
  const body = { model: "llama", prompt: PROMPT, raw: true, options };
  for await (const _ of ndjson(await hearth.post("/api/generate", body, abort.signal))) break;
  abort.abort();
  const isIdle = async (): Promise<boolean> =>
    /^hearth_requests_running 0$/m.test(await (await fetch(`${hearth.url}/metrics`)).text());
  expect(await eventually(isIdle, 30_000)).toBe(true);
  expect((await ask("/api/generate", { prompt: PROMPT, raw: true })).response).toBe(library.text);
});

test("models with the same configuration but other graphs are different models", async () => {
  const other = await ask("/api/generate", { model: "other", prompt: PROMPT, raw: true });
  expect(other.response).not.toBe(library.text);
  const { models } = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: { name: string }[] };
  expect(models.map(({ name }) => name)).toEqual(expect.arrayContaining(["other:latest"]));
});

describe("models in the store", () => {
  test("a copy and a model created from it answer alike; blobs are removed with their last model", async () => {
    await hearth.post("/api/copy", { source: "llama", destination: "copy" });
    await steps("/api/create", { model: "built", from: "copy", system: "Be short." });
    const answer = await ask("/api/generate", { model: "built", prompt: PROMPT, raw: true });
    expect(answer.response).toBe(library.text);
    const { modelfile } = await ask("/api/show", { model: "built" });
    expect(modelfile).toContain("\nFROM built:latest\n");
    const blobs = (): Promise<string[]> => readdir(join(home, ".hearth/models/blobs"));
    const files = await uploaded({ ...encoderFolder(), "extra.json": { x: 1 } });
    const before = await blobs();
    expect(await steps("/api/create", { model: "lone", files })).toContain("success");
    await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body: JSON.stringify({ model: "lone" }) });
    const extra = files["encoder/extra.json"]!.replace(":", "-");
    expect(await blobs()).toEqual(before.filter((name) => name !== extra));
    expect((await ask("/api/embed", { model: "encoder", input: "x" })).embeddings).toHaveLength(1);
  });

  test("are pushed and pulled as layers with file names", async () => {
    const front = startFront();
    try {
      const model = `${front.host}/library/onnx`;
      await hearth.post("/api/copy", { source: "llama", destination: model });
      expect((await steps("/api/push", { model, insecure: true })).at(-1)).toBe("success");
      await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body: JSON.stringify({ model }) });
      expect((await steps("/api/pull", { model, insecure: true })).at(-1)).toBe("success");
      expect((await ask("/api/generate", { model, prompt: PROMPT, raw: true })).response).toBe(library.text);
    } finally {
      await front.stop();
    }
  });

  test("are not quantized, as they are not GGUF", async () => {
    expect((await steps("/api/create", { model: "q", from: "llama", quantize: "q4_0" })).at(-1)).toBe(
      "llama:latest: has no tensors to quantize: not a GGUF's",
    );
  });
});
