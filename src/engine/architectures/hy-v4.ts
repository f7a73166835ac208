/**
 * Hunyuan 4: latent attention with sinks and gated outputs over positions that an indexer chooses, experts with limited
 * gates, and hyper-connections between the blocks. Semantics: src/models/hy-v4.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { feedForward, moe } from "./decoder.ts";
import { latentAttention, latentSizes } from "./deepseek2.ts";
import { limitsOfGates, routingOf } from "./experts.ts";
import { streamsDecoder } from "./hyper-connections.ts";
import { chosenPositions, lightningIndexer } from "./indexed.ts";
import type { Keys } from "./hparams.ts";
import type { Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function hyV4(model: Model): Step[] {
  const { keys, nLayers, eps } = model;
  const { keyDim } = latentSizes(model);
  const rope = ropeOf({ ...model, headDim: keyDim }, { style: "norm", factors: false });
  const chooses = hyV4Chooses(keys) !== undefined;
  const attend = latentAttention(model, {
    rope,
    rotaryDim: rope.rotaryDim,
    scale: 1 / Math.sqrt(keyDim),
    gate: "sigmoid",
    sinks: true,
    ...(chooses && { choose: lightningIndexer(model, rope, { turnsLast: true, keyEps: eps }) }),
  });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const normalize = keys.flag("expert_weights_norm", false);
  const routing = routingOf(model, "sigmoid");
  const limits = limitsOfGates(model);
  return streamsDecoder(model, (layer) => ({
    attention: attend(layer),
    ffn:
      layer < leading
        ? feedForward(model, layer, { act: "silu" })
        : moe(model, layer, {
            act: "silu",
            normalize,
            routing,
            limit: limits[layer],
          }),
  }));
}

/** As `chosenPositions`; undefined: the file has no indexers. */
export const hyV4Chooses = (keys: Keys): number | undefined =>
  keys.number("attention.indexer.top_k", 0) > 0 ? chosenPositions(keys) : undefined;
