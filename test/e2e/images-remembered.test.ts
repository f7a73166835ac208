/**
 * Images of a model whose text attends to them by cross attention, Llama 3.2 Vision with random weights: from a folder
 * of Hugging Face to answers.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Ollama, type Message } from "ollama";
import OpenAI from "openai";
import { byteCharacters } from "../../src/engine/text/tokenizer/byte-alphabet.ts";
import { picture } from "../engine/vision/vision-model.ts";
import { encodeSafetensors, writeFolder } from "../library/convert/hugging-face.ts";
import { readOriginals, tensorsOf } from "../library/convert/originals.ts";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";
import { mediaCounts } from "./media-counts.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "hearth-remembered-"));
const home = mkdtempSync(join(tmpdir(), "hearth-remembered-home-"));
const MODEL = "remembers";
const OPTIONS = { temperature: 0, num_predict: 12, seed: 1 };
let hearth: Hearth;

const MARKS = ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"];
/** The number of tokens with logits; the next one is the image's. */
const VOCAB = 320;

/** A vocabulary of bytes. */
function tokenizer(): object {
  const pieces = [...MARKS, ...byteCharacters()];
  while (pieces.length < VOCAB) pieces.push(`unused ${pieces.length}`);
  const added = [...MARKS.map((content, id) => ({ id, content })), { id: VOCAB, content: "<|image|>" }];
  return {
    added_tokens: added.map((each) => ({ ...each, special: true })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])), merges: [] },
  };
}

const TEMPLATE =
  "<|begin_of_text|>{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>" +
  "{{ message.content }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>a<|end_header_id|>" +
  "{% endif %}";

beforeAll(async () => {
  const original = (await readOriginals())["Mllama-images"]!;
  await writeFolder(join(folder, "source"), {
    "config.json": original.config,
    "tokenizer.json": tokenizer(),
    "tokenizer_config.json": { bos_token: MARKS[0], eos_token: MARKS[1], chat_template: TEMPLATE },
    "model.safetensors": encodeSafetensors(tensorsOf(original)),
  });
  writeFileSync(join(folder, "Modelfile"), "FROM ./source\n");
  hearth = await startHearth({ home });
  const made = await runHearth(["create", MODEL, "-f", join(folder, "Modelfile")], {
    home,
    env: { HEARTH_HOST: hearth.url },
  });
  expect([made.code, made.stderr]).toEqual([0, expect.any(String)]);
});
afterAll(async () => {
  await hearth.stop();
  for (const each of [folder, home]) rmSync(each, { recursive: true, force: true });
});

const base64 = (seed: number): string => picture(seed).toString("base64");
const says = (content: string, ...seeds: number[]): Message => ({ role: "user", content, images: seeds.map(base64) });

async function chat(...messages: Message[]): Promise<readonly [text: string, tokens: number]> {
  const client = new Ollama({ host: hearth.url });
  const reply = await client.chat({ model: MODEL, messages, options: OPTIONS, stream: false });
  return [reply.message.content, reply.prompt_eval_count];
}

/** Images encoded, and found in the cache, since the last call. */
const counted = mediaCounts(() => hearth.url);

const QUESTION = "what is this? ".repeat(6);

