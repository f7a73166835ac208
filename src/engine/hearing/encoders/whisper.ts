/**
 * Encoders in Whisper's form: two convolutions over a log-mel spectrogram of 30 seconds, learned or stored positions, a
 * transformer, and a projection to the text model's width. Qwen2-Audio and Qwen2.5-Omni average two rows, Ultravox
 * stacks eight and Voxtral four. Semantics: tools/mtmd/models/whisper-enc.cpp of llama.cpp.
 */
import type { Activation, Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { widthOf, type EncoderModel } from "../../vision/clip.ts";
import { layers, norm, project, towerBuffers, twoLinears } from "../../vision/tower.ts";
import type { Part } from "../../vision/projector.ts";
import { channelBias, convolved, gather, type Kernel } from "../convolution.ts";
import { asRows, type AudioEncoderSpec, type Sheet, type Stage, type StageInput } from "../encoder-spec.ts";
import { FRAMES, pieceCount, whisperPieces } from "../mel.ts";

const STACK_MAX = 64;
const BINS_MAX = 1024;
const BLOCK = 512;
/** Epsilon of Ultravox's norms; files have another. */
const ULTRAVOX_EPS = 1e-6;

const first: Kernel = { time: 3, bins: 1, stride: 1, padding: 1, fastest: "time" };
const second: Kernel = { ...first, stride: 2 };

export function qwen2a(model: EncoderModel): AudioEncoderSpec {
  const { dim } = model;
  const [pooled, projected] = [
    { name: "pooled", dim },
    { name: "projected", dim: widthOf(model, "mm.a.fc") },
  ];
  return {
    before: "<|audio_bos|>",
    after: "<|audio_eos|>",
    ...melInput(model, (rows) => Math.floor(rows / 2)),
    stages: [
      ...tower(model, { hasNorm: false }),
      {
        part: {
          steps: [
            { op: "input", out: pooled },
            ...normed(model, pooled),
            ...project(model, "mm.a.fc", { out: projected, x: pooled }),
          ],
          result: projected,
        },
        rowsMax: BLOCK,
        isRowwise: true,
        inputOf: averaged,
      },
    ],
  };
}

/** Whisper's own encoder: its rows are the decoder's input. */
export const whisper = (model: EncoderModel): AudioEncoderSpec => ({
  before: "",
  after: "",
  ...melInput(model, (rows) => rows),
  stages: tower(model, { hasNorm: true }),
});

export function voxtral(model: EncoderModel): AudioEncoderSpec {
  const stack = stackOf(model);
  const stacked = { name: "stacked", dim: model.dim * stack };
  const projected = { name: "projected", dim: widthOf(model, "mm.a.mlp.2") };
  const steps: Step[] = [
    { op: "input", out: stacked },
    ...twoLinears(model, ["mm.a.mlp.1", "mm.a.mlp.2"], { out: projected, x: stacked, act: "gelu_erf" }),
  ];
  return {
    before: "[BEGIN_AUDIO]",
    after: "",
    ...melInput(model, (rows) => Math.ceil(rows / stack)),
    stages: [...tower(model, { hasNorm: true }), stacking({ steps, result: projected }, stack)],
  };
}

export function ultravox(model: EncoderModel): AudioEncoderSpec {
  const stack = stackOf(model);
  const eps = ULTRAVOX_EPS;
  const stacked = { name: "stacked", dim: model.dim * stack };
  const width = model.rows("mm.a.mlp.1") ?? 0;
  if (width === 0 || width % 2 !== 0) {
    const expected = "an even number of rows, half of them gates";
    throw new AppError("bad_file", `${model.path}: tensor 'mm.a.mlp.1.weight': expected ${expected}, got ${width}`);
  }
  const [both, up, gate] = [
    { name: "both", dim: width },
    { name: "up", dim: width / 2 },
    { name: "gate", dim: width / 2 },
  ];
  const projected = { name: "projected", dim: widthOf(model, "mm.a.mlp.2") };
  const steps: Step[] = [
    { op: "input", out: stacked },
    norm(model, "rms", { out: stacked, x: stacked, name: "mm.a.norm_pre", eps }),
    ...project(model, "mm.a.mlp.1", { out: both, x: stacked }),
    { op: "slice", out: up, x: both, heads: 1, at: 0 },
    { op: "slice", out: gate, x: both, heads: 1, at: up.dim },
    { op: "multiply", out: up, a: up, b: gate, act: "silu" },
    norm(model, "rms", { out: up, x: up, name: "mm.a.norm_mid", eps }),
    ...project(model, "mm.a.mlp.2", { out: projected, x: up }),
  ];
  return {
    before: "",
    after: "",
    ...melInput(model, (rows) => Math.ceil(rows / stack)),
    stages: [...tower(model, { hasNorm: true }), stacking({ steps, result: projected }, stack)],
  };
}

const stackOf = ({ keys }: EncoderModel): number =>
  keys.count("audio.projector.stack_factor", { min: 1, max: STACK_MAX });

/** @param rowsOf the text model's rows for a number of the tower's rows */
function melInput(
  { keys }: EncoderModel,
  rowsOf: (rows: number) => number,
): Pick<AudioEncoderSpec, "rowsOf" | "listen"> {
  const bins = keys.count("audio.num_mel_bins", { min: 1, max: BINS_MAX });
  return {
    rowsOf: (samples) => Array.from({ length: pieceCount(samples) }, () => rowsOf(towerRows)),
    listen: (samples) => whisperPieces(samples, bins),
  };
}

/** Rows of the tower for a piece. */
const towerRows = convolved(FRAMES, second.time, second);

/** From mel bins to the stream after all layers. */
function tower(file: EncoderModel, { hasNorm }: { hasNorm: boolean }): Stage[] {
  const model = { ...file, act: "gelu_erf" as const };
  const { dim, keys } = model;
  const { x } = towerBuffers(model);
  const bins = keys.count("audio.num_mel_bins", { min: 1, max: BINS_MAX });
  const positions = model.rows("a.position_embd") ?? 0;
  if (positions < towerRows) {
    const expected = `at least ${towerRows} positions`;
    throw new AppError(
      "bad_file",
      `${file.path}: tensor 'a.position_embd.weight': expected ${expected}, got ${positions}`,
    );
  }
  const opening: Step[] = [
    { op: "addPosition", x, table: model.matrix("a.position_embd", { inDim: dim, outDim: positions }) },
    ...(model.has("a.pre_ln.weight") ? [norm(model, "layer", { out: x, x, name: "a.pre_ln" })] : []),
  ];
  const rest = [...opening, ...layers(model, { norm: "layer" }), ...(hasNorm ? normed(model, x) : [])];
  return [
    conv(model, { name: "a.conv1d.1", from: bins, kernel: first }),
    conv(model, { name: "a.conv1d.2", from: dim, kernel: second, rest }),
  ];
}

interface Conv {
  readonly name: string;
  readonly from: number;
  readonly kernel: Kernel;
  /** Steps after the tower, which read all rows. */
  readonly rest?: readonly Step[];
}

/** A convolution to the stream with its activation. */
function conv(model: EncoderModel, { name, from, kernel, rest }: Conv): Stage {
  const { dim } = model;
  const { x } = towerBuffers(model);
  const covered = { name: "covered", dim: from * kernel.time };
  const b = channelBias(model, name, dim);
  const steps: Step[] = [
    { op: "input", out: covered },
    { op: "linear", out: x, x: covered, w: model.kernel(`${name}.weight`, [kernel.time, from, dim]), ...(b && { b }) },
    { op: "activate", x, act: "gelu_erf" satisfies Activation },
    ...(rest ?? []),
  ];
  return {
    part: { steps, result: x },
    rowsMax: rest ? towerRows : BLOCK,
    isRowwise: rest === undefined,
    inputOf: (sheet) => gather(sheet, kernel),
  };
}

/** The norm after all layers, if the file has it. */
const normed = (model: EncoderModel, x: { name: string; dim: number }): Step[] =>
  model.has("a.post_ln.weight") ? [norm(model, "layer", { out: x, x, name: "a.post_ln" })] : [];

/** The mean of two neighbours. */
function averaged(sheet: Sheet): StageInput {
  const { values, channels } = sheet;
  const time = Math.floor(sheet.time / 2);
  const means = new Float32Array(time * channels);
  for (let row = 0; row < time; row++) {
    for (let c = 0; c < channels; c++) {
      const at = 2 * row * channels + c;
      means[row * channels + c] = (values[at]! + values[at + channels]!) / 2;
    }
  }
  return asRows({ ...sheet, values: means, time });
}

/** Joins neighbouring rows to one; the last is padded with zeros. */
function stacking(part: Part, stack: number): Stage {
  return {
    part,
    rowsMax: BLOCK,
    isRowwise: true,
    inputOf(sheet) {
      const time = Math.ceil(sheet.time / stack);
      const values = new Float32Array(time * stack * sheet.channels);
      values.set(sheet.values);
      return asRows({ ...sheet, values, time, channels: sheet.channels * stack });
    },
  };
}
