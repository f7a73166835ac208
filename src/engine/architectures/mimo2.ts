/**
 * MiMo 2: values narrower than keys; layers with a window have other numbers of key heads, and sinks; some layers have
 * experts. Semantics: src/models/mimo2.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, moeOrFeedForward, sequentialBlock } from "./decoder.ts";
import { HEAD_DIM_MAX, readLayers, readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf, windowRope } from "./rope.ts";

export function mimo2(model: Model): Step[] {
  const { keys, headDim } = model;
  const { y } = buffersOf(model);
  const rope = { ...ropeOf(model, { style: "neox" }) };
  const local = { ...windowRope(model, rope), rotaryDim: rope.rotaryDim };
  const windows = readWindows(keys, model, { window: 0, period: 0 });
  const { heads, kvHeads } = readLayers(keys, model);
  const valueDim = keys.count("attention.value_length", { min: 1, max: HEAD_DIM_MAX, fallback: headDim });
  const valueScale = keys.number("attention.value_scale", 0) || 1;
  return decoder(model, {
    block: (layer) => {
      const window = windows[layer]!;
      const sizes = { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]!, valueDim };
      return sequentialBlock(model, layer, {
        attention: [
          ...attention(model, layer, { rope: window > 0 ? local : rope, window, sizes, bareQkv: true }),
          ...(valueScale === 1 ? [] : [{ op: "scale", x: y, by: valueScale } as const]),
        ],
        ffn: moeOrFeedForward(model, layer, { act: "silu", normalize: true, routing: { score: "sigmoid" } }),
      });
    },
  });
}
