/**
 * Granite 4: Granite whose layers without key heads are Mamba 2. Semantics: src/models/granite-hybrid.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, moeOrFeedForward, sequentialBlock } from "./decoder.ts";
import { readLayers } from "./hparams.ts";
import { mamba2Block } from "./mamba.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function graniteHybrid(model: Model): Step[] {
  const { nHeads, headDim, keys } = model;
  const { h, y } = buffersOf(model);
  const { kvHeads } = readLayers(keys, model);
  const rope = keys.flag("rope.scaling.finetuned", true) ? ropeOf(model, { style: "norm" }) : undefined;
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  return decoder(model, {
    embeddingScale: keys.number("embedding_scale", 0) || 1,
    logitScale: 1 / (keys.number("logit_scale", 0) || 1),
    block: (layer) => {
      const nKvHeads = kvHeads[layer]!;
      return sequentialBlock(model, layer, {
        residualScale: keys.number("residual_scale", 0) || 1,
        attention:
          nKvHeads === 0
            ? mamba2Block(model, layer, { x: h, out: y })
            : attention(model, layer, { rope, scale, sizes: { nHeads, nKvHeads } }),
        ffn: moeOrFeedForward(model, layer, { act: "silu", normalize: true }),
      });
    },
  });
}
