/** Sampling settings in a GGUF, on the real server: its defaults, and its suppressed tokens. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf, type WriteValue } from "../../src/engine/formats/files/write.ts";
import { makeModel } from "../engine/architectures/models.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(60_000);

const DEFAULTS = { "general.sampling.temp": { f32: 1.5 }, "general.sampling.top_k": { i32: 1 } };
const PROMPT = "abcabd";

let hearth: Hearth;
const folder = mkdtempSync(join(tmpdir(), "hearth-options-"));
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_IMPORT_DIRS: folder } });
  await create("plain", {});
  await create("file", DEFAULTS);
  await create("modelfile", DEFAULTS, "PARAMETER top_k 30");
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true });
});

/** Creates a model whose file has these keys. */
async function create(model: string, keys: Readonly<Record<string, WriteValue>>, modelfile = ""): Promise<void> {
  const path = join(folder, `${model}.gguf`);
  const { metadata, tensors } = makeModel("llama");
  await writeGguf(path, { metadata: { ...metadata, ...keys }, tensors });
  const created = await hearth.post("/api/create", { model, modelfile: `FROM ${path}\n${modelfile}`, stream: false });
  expect(await created.json()).toEqual({ status: "success" });
}

const json = async (reply: Promise<Response>): Promise<any> => (await reply).json();

async function answer(model: string, options: object): Promise<string> {
  const asked = { model, prompt: PROMPT, raw: true, stream: false, options: { num_predict: 12, ...options } };
  const reply = await json(hearth.post("/api/generate", asked));
  expect(reply.error).toBeUndefined();
  return reply.response;
}

const answers = (model: string, options: object): Promise<string[]> =>
  Promise.all([1, 2, 3, 4].map((seed) => answer(model, { seed, ...options })));

test("options of a request override the Modelfile, the Modelfile the model file, and the model file our defaults", async () => {
  const greedy = await answer("plain", { temperature: 0 });
  expect(await answers("file", {})).toEqual([greedy, greedy, greedy, greedy]);
  const same = { temperature: 1.5, top_k: 30 };
  const wild = await answers("plain", same);
  expect(new Set(wild).size).toBeGreaterThan(1);
  expect(await answers("modelfile", {})).toEqual(wild);
  expect(await answers("file", { top_k: 30 })).toEqual(wild);
  expect(await answers("modelfile", { top_k: 1 })).toEqual([greedy, greedy, greedy, greedy]);
});

test("POST /api/show and /v1/responses report the defaults of the model file", async () => {
  const show = (model: string) => json(hearth.post("/api/show", { model }));
  const { parameters, modelfile } = await show("file");
  expect(parameters).toMatch(/^temperature +1\.5\ntop_k +1$/);
  expect(modelfile).not.toContain("PARAMETER");
  expect((await show("modelfile")).parameters).toMatch(/^temperature +1\.5\ntop_k +30$/);
  const response = await json(hearth.post("/v1/responses", { model: "file", input: "a", max_output_tokens: 1 }));
  expect(response).toMatchObject({ temperature: 1.5, top_p: 0.9 });
});

test("a default in the model file that is not a number is an error that names its key", async () => {
  await create("broken", { "general.sampling.temp": { f32: NaN } });
  const { error } = await json(hearth.post("/api/generate", { model: "broken", prompt: PROMPT, stream: false }));
  expect(error).toContain("'general.sampling.temp': expected a finite number, got NaN");
});

test("a suppressed token is never generated, whichever sampler is used", async () => {
  const greedy = await answer("plain", { temperature: 0 });
  const first = greedy[0]!;
  expect(first).toMatch(/[a-z]/);
  await create("suppressed", { "tokenizer.ggml.suppress_tokens": Int32Array.of(first.charCodeAt(0) - 97) });
  const ways = [{ temperature: 0 }, { temperature: 3, top_k: 0, top_p: 1 }, { mirostat: 2 }, { repeat_penalty: 2 }];
  for (const options of ways)
    for (const text of await answers("suppressed", options)) expect(text).not.toContain(first);
});
