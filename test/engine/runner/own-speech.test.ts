/** A Whisper on our own steps: its windows, its transcripts, and files that are hostile. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeTranscriber, type SpeechSegment } from "../../../src/engine/audio/whisper/transcriber.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { nmse } from "../backends/compare.ts";
import { recordingOf } from "../hearing/audio-model.ts";
import { FIRST_CONTROL, FIRST_TIME, openWhisper, VOCAB, writeWhisper } from "./speech-model.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-own-speech-"));
const path = join(folder, "whisper.gguf");
afterAll(() => rmSync(folder, { recursive: true }));
beforeAll(() => writeWhisper(join(folder, "source")).then((source) => convertModel({ folder: source, to: path })));

const open = (file = path, backend = cpuBackend) => openWhisper(file, { backend });

test("a speech model encodes windows, restarts texts, and refuses embeddings", async () => {
  const { model, speech, refused } = await open();
  expect(speech).toMatchObject({ bins: 80, vocabSize: VOCAB, ctxLen: 448, suppressed: [9] });
  expect(speech.suppressedFirst).toEqual([FIRST_CONTROL]);
  expect(speech.info.bytes.weights).toBeGreaterThan(model.info.bytes.weights);
  const mel = Float32Array.from({ length: 80 * 3000 }, (_, i) => Math.sin(i * i));
  const window = await speech.hear(mel);
  const whole = await window.extend([1, 5, 9, 4]);
  window.restart();
  await window.extend([1, 5]);
  expect(nmse(await window.extend([9, 4]), whole)).toBeLessThan(1e-10);
  const other = await speech.hear(mel.map((value) => -value));
  expect(nmse(await other.extend([1, 5, 9, 4]), whole)).toBeGreaterThan(1e-4);
  window.restart();
  expect(await window.extend([1, 5, 9, 4])).toEqual(whole);

  expect(model.info).toMatchObject({ slots: 1, ctxLen: 448, media: [] });
  model.engine.embed({ id: 1, texts: [Int32Array.of(1)], ranks: false, adapters: [] });
  expect(await refused).toMatchObject({ kind: "embedFailed", code: "bad_request" });
  speech.close!();
  await model.engine.close();
});

test("a speech model transcribes a recording of two windows by Whisper's rules", async () => {
  const { model, speech } = await open(path, simdBackend);
  const segments: SpeechSegment[] = [];
  const task = { task: "transcribe", temperature: 0.2 } as const; // above 0: no text is written again
  const hooks = { onSegment: (each: SpeechSegment) => segments.push(each), pause: async () => {} };
  expect(await makeTranscriber(speech, model.tokenizer).write(recordingOf(31.7), task, hooks)).toBe("en");
  expect(new Set(segments.map(({ from }) => from)).size).toBeGreaterThan(1);
  for (const { tokens, start, end } of segments) {
    expect(tokens.filter((id) => id === 9 || (id >= FIRST_CONTROL && id < FIRST_TIME))).toEqual([]);
    expect(end).toBeGreaterThan(start);
  }
  speech.close!();
  await model.engine.close();
});

describe("a file is refused", () => {
  type Change = (model: { metadata: Map<string, unknown>; tensors: WriteModel["tensors"] }) => WriteModel["tensors"];
  const without =
    (pattern: RegExp): Change =>
    ({ tensors }) =>
      tensors.filter(({ name }) => !pattern.test(name));
  const saying =
    (key: string, value: unknown): Change =>
    ({ metadata, tensors }) => {
      metadata.set(key, value);
      return tensors;
    };
  test.each<[string, Change, string]>([
    [
      "without an encoder",
      saying("whisper.audio.block_count", undefined),
      "expected an encoder of recordings, got none",
    ],
    ["if its encoder lacks a layer", without(/^a\.blk\.1\./), "tensor 'a.blk.1.ln1.weight': expected (32), got none"],
    [
      "if its encoder has more layers than its metadata says",
      saying("whisper.audio.block_count", { u32: 1 }),
      "a.blk.1.",
    ],
    ["if its encoder has too many bands", saying("whisper.audio.num_mel_bins", { u32: 2 ** 31 }), "num_mel_bins"],
    [
      "if its decoder lacks cross attention",
      without(/cross_attn_k/),
      "tensor 'blk.0.cross_attn_k.weight': expected (32, 32), got none",
    ],
    [
      "with ids outside the vocabulary",
      saying("whisper.suppress_tokens", Int32Array.of(-5)),
      "'whisper.suppress_tokens': expected",
    ],
    [
      "with a text instead of ids",
      saying("whisper.begin_suppress_tokens", "1"),
      "expected an array of numbers, got the string",
    ],
  ])("%s", async (name, change, says) => {
    const gguf = openGguf(path);
    const metadata = new Map<string, unknown>([...gguf.metadata].map(([key, value]) => [key, typed(value)]));
    const tensors = [...gguf.tensors.values()].map(({ name: tensor, shape, quant }) => {
      return { name: tensor, shape, quant, data: gguf.read(tensor).slice() };
    });
    gguf.close();
    const file = join(folder, `${name}.gguf`);
    const kept = change({ metadata, tensors });
    const said = [...metadata].filter(([, value]) => value !== undefined);
    await writeGguf(file, { metadata: Object.fromEntries(said) as WriteModel["metadata"], tensors: kept });
    await expect(open(file)).rejects.toThrow(says);
  });
  const typed = (value: unknown): unknown =>
    typeof value !== "number" ? value : Number.isInteger(value) ? { u32: value } : { f32: value };
});
