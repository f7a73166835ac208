/** `POST /v1/audio/transcriptions` and `/v1/audio/translations`: forms, formats and refusals. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { Form } from "../../src/server/http/body.ts";
import { readSpeechForm } from "../../src/server/openai/transcription.ts";
import { putModel } from "../library/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
let url = "";
beforeAll(async () => {
  harness = await makeHarness();
  const gguf = { "general.architecture": "onnx", "onnx.model_type": "whisper" };
  await putModel(harness.root, "whisper", { gguf });
  ({ url } = harness.listen());
});
afterAll(() => harness.close());

const SOUND = new File([new Uint8Array(100)], "a.wav", { type: "audio/wav" });

async function post(fields: Record<string, string | File | undefined>, path = "transcriptions"): Promise<Response> {
  const form = new FormData();
  const all = { model: "whisper", file: SOUND, ...fields };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) form.append(name, value);
  return fetch(`${url}/v1/audio/${path}`, { method: "POST", body: form });
}

describe("formats:", () => {
  const usage = { type: "duration", seconds: 2 };
  test("json, the default", async () => {
    expect(await (await post({})).json()).toEqual({ text: "100 bytes", usage });
  });
  test.each([
    ["text", "100 bytes\n"],
    ["srt", "1\n00:00:00,000 --> 00:00:01,500\n100 bytes\n\n"],
    ["vtt", "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n100 bytes\n\n"],
  ])("%s", async (response_format, text) => {
    const response = await post({ response_format });
    expect(response.headers.get("content-type")).toStartWith("text/plain");
    expect(await response.text()).toBe(text);
  });
  test("verbose_json", async () => {
    const body = (await (await post({ response_format: "verbose_json", language: "DE" })).json()) as object;
    const segment = { id: 0, seek: 0, start: 0, end: 1.5, text: " 100 bytes", tokens: [1], temperature: 0 };
    expect(body).toEqual({
      task: "transcribe",
      language: "german",
      duration: 1.5,
      text: "100 bytes",
      segments: [{ ...segment, avg_logprob: -0.5, compression_ratio: 1, no_speech_prob: 0 }],
      usage,
    });
  });
});

describe("OpenAI's client", () => {
  const client = (): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  test("gets a text, and a stream of its parts", async () => {
    const { text } = await client().audio.transcriptions.create({ model: "whisper", file: SOUND });
    expect(text).toBe("100 bytes");
    const stream = await client().audio.transcriptions.create({ model: "whisper", file: SOUND, stream: true });
    const events = await Array.fromAsync(stream);
    expect(events.map(({ type }) => type)).toEqual(["transcript.text.delta", "transcript.text.done"]);
    expect(events[1]).toMatchObject({ text: "100 bytes" });
  });
  test("gets a translation and its segments", async () => {
    const asked = { model: "whisper", file: SOUND, response_format: "verbose_json" } as const;
    const answer = await client().audio.translations.create(asked);
    expect(answer).toMatchObject({ task: "translate", text: "100 bytes", segments: [{ end: 1.5 }] });
  });
});

describe("refusals name the field:", () => {
  test.each<[Record<string, string | File | undefined>, number, string]>([
    [{ file: undefined }, 400, "file: expected a file of sound, got none"],
    [{ file: "x" }, 400, "file: expected a file of sound, got a text"],
    [{ model: "" }, 400, "model is required"],
    [{ model: "nope" }, 404, "model 'nope' not found"],
    [{ model: "m" }, 400, '"m" does not support transcription: it needs a model for speech, such as Whisper'],
    [{ response_format: "pdf" }, 400, "response_format: expected json, text, srt, verbose_json, vtt, got 'pdf'"],
    [{ temperature: "2" }, 400, "temperature: expected 0 to 1, got '2'"],
    [{ stream: "true", response_format: "srt" }, 400, "response_format: expected json or text for a stream"],
    [{ "timestamp_granularities[]": "word" }, 400, "timestamp_granularities[]: expected segment"],
    [{ file: new File([new Uint8Array(27 * 2 ** 20)], "a") }, 413, "request body: expected at most 27262976 bytes"],
  ])("%#", async (fields, status, message) => {
    const response = await post(fields);
    const { error } = (await response.json()) as { error: { message: string; type: string } };
    expect([response.status, error.message.slice(0, message.length)]).toEqual([status, message]);
    expect(error.type).toEndWith("_error");
  });

  test("limits a file to OpenAI's 25 MiB", async () => {
    const form = new FormData();
    form.append("file", new File([new Uint8Array(25 * 2 ** 20 + 1)], "a"));
    const message = "file: expected at most 26214400 bytes, got 26214401";
    await expect(readSpeechForm(form as unknown as Form)).rejects.toMatchObject({ code: "too_large", message });
  });

  test("refuses a body that is not a form", async () => {
    const failure = async (type: string): Promise<string> => {
      const headers = { "content-type": type };
      const response = await fetch(`${url}/v1/audio/transcriptions`, { method: "POST", body: "{}", headers });
      expect(response.status).toBe(400);
      return ((await response.json()) as { error: { message: string } }).error.message;
    };
    expect(await failure("application/json")).toContain("expected 'multipart/form-data', got 'application/json'");
    expect(await failure("multipart/form-data; boundary=x")).toContain("expected a form in parts");
  });
});
