/** Convolutions as a matrix product: each row gathers the values that its kernel covers. */
import type { EncoderModel } from "../vision/clip.ts";
import { norm } from "../vision/tower.ts";
import type { Activation, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Sheet, Stage, StageInput } from "./encoder-spec.ts";

/** Rows of a run. */
const BLOCK = 512;
const CHANNELS_MAX = 65_536;

export interface Kernel {
  /** Taps in each direction. */
  readonly time: number;
  readonly bins: number;
  /** The same in both directions; values outside the sheet are zeros. */
  readonly stride: number;
  readonly padding: number;
  /** The direction that varies fastest in the kernel's tensor. */
  readonly fastest: "time" | "bins";
}

/** The length of a convolution's result. */
export const convolved = (length: number, taps: number, { stride, padding }: Kernel): number =>
  Math.floor((length + 2 * padding - taps) / stride) + 1;

/** Input rows for `kernel`: (batches, time, bins) of (channels · taps), the taps of a channel together. */
export function gather(sheet: Sheet, kernel: Kernel): StageInput {
  const { batches, channels } = sheet;
  const time = convolved(sheet.time, kernel.time, kernel);
  const bins = kernel.bins === 1 ? sheet.bins : convolved(sheet.bins, kernel.bins, kernel);
  const taps = kernel.time * kernel.bins;
  return {
    batches,
    time,
    bins,
    fill(first, count) {
      const out = new Float32Array(count * channels * taps);
      for (let row = 0; row < count; row++) {
        const place = first + row;
        const [bin, at] = [place % bins, Math.floor(place / bins) % time];
        const batch = Math.floor(place / bins / time);
        fillRow(out.subarray(row * channels * taps, (row + 1) * channels * taps), { sheet, kernel, batch, at, bin });
      }
      return out;
    },
  };
}

interface Place {
  readonly sheet: Sheet;
  readonly kernel: Kernel;
  readonly batch: number;
  readonly at: number;
  readonly bin: number;
}

function fillRow(out: Float32Array, { sheet, kernel, batch, at, bin }: Place): void {
  const { values, time, bins, channels } = sheet;
  const { stride, padding, fastest } = kernel;
  const taps = kernel.time * kernel.bins;
  for (let i = 0; i < kernel.time; i++) {
    const t = at * stride - padding + i;
    if (t < 0 || t >= time) continue;
    for (let j = 0; j < kernel.bins; j++) {
      const b = kernel.bins === 1 ? bin : bin * stride - padding + j;
      if (b < 0 || b >= bins) continue;
      const tap = fastest === "time" ? j * kernel.time + i : i * kernel.bins + j;
      const from = ((batch * time + t) * bins + b) * channels;
      for (let c = 0; c < channels; c++) out[c * taps + tap] = values[from + c]!;
    }
  }
}

interface Convolution {
  readonly name: string;
  /** Channels of the input and of the result. */
  readonly from: number;
  readonly to: number;
  readonly kernel: Kernel;
  readonly act: Activation;
  /** True if the file may have a norm `NAME.norm` before the activation. */
  readonly mayHaveNorm?: boolean;
}

/** A convolution over time and bins with its activation. */
export function convolutionStage(model: EncoderModel, convolution: Convolution): Stage {
  const { name, from, to, kernel, act, mayHaveNorm = false } = convolution;
  const covered = { name: "covered", dim: kernel.time * kernel.bins * from };
  const out = { name: "out", dim: to };
  const b = channelBias(model, name, to);
  const w = model.kernel(`${name}.weight`, [kernel.time, kernel.bins, from, to]);
  const hasNorm = mayHaveNorm && model.has(`${name}.norm.weight`);
  const steps: Step[] = [
    { op: "input", out: covered },
    { op: "linear", out, x: covered, w, ...(b && { b }) },
    ...(hasNorm ? [norm(model, "layer", { out, x: out, name: `${name}.norm` })] : []),
    { op: "activate", x: out, act },
  ];
  return { part: { steps, result: out }, rowsMax: BLOCK, isRowwise: true, inputOf: (sheet) => gather(sheet, kernel) };
}

/** The channels of a convolution's result. Throws `bad_file` beyond a limit. */
export function channelCount(model: EncoderModel, name: string): number {
  const channels = model.shape(name)?.[3] ?? 1;
  if (channels <= CHANNELS_MAX) return channels;
  const expected = `at most ${CHANNELS_MAX} channels`;
  throw new AppError("bad_file", `${model.path}: tensor '${name}.weight': expected ${expected}, got ${channels}`);
}

/** `NAME.bias` of a convolution, whose file may give it dimensions of 1 before the channels. */
export function channelBias(model: EncoderModel, name: string, channels: number): Weight | undefined {
  const tensor = `${name}.bias`;
  if (!model.has(tensor)) return undefined;
  const dims = model.dims(tensor)!;
  if (dims.reduce((product, dim) => product * dim, 1) !== channels) {
    const got = `(${dims.join(", ")})`;
    throw new AppError("bad_file", `${model.path}: tensor '${tensor}': expected (${channels}), got ${got}`);
  }
  return { ...model.kernel(tensor, dims), inDim: channels, outDim: 1, tensorRows: 1 };
}
