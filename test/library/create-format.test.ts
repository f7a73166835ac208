/** The formats that a new model takes from its file's chat template. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { CreateRequest } from "../../src/library/create/creation.ts";
import { importBlob } from "../../src/library/store/blobs.ts";
import type { Library } from "../../src/library/create/library.ts";
import { blobSource } from "../../src/library/create/sources.ts";
import type { Store } from "../../src/library/store/store.ts";
import { fields, makeWorkplace, statusesOf } from "./creating.ts";
import { putModel, writeTinyGguf } from "./fixture.ts";

const CHATML = "{{ '<|im_start|>' + messages[0].content + '<|im_end|>' }}";
const STOP = ["<|im_start|>", "<|im_end|>"];

let folder: string;
let root: string;
let store: Store;
let library: Library;
let request: CreateRequest;
beforeEach(async () => {
  ({ folder, root, store, library } = await makeWorkplace());
  const path = join(folder, "chatml.gguf");
  await writeTinyGguf(path, { "tokenizer.chat_template": CHATML });
  const { digest } = await importBlob(root, path);
  const sources = [blobSource(root, { label: "x.gguf", digest })];
  request = fields({ sources });
});
afterEach(() => rm(folder, { recursive: true }));

const create = (changes: Partial<CreateRequest>): Promise<string[]> =>
  statusesOf(library.create({ ...request, ...changes }));
const entry = () => store.load("new");

test("a known chat template adds its stops, and is not stored as a TEMPLATE", async () => {
  expect(await create({ parameters: { top_k: 3 } })).toEqual([
    "parsing GGUF",
    "using existing layer D",
    "using autodetected template chatml",
    "creating new layer D",
    "writing manifest",
    "success",
  ]);
  const { parameters, template } = await entry();
  expect({ parameters, template }).toEqual({ parameters: { stop: STOP, top_k: 3 }, template: undefined });
});

test.each([
  ["</s>", ["<|system|>", "</s>", "<|user|>", "<|assistant|>"]],
  ["<|endoftext|>", ["<|system|>", "<|user|>", "<|assistant|>"]],
])("the end of text in a chat format is a stop only if it is the vocabulary's: %s", async (eos, stop) => {
  const path = join(folder, "zephyr.gguf");
  await writeTinyGguf(path, {
    "tokenizer.chat_template": "{{ '<|user|>' + messages[0].content + eos_token + '<|assistant|>' }}",
    "tokenizer.ggml.tokens": ["a", eos],
    "tokenizer.ggml.eos_token_id": { u32: 1 },
  });
  const { digest } = await importBlob(root, path);
  expect(await create({ sources: [blobSource(root, { label: "zephyr.gguf", digest })] })).toContain(
    "using autodetected template zephyr",
  );
  expect((await entry()).parameters).toEqual({ stop });
});

test("creating from a Modelfile reports only its layers", async () => {
  const steps = await create({ shape: "modelfile" });
  expect(steps.slice(2, -2)).toEqual(["using already created layer D", ...Array(2).fill("writing layer D")]);
  expect((await entry()).parameters).toEqual({ stop: STOP });
});

test("a request's or base's stops or template replace the detected stops", async () => {
  await create({ parameters: { stop: ["END"] } });
  expect((await entry()).parameters).toEqual({ stop: ["END"] });
  await create({ template: "{{ .Prompt }}" });
  expect((await entry()).parameters).toEqual({});
  await putModel(root, "base", { gguf: { "tokenizer.chat_template": CHATML } });
  await create({ base: "base", sources: [] });
  expect((await entry()).parameters).toEqual({});
});

test("a chat template that does not parse gives a warning, unless the request has a template", async () => {
  const path = join(folder, "broken.gguf");
  await writeTinyGguf(path, { "tokenizer.chat_template": "{% if messages %}" });
  const { digest } = await importBlob(root, path);
  const sources = [blobSource(root, { label: "broken.gguf", digest })];
  const warning = /^warning: broken\.gguf: chat template: .+: chats will fail unless the model gets a TEMPLATE$/;
  const warnings = (statuses: string[]): string[] => statuses.filter((status) => status.startsWith("warning"));
  expect(warnings(await create({ sources }))).toEqual([expect.stringMatching(warning)]);
  expect(warnings(await create({ sources, shape: "modelfile" }))).toHaveLength(1);
  expect(warnings(await create({ sources, template: "{{ .Prompt }}" }))).toEqual([]);
  expect(warnings(await create({}))).toEqual([]);
});
