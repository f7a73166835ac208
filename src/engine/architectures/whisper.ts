/**
 * Whisper: a decoder with learned positions whose layers also attend to the encoder's rows of 30 seconds of sound. The
 * encoder is in `hearing/encoders/whisper.ts`. Semantics: modeling_whisper.py of transformers.
 */
import type { MemoryProgram } from "../program/backend.ts";
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, normSteps } from "./decoder.ts";
import { learnedPositions } from "./gpt.ts";
import { buffersOf, type Model } from "./model.ts";

/** Rows of the encoder: one for every 20 ms. */
const SOUND_ROWS = 1500;

export function whisper(model: Model): Step[] {
  const { x, h, y } = buffersOf(model);
  const norm = (name: string): Step[] => normSteps(model, "layer", { out: h, x, name });
  const join: Step = { op: "add", out: x, a: x, b: y, scale: 1 };
  return decoder(model, {
    norm: "layer",
    start: learnedPositions(model),
    block: (layer) => [
      ...norm(`blk.${layer}.attn_norm`),
      ...attention(model, layer, { rope: undefined }),
      join,
      ...norm(`blk.${layer}.cross_attn_norm`),
      ...listen(model, layer),
      join,
      ...norm(`blk.${layer}.ffn_norm`),
      ...feedForward(model, layer, { act: "gelu_erf" }),
      join,
    ],
  });
}

/** Attention of a layer to the sound, from `h` to `y`. */
function listen(model: Model, layer: number): Step[] {
  const { dim, nHeads, headDim } = model;
  const { h, q, heads, y } = buffersOf(model);
  const linear = (name: string) => model.linear(`blk.${layer}.cross_attn_${name}`, { inDim: dim, outDim: dim });
  const scale = 1 / Math.sqrt(headDim);
  return [
    { op: "linear", out: q, x: h, ...linear("q") },
    { op: "crossAttention", out: heads, q, layer, nHeads, nKvHeads: nHeads, headDim, scale, rows: SOUND_ROWS },
    { op: "linear", out: y, x: heads, ...linear("o") },
  ];
}

/** Keys and values of the sound, for all layers. */
export function whisperMemory(model: Model): MemoryProgram {
  const { dim, nLayers, nHeads: nKvHeads, headDim } = model;
  const { h, k, v } = buffersOf(model);
  const steps = Array.from({ length: nLayers }, (_, layer): Step[] => {
    const linear = (name: string) => model.linear(`blk.${layer}.cross_attn_${name}`, { inDim: dim, outDim: dim });
    return [
      { op: "linear", out: k, x: h, ...linear("k") },
      { op: "linear", out: v, x: h, ...linear("v") },
      { op: "remember", k, v, layer, nKvHeads, headDim },
    ];
  });
  return { rows: SOUND_ROWS, steps: [{ op: "input", out: h }, ...steps.flat()] };
}
