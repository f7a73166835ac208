/** Audio encoders: spectrograms and rows against llama.cpp's (bench/record-audio-rows.ts). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { openAudioEncoder, type AudioEncoder } from "../../../src/engine/hearing/index.ts";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { nmse } from "../backends/compare.ts";
import {
  EVERY,
  HEARD_DIM,
  KINDS,
  makeAudioEncoder,
  recordingOf,
  recordingsOf,
  type AudioEncoderKind,
} from "./audio-model.ts";

/** llama.cpp rounds the inputs of convolutions to half precision. */
const NMSE_MAX = 1e-5;
/** Its transforms are in single precision. */
const MEL_NMSE_MAX = 1e-9;

/** Kinds with few rows; others take long on the slowest backend. */
const ON_CPU: ReadonlySet<string> = new Set(["qwen3a", "gemma4a", "gemma4ua"]);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-ears-"))));
afterAll(() => rm(folder, { recursive: true }));

interface Recorded {
  readonly frames: number;
  readonly bins: number;
  /** Every so-manieth frame. */
  readonly mel: Float32Array;
  readonly rows: number;
  readonly vectors: Float32Array;
}

function readRecorded(kind: AudioEncoderKind): Recorded[][] {
  const bytes = readFileSync(join(import.meta.dir, `rows/${kind}.bin`));
  let at = 0;
  const int = (): number => bytes.readInt32LE((at += 4) - 4);
  const floats = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => bytes.readFloatLE((at += 4) - 4));
  return recordingsOf(kind).map(() =>
    Array.from({ length: int() }, () => {
      const [frames, bins] = [int(), int()];
      const mel = floats(Math.ceil(frames / EVERY.frame) * bins);
      const [rows, dim] = [int(), int()];
      return { frames, bins, mel, rows, vectors: floats(Math.ceil(rows / EVERY.row) * dim) };
    }),
  );
}

/** Every `step`th row. */
const rowsOf = (values: Float32Array, dim: number, step: number): Float32Array =>
  values.filter((_, i) => Math.floor(i / dim) % step === 0);

async function withEncoder<T>(
  kind: AudioEncoderKind,
  use: (encoder: AudioEncoder) => Promise<T>,
  backend: Backend,
): Promise<T> {
  const path = join(folder, `${kind}.gguf`);
  await writeGguf(path, makeAudioEncoder(kind));
  const gguf = openGguf(path);
  try {
    const encoder = await openAudioEncoder(gguf, { backend, threads: 1, text: undefined, signal: undefined });
    const result = await use(encoder);
    encoder.close();
    return result;
  } finally {
    gguf.close();
  }
}

describe.each(KINDS)("%s", (kind) => {
  for (const [i, [name, seconds]] of recordingsOf(kind).entries()) {
    const backend = ON_CPU.has(kind) && name === "short" ? cpuBackend : simdBackend; // others take long
    test(`a ${name} recording has the reference's spectrogram and rows`, async () => {
      const recorded = readRecorded(kind)[i]!;
      const samples = recordingOf(seconds);
      await withEncoder(
        kind,
        async (encoder) => {
          expect(encoder.dim).toBe(HEARD_DIM);
          const sheets = await encoder.sheets(samples);
          expect(sheets.map(framesOf)).toEqual(recorded.map(({ frames, bins }) => [frames, bins]));
          for (const [i, { values }] of sheets.entries()) {
            const { bins, mel } = recorded[i]!;
            expect(nmse(rowsOf(values, bins, EVERY.frame), mel), `piece ${i}: spectrogram`).toBeLessThan(MEL_NMSE_MAX);
          }
          const parts = await encoder.encode(samples);
          const shown = encoder.layout(samples.length).map((part) => (part.kind === "rows" ? part.rows : part.text));
          expect(parts.map((part) => (part.kind === "rows" ? part.rows : part.text))).toEqual(shown);
          const rows = parts.flatMap((part) => (part.kind === "rows" ? [part] : []));
          expect(rows.map((each) => each.rows)).toEqual(recorded.map((piece) => piece.rows));
          for (const [i, { vectors }] of rows.entries()) {
            const error = nmse(rowsOf(vectors, HEARD_DIM, EVERY.row), recorded[i]!.vectors);
            expect(error, `piece ${i}: rows`).toBeLessThan(NMSE_MAX);
          }
        },
        backend,
      );
    });
  }
});

const framesOf = ({
  batches,
  time,
  bins,
  channels,
}: {
  batches: number;
  time: number;
  bins: number;
  channels: number;
}) => [batches * time, bins * channels];
