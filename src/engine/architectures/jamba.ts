/**
 * Jamba: layers without key heads are Mamba 1 with norms on time steps, B and C; the others are attention without RoPE.
 * Some layers have experts. Semantics: src/models/jamba.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, moeOrFeedForward, sequentialBlock } from "./decoder.ts";
import { readLayers } from "./hparams.ts";
import { mamba1Block } from "./mamba.ts";
import { buffersOf, type Model } from "./model.ts";

export function jamba(model: Model): Step[] {
  const { nHeads, keys } = model;
  const { h, y } = buffersOf(model);
  const { kvHeads } = readLayers(keys, model);
  return decoder(model, {
    block: (layer) => {
      const nKvHeads = kvHeads[layer]!;
      return sequentialBlock(model, layer, {
        attention:
          nKvHeads === 0
            ? mamba1Block(model, layer, { x: h, out: y })
            : attention(model, layer, { rope: undefined, sizes: { nHeads, nKvHeads } }),
        ffn: moeOrFeedForward(model, layer, { act: "silu", normalize: false }),
      });
    },
  });
}
