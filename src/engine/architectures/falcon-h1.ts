/**
 * Falcon-H1: attention and Mamba 2 in parallel in every layer, after the same norm. Semantics: src/models/falcon-h1.cpp
 * of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, normSteps } from "./decoder.ts";
import { mamba2Block } from "./mamba.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function falconH1(model: Model): Step[] {
  const { dim, headDim, keys } = model;
  const { x, h, y } = buffersOf(model);
  const beside = { name: "ssm.y", dim };
  const rope = ropeOf(model, { style: "neox", factors: false });
  model.values("rope_freqs", rope.rotaryDim / 2); // some files have frequency factors; the reference ignores them here
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  return decoder(model, {
    block: (layer) => [
      ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.attn_norm` }),
      ...attention(model, layer, { rope, scale, bareResult: true }),
      ...mamba2Block(model, layer, { x: h, out: beside }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "add", out: x, a: x, b: beside, scale: 1 },
      ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.ffn_norm` }),
      ...feedForward(model, layer, { act: "silu" }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
    ],
  });
}
