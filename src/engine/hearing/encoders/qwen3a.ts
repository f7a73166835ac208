/**
 * Qwen3-ASR and Qwen3-Omni: three convolutions over chunks of one second, and a transformer over eight of them, whose
 * positions begin again with each chunk. Semantics: tools/mtmd/models/qwen3a.cpp of llama.cpp.
 */
import type { Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { whisperMel } from "../../audio/mel.ts";
import { widthOf, type EncoderModel } from "../../vision/clip.ts";
import { inputSteps, layers, norm, project, towerBuffers, twoLinears } from "../../vision/tower.ts";
import type { Steps } from "../../vision/steps.ts";
import { channelCount, convolutionStage, convolved, type Kernel } from "../convolution.ts";
import type { AudioEncoderSpec, Sheet, Stage, StageInput } from "../encoder-spec.ts";
import { HOP, whisperFrames, withBeginning } from "../mel.ts";

const BINS_MAX = 1024;
/** Frames of a chunk, and the maximum number of chunks that attend to each other. */
const CHUNK = 100;
const CHUNKS_MAX = 8;

const kernel: Kernel = { time: 3, bins: 3, stride: 2, padding: 1, fastest: "time" };
const thrice = (length: number): number => [1, 2, 3].reduce((each) => convolved(each, 3, kernel), length);
/** Rows of a chunk. */
const ROWS = thrice(CHUNK);

export function qwen3a(file: EncoderModel): AudioEncoderSpec {
  const model = { ...file, act: "gelu_erf" as const };
  const bins = model.keys.count("audio.num_mel_bins", { min: 1, max: BINS_MAX });
  const channels = [1, 2, 3].map((i) => channelCount(model, `a.conv2d.${i}`));
  return {
    before: "<|audio_start|>",
    after: "<|audio_end|>",
    rowsOf: (samples) => windowsOf(samples).map(({ chunks }) => chunks * ROWS),
    listen: (samples) => windows(samples, bins),
    stages: [
      ...channels.map((to, i) =>
        convolutionStage(model, { name: `a.conv2d.${i + 1}`, from: channels[i - 1] ?? 1, to, kernel, act: model.act }),
      ),
      tower(model, thrice(bins) * channels[2]!),
    ],
  };
}

/** @param width of a row after the convolutions */
function tower(model: EncoderModel, width: number): Stage {
  const { dim } = model;
  const { x } = towerBuffers(model);
  const [frames, added] = [
    { name: "frames", dim: width },
    { name: "added", dim },
  ];
  const projected = { name: "projected", dim: widthOf(model, "mm.a.mlp.2") };
  const count = model.rows("a.position_embd") ?? 0;
  if (count < ROWS) {
    const expected = `at least ${ROWS} positions`;
    throw new AppError(
      "bad_file",
      `${model.path}: tensor 'a.position_embd.weight': expected ${expected}, got ${count}`,
    );
  }
  const table = model.matrix("a.position_embd", { inDim: dim, outDim: count });
  const normed = (name: string): Step[] =>
    model.has(`${name}.weight`) ? [norm(model, "layer", { out: x, x, name })] : [];
  const steps: Step[] = [
    ...inputSteps(frames, added),
    ...project(model, "a.conv_out", { out: x, x: frames }),
    { op: "add", out: x, a: x, b: added, scale: 1 },
    ...normed("a.pre_ln"),
    ...layers(model, { norm: "layer" }),
    ...normed("a.post_ln"),
    ...twoLinears(model, ["mm.a.mlp.1", "mm.a.mlp.2"], { out: projected, x, act: "gelu_erf" }),
  ];
  return {
    part: { steps, result: projected },
    rowsMax: CHUNKS_MAX * ROWS,
    isRowwise: false,
    inputOf: (sheet) => rowsWith(sheet, model.floats(table, { first: 0, count: ROWS })),
  };
}

/** A row for each time: the values of its bins, channel by channel, and its position in the chunk. */
function rowsWith({ values, batches, time, bins, channels }: Sheet, positions: Float32Array): StageInput {
  const [width, dim] = [bins * channels, positions.length / ROWS];
  return {
    batches,
    time,
    bins: 1,
    fill(first, count) {
      const out = new Float32Array(count * (width + dim));
      for (let i = 0; i < count; i++) {
        const row = out.subarray(i * (width + dim), (i + 1) * (width + dim));
        const from = (first + i) * width;
        for (let bin = 0; bin < bins; bin++)
          for (let c = 0; c < channels; c++) row[c * bins + bin] = values[from + bin * channels + c]!;
        const place = (first + i) % time;
        row.set(positions.subarray(place * dim, (place + 1) * dim), width);
      }
      return out;
    },
  };
}

/** Numbers of frames in a recording's windows: the chunks of a window attend to each other. */
function windowsOf(samples: number): { first: number; frames: number; chunks: number }[] {
  const all = Math.floor(samples / HOP) + 1;
  const most = CHUNK * CHUNKS_MAX;
  return Array.from({ length: Math.ceil(all / most) }, (_, i) => {
    const frames = Math.min(most, all - i * most);
    return { first: i * most, frames, chunks: Math.ceil(frames / CHUNK) };
  });
}

/** Chunks of (frames, bins); the last is padded with zeros. */
function* windows(samples: Float32Array, bins: number): Steps<readonly Sheet[]> {
  const mel = yield* whisperFrames(mirrored(samples), bins);
  return windowsOf(samples.length).map(({ first, frames, chunks }) => {
    const values = new Float32Array(chunks * CHUNK * bins);
    values.set(mel.subarray(first * bins, (first + frames) * bins));
    return { values, batches: chunks, time: CHUNK, bins, channels: 1 };
  });
}

/** The recording, with half a frame of its mirrored beginning and end added. */
function mirrored(samples: Float32Array): Float32Array {
  const options = whisperMel(1);
  const padded = withBeginning(samples, samples.length + options.fft, options);
  const end = options.fft / 2 + samples.length;
  for (let i = 0; i < options.fft / 2; i++) padded[end + i] = samples[samples.length - 2 - i] ?? 0;
  return padded;
}
