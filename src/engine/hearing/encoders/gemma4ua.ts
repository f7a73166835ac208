/** Gemma 4 without an encoder: segments of 40 milliseconds, normed and projected (tools/mtmd/models/gemma4ua.cpp). */
import type { Step } from "../../program/step.ts";
import { widthOf, type EncoderModel } from "../../vision/clip.ts";
import { project } from "../../vision/tower.ts";
import { asRows, type AudioEncoderSpec } from "../encoder-spec.ts";

const STRETCH = 640;
/** Epsilon of the norm; the file has another. */
const EPS = 1e-6;
const BLOCK = 512;

export function gemma4ua(model: EncoderModel): AudioEncoderSpec {
  const [stretch, projected] = [
    { name: "stretch", dim: STRETCH },
    { name: "projected", dim: widthOf(model, "mm.a.input_projection") },
  ];
  const steps: Step[] = [
    { op: "input", out: stretch },
    { op: "bareRmsNorm", out: stretch, x: stretch, run: STRETCH, eps: EPS },
    ...project(model, "mm.a.input_projection", { out: projected, x: stretch }),
  ];
  const countOf = (samples: number): number => Math.ceil(samples / STRETCH);
  return {
    before: "<|audio>",
    after: "<audio|>",
    rowsOf: (samples) => [countOf(samples)],
    *listen(samples) {
      yield;
      const time = countOf(samples.length);
      const values = new Float32Array(time * STRETCH);
      values.set(samples);
      return [{ values, batches: 1, time, bins: 1, channels: STRETCH }];
    },
    stages: [{ part: { steps, result: projected }, rowsMax: BLOCK, isRowwise: true, inputOf: asRows }],
  };
}