test("an image takes one token and changes the answer, in every API, and is encoded once", async () => {
  const client = new Ollama({ host: hearth.url });
  expect((await client.show({ model: MODEL })).capabilities).toEqual(["completion", "vision"]);
  await counted();
  const [withoutImage, length] = await chat(says(QUESTION));
  const [first, seen] = await chat(says(QUESTION, 11));
  const [other] = await chat(says(QUESTION, 12));
  expect(seen).toBe(length + 1);
  expect(new Set([withoutImage, first, other]).size).toBe(3);
  expect(await counted()).toBe("2 encoded, 0 reused");
  expect(await chat(says(QUESTION))).toEqual([withoutImage, length]); // in the slot of an image

  const generated = await client.generate({
    model: MODEL,
    prompt: QUESTION,
    images: [base64(11)],
    options: OPTIONS,
    stream: false,
  });
  expect([generated.response, generated.prompt_eval_count]).toEqual([first, seen]);
  expect(generated.context).not.toContain(VOCAB);
  const openai = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
  const url = `data:image/png;base64,${base64(11)}`;
  const completed = await openai.chat.completions.create({
    model: MODEL,
    max_tokens: OPTIONS.num_predict,
    temperature: 0,
    messages: [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url } },
          { type: "text", text: QUESTION },
        ],
      },
    ],
  });
  expect([completed.choices[0]!.message.content!, completed.usage!.prompt_tokens]).toEqual([first, seen]);
  const anthropic = new Anthropic({ baseURL: hearth.url, apiKey: "any", maxRetries: 0 });
  const source = { type: "base64" as const, media_type: "image/png" as const, data: base64(11) };
  const message = await anthropic.messages.create({
    model: MODEL,
    max_tokens: OPTIONS.num_predict,
    messages: [
      {
        role: "user",
        content: [
          { type: "image", source },
          { type: "text", text: QUESTION },
        ],
      },
    ],
    ...({ temperature: 0 } as object),
  });
  expect(message.content).toMatchObject([{ type: "text", text: first }]);
  expect(await counted()).toBe("0 encoded, 3 reused");
});

test("concurrent conversations get the answers that each gets alone", async () => {
  const asked = [says(QUESTION, 1), says("name the colours", 1), says(QUESTION, 2), says("name the colours")];
  const alone: (readonly [string, number])[] = [];
  for (const each of asked) alone.push(await chat(each));
  expect(await Promise.all([...asked, ...asked].map((each) => chat(each)))).toEqual([...alone, ...alone]);
});

test("the newest image of a chat replaces earlier ones; two in one message are refused", async () => {
  const answer: Message = { role: "assistant", content: "stripes" };
  const both = await chat(says("look", 1), answer, says("and now?", 2));
  expect(both).toEqual(await chat(says("look"), answer, says("and now?", 2)));
  expect(both[0]).not.toBe((await chat(says("look", 1), answer, says("and now?")))[0]);
  for (const path of ["/api/chat", "/api/generate"]) {
    const images = [base64(1), base64(2)];
    const body = {
      model: MODEL,
      prompt: "x",
      images,
      messages: [{ role: "user", content: "x", images }],
      stream: false,
    };
    const reply = await hearth.post(path, body);
    expect([reply.status, await reply.json()]).toEqual([400, { error: "images: the model takes one, got 2" }]);
  }
});

test("a cached prefix with an image is used after a restart, but not for another image", async () => {
  const asked = says(QUESTION, 1);
  const first = await chat(asked);
  const cachedOf = async (message: Message): Promise<readonly [string, number, number]> => {
    const { role, content, images } = message;
    const parts = images!.map((data) => ({
      type: "image_url" as const,
      image_url: { url: `data:image/png;base64,${String(data)}` },
    }));
    const reply = await hearth.post("/v1/chat/completions", {
      model: MODEL,
      max_tokens: OPTIONS.num_predict,
      temperature: 0,
      messages: [{ role, content: [...parts, { type: "text", text: content }] }],
    });
    const { choices, usage } = (await reply.json()) as OpenAI.ChatCompletion;
    return [choices[0]!.message.content!, usage!.prompt_tokens, usage!.prompt_tokens_details?.cached_tokens ?? 0];
  };
  hearth.process.kill("SIGTERM");
  await hearth.process.exited;
  hearth = await startHearth({ home });
  const other = await cachedOf(says(QUESTION, 3));
  const again = await cachedOf(asked);
  expect(again.slice(0, 2)).toEqual([...first]);
  expect(again[2]).toBeGreaterThan(60);
  expect(other[2]).toBeLessThan(8);
  expect(other[0]).not.toBe(first[0]);
});
