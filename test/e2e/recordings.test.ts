/** Recordings in chats, through every dialect that has them, on a random-weight model that sees and hears. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { makeListener, silence, wav } from "../engine/hearing/audio-model.ts";
import { IMAGE_ROWS, makeVisionText, picture } from "../engine/vision/vision-model.ts";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";
import { mediaCounts } from "./media-counts.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "hearth-hearing-"));
const STEADY = { temperature: 0, num_predict: 4 };
const MODEL = "hears";
/** Rows of 40 milliseconds of a recording of this length. */
const [SECONDS, ROWS] = [0.5, 13];
/** The vocabulary has no such marks: each byte is a token. */
const MARKERS = "<|audio>".length + "<audio|>".length;
let hearth: Hearth;

beforeAll(async () => {
  await writeGguf(join(folder, "text.gguf"), makeVisionText());
  await writeGguf(join(folder, "senses.gguf"), makeListener());
  writeFileSync(join(folder, "Modelfile"), "FROM ./text.gguf\nFROM ./senses.gguf\nPARAMETER num_ctx 2048\n");
  hearth = await startHearth();
  expect((await cli(["create", MODEL, "-f", join(folder, "Modelfile")])).code).toBe(0);
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true, force: true });
});

const cli = (args: string[], stdin = "") =>
  runHearth(args, { home: hearth.home, stdin, env: { HEARTH_HOST: hearth.url } });

const base64 = (seconds: number): string => wav(seconds).toString("base64");

/** Number of files encoded, and found in the cache, since the last call. */
const counted = mediaCounts(() => hearth.url);

test("show, list and /props have the audio capability", async () => {
  const client = new Ollama({ host: hearth.url });
  expect((await client.show({ model: MODEL })).capabilities).toEqual(["completion", "vision", "audio"]);
  expect((await client.show({ model: "hearth" })).capabilities).not.toContain("audio");
  const props = (await (await fetch(`${hearth.url}/props?model=${MODEL}`)).json()) as { modalities: unknown };
  expect(props.modalities).toEqual({ vision: true, video: false, audio: true });
});

test("ollama chats and generates about a recording, which is encoded once", async () => {
  const client = new Ollama({ host: hearth.url });
  const chat = (content: string, images: string[] = []) =>
    client.chat({ model: MODEL, messages: [{ role: "user", content, images }], options: STEADY, stream: false });
  const deaf = await chat("what is this?");
  await counted();
  const first = await chat("what is this?", [base64(0.49)]);
  expect(first.prompt_eval_count).toBe(deaf.prompt_eval_count + ROWS + MARKERS);
  expect(await counted()).toBe("1 encoded, 0 reused");
  const again = await chat("and who says it?", [base64(0.49)]);
  expect(again.prompt_eval_count).toBeGreaterThan(first.prompt_eval_count);
  expect(await counted()).toBe("0 encoded, 1 reused");
  const both = await chat("what is this?", [base64(0.49), picture(1).toString("base64")]);
  expect(both.prompt_eval_count).toBe(first.prompt_eval_count + IMAGE_ROWS + 2);
  const prompt = { model: MODEL, prompt: "what is this?", images: [base64(0.49)], options: STEADY };
  const generated = await client.generate({ ...prompt, stream: false });
  expect([generated.response, generated.prompt_eval_count]).toEqual([first.message.content, first.prompt_eval_count]);
});

test("openai's input_audio keeps its place in the message", async () => {
  const client = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
  const complete = async (content: OpenAI.ChatCompletionContentPart[]) =>
    client.chat.completions.create({
      model: MODEL,
      max_tokens: 4,
      temperature: 0,
      messages: [{ role: "user", content }],
    });
  const text = { type: "text", text: "what is this?" } as const;
  const sound = { type: "input_audio", input_audio: { data: base64(SECONDS), format: "wav" } } as const;
  const deaf = await complete([text]);
  const before = await complete([sound, text]);
  const behind = await complete([text, sound]);
  const more = deaf.usage!.prompt_tokens + ROWS + MARKERS;
  expect([before.usage!.prompt_tokens, behind.usage!.prompt_tokens]).toEqual([more, more]);
  const recorded = readFileSync(join(import.meta.dir, "../engine/audio/files/browser.webm")).toString("base64");
  for (const head of ["", "data:audio/webm;codecs=opus;base64,", "data:video/webm;codecs=vp8,opus;base64,"]) {
    const data = `${head}${recorded}`;
    const said = await complete([text, { type: "input_audio", input_audio: { data, format: "webm" as "wav" } }]);
    expect(said.usage!.prompt_tokens).toBe(deaf.usage!.prompt_tokens + Math.ceil(0.42 / 0.04) + MARKERS);
  }
  const voice = readFileSync(join(import.meta.dir, "../engine/audio/aac/voice.m4a")).toString("base64");
  const phone = await complete([text, { type: "input_audio", input_audio: { data: voice, format: "m4a" as "wav" } }]);
  expect(phone.usage!.prompt_tokens).toBe(deaf.usage!.prompt_tokens + Math.ceil(0.6 / 0.04) + MARKERS);
  const odd = complete([{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }]);
  await expect(odd).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining(
      "messages[0].content[0].input_audio.data: expected WAV, MP3, AAC, FLAC, Ogg, WebM or MP4",
    ),
  });
});

describe("bad recordings", () => {
  const ask = async (bytes: Uint8Array, model = MODEL) => {
    const images = [Buffer.from(bytes).toString("base64")];
    const reply = await hearth.post("/api/generate", { model, prompt: "x", images, options: STEADY });
    return [reply.status, ((await reply.json()) as { error: string }).error];
  };

  test("a recording that is damaged, or longer than the context, gets a 400 with its number", async () => {
    expect(await ask(Buffer.from("RIFF\x10\0\0\0WAVEnothing here"))).toEqual([
      400,
      expect.stringMatching(/^recording 1 of 1: WAV: /),
    ]);
    expect(await ask(silence(90))).toEqual([
      400,
      "recording 1 of 1: WAV: expected at most 82 seconds, got more: " +
        "a context of 2048 tokens has no room for a longer recording",
    ]);
  });

  test("a recording for a model without audio gets a 400", async () => {
    expect(await ask(wav(SECONDS), "hearth")).toEqual([400, '"hearth" does not support audio']);
  });
});

test("hearth run reads the path of a recording", async () => {
  const path = join(folder, "said.wav");
  writeFileSync(path, wav(0.47));
  await counted();
  const answered = await cli(["run", MODEL, "what", "is", "this?", path]);
  expect([answered.code, answered.stderr]).toEqual([0, expect.stringContaining(`Added recording '${path}'`)]);
  expect(await counted()).toBe("1 encoded, 0 reused");
  const deaf = await cli(["run", "hearth", "hello", path]);
  expect(deaf.stderr).toContain(`Warning: 'hearth' cannot hear recordings: it gets '${path}' as text`);
});
