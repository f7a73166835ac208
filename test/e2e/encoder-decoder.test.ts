/**
 * A model whose encoder reads the prompt, T5 with random weights: from a folder of Hugging Face to the same answers as
 * in transformers.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Ollama, type Message } from "ollama";
import OpenAI from "openai";
import { encodeSafetensors, writeFolder } from "../library/convert/hugging-face.ts";
import { readOriginals, tensorsOf } from "../library/convert/originals.ts";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "hearth-encoder-decoder-"));
const home = mkdtempSync(join(tmpdir(), "hearth-encoder-decoder-home-"));
const MODEL = "reads";
const MARKS = ["<pad>", "</s>", "<unk>", "▁"];
const VOCAB = 320;
const original = (await readOriginals())["T5-2"]!;
const [, ...answer] = original.answer!;
const OPTIONS = { temperature: 0, num_predict: answer.length };
let hearth: Hearth;

/** A piece for each id: after the marks, single characters. */
const pieceOf = (id: number): string => MARKS[id] ?? String.fromCodePoint(0x4e00 + id);
const textOf = (ids: readonly number[]): string => ids.map(pieceOf).join("").replaceAll("▁", " ");
/** Without the space before it and the end after it, which the tokenizer adds. */
const PROMPT = textOf(original.read!.slice(1, -1));
const ANSWER = textOf(answer);

const tokenizer = {
  added_tokens: MARKS.slice(0, 3).map((content, id) => ({ id, content, special: true })),
  normalizer: null,
  pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
  decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
  post_processor: {
    type: "TemplateProcessing",
    single: [{ Sequence: { id: "A", type_id: 0 } }, { SpecialToken: { id: "</s>", type_id: 0 } }],
    pair: [],
    special_tokens: { "</s>": { id: "</s>", ids: [1], tokens: ["</s>"] } },
  },
  model: { type: "Unigram", unk_id: 2, vocab: Array.from({ length: VOCAB }, (_, id) => [pieceOf(id), -1]) },
};

beforeAll(async () => {
  await writeFolder(join(folder, "source"), {
    "config.json": original.config,
    "tokenizer.json": tokenizer,
    "tokenizer_config.json": { eos_token: "</s>", pad_token: "<pad>", unk_token: "<unk>" },
    "model.safetensors": encodeSafetensors(tensorsOf(original)),
  });
  writeFileSync(join(folder, "Modelfile"), "FROM ./source\n");
  hearth = await startHearth({ home });
  const env = { HEARTH_HOST: hearth.url };
  const made = await runHearth(["create", MODEL, "-f", join(folder, "Modelfile")], { home, env });
  expect([made.code, made.stderr]).toEqual([0, expect.any(String)]);
});
afterAll(async () => {
  await hearth.stop();
  for (const each of [folder, home]) rmSync(each, { recursive: true, force: true });
});

const client = (): Ollama => new Ollama({ host: hearth.url });
const generate = (prompt: string, more: { context?: number[] } = {}) =>
  client().generate({ model: MODEL, prompt, options: OPTIONS, stream: false, ...more });

test("a prompt gets the answer of transformers, in every API", async () => {
  expect((await client().show({ model: MODEL })).capabilities).toEqual(["completion"]);
  const { response, prompt_eval_count, eval_count, context } = await generate(PROMPT);
  expect([response, prompt_eval_count, eval_count]).toEqual([ANSWER, original.read!.length, answer.length]);
  expect(context).toEqual([...original.read!, ...answer]);
  const openai = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
  const sizes = { model: MODEL, max_tokens: answer.length, temperature: 0 };
  const completed = await openai.completions.create({ ...sizes, prompt: PROMPT });
  expect([completed.choices[0]!.text, completed.usage?.prompt_tokens]).toEqual([ANSWER, original.read!.length]);
  const says = (role: "system" | "user" | "assistant", content: string) => ({ role, content });
  const messages = [says("system", "丁"), says("user", "丁"), says("assistant", "七"), says("user", PROMPT)] as const;
  const chatted = await openai.chat.completions.create({ ...sizes, messages: [...messages] });
  expect([chatted.choices[0]!.message.content, chatted.usage?.prompt_tokens]).toEqual([ANSWER, original.read!.length]);
});

test("many prompts at once get the answers that each gets alone", async () => {
  const prompts = Array.from({ length: 9 }, (_, i) => PROMPT.slice(0, 20 + i * 9));
  const alone: (string | undefined)[] = [];
  for (const prompt of prompts) alone.push((await generate(prompt)).response);
  expect(new Set(alone).size).toBeGreaterThan(3);
  const together = await Promise.all([...prompts, PROMPT].map((prompt) => generate(prompt)));
  expect(together.map(({ response }) => response)).toEqual([...alone, ANSWER]);
});

test("the ids of an earlier answer come before a prompt", async () => {
  const context = original.read!.slice(0, 70);
  const rest = textOf(original.read!.slice(70, -1));
  const { response, prompt_eval_count } = await generate(rest, { context: [...context] });
  expect(prompt_eval_count).toBe(original.read!.length + 1); // a text begins with a space
  const whole = await generate(`${textOf(context.slice(1))} ${rest}`);
  expect([whole.response, whole.prompt_eval_count]).toEqual([response, prompt_eval_count]);
});

test("a prompt longer than the context is refused, and one as long is not", async () => {
  const longest = pieceOf(9).repeat(510); // with a space before and the end after
  expect((await generate(longest)).prompt_eval_count).toBe(512);
  await expect(generate(longest + pieceOf(9))).rejects.toThrow("(the prompt has 513 tokens, the context room for 512");
  const messages: Message[] = [{ role: "user", content: longest + pieceOf(9) }];
  const asked = client().chat({ model: MODEL, messages, options: OPTIONS, stream: false });
  await expect(asked).rejects.toThrow("the prompt has 513 tokens");
});

test("the vector of a text is the mean of the encoder's rows", async () => {
  const { embeddings } = await client().embed({ model: MODEL, input: [PROMPT, PROMPT, "丁"] });
  expect(embeddings.map((each) => each.length)).toEqual([64, 64, 64]);
  expect(embeddings[1]).toEqual(embeddings[0]!);
  const cosine = embeddings[0]!.reduce((sum, value, i) => sum + value * embeddings[2]![i]!, 0);
  expect(Math.abs(cosine)).toBeLessThan(0.9);
});
