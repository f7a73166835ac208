/**
 * Families whose layers score earlier positions by an indexer and attend to the best of them only: DeepSeek 3.2, GLM 5,
 * MiniMax M3. An indexer chooses all positions of a context that has no more than it may choose. So attention here is
 * dense, and `chosenPositions` limits the context. Semantics: the files of the same names in llama.cpp's src/models.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, moe, sequentialBlock } from "./decoder.ts";
import { deepseek2 } from "./deepseek2.ts";
import { routingOf } from "./experts.ts";
import type { Keys } from "./hparams.ts";
import type { Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

const CHOSEN_MAX = 2 ** 24;
const WIDTH_MAX = 65_536;

/** Positions that a row attends to at most: a number of them, or of blocks of several. */
export function chosenPositions(keys: Keys): number {
  const chosen = keys.count("attention.indexer.top_k", { min: 1, max: CHOSEN_MAX });
  const block = keys.count("attention.indexer.block_size", { min: 0, max: CHOSEN_MAX, fallback: 1 });
  return chosen * Math.max(block, 1); // llama.cpp writes 0 for families that choose single positions
}

/** DeepSeek 3.2: DeepSeek 3 with an indexer in each layer. */
export function deepseek32(model: Model): Step[] {
  checkIndexer(model, ["attn_q_b", "attn_k", "k_norm", "proj"]);
  return deepseek2(model);
}

/** GLM 5: DeepSeek 3.2 with sigmoid scores of experts; some layers use an earlier layer's choice. */
export function glmDsa(model: Model): Step[] {
  checkIndexer(model, ["attn_q_b", "attn_k", "k_norm", "proj"]);
  return deepseek2(model, decoder, "sigmoid");
}

/** MiniMax M3: dense layers, then experts beside a shared one, all gated as in gpt-oss. */
export function minimaxM3(model: Model): Step[] {
  const { keys, nLayers } = model;
  checkIndexer(model, ["q_proj", "k_proj", "q_norm", "k_norm"]);
  const rope = ropeOf(model, { style: "neox" });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const routing = routingOf(model);
  const act = "swiglu_oai";
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: attention(model, layer, { rope, needsQkNorm: true }),
        ffn:
          layer < leading
            ? feedForward(model, layer, { act })
            : moe(model, layer, { act, normalize: keys.flag("expert_weights_norm", false), routing }),
      }),
  });
}

/** Checks the indexer's tensors, which nothing reads, in the layers that have them. */
function checkIndexer(model: Model, names: readonly string[]): void {
  const { keys, dim, nLayers } = model;
  const headDim = keys.count("attention.indexer.key_length", { min: 1, max: WIDTH_MAX });
  const heads = keys.count("attention.indexer.head_count", { min: 1, max: WIDTH_MAX });
  keys.find("attention.indexer.local_blocks"); // the nearest blocks, which are among all
  keys.find("attention.indexer.types"); // the layers that have an indexer of their own
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}.indexer`;
    if (!model.has(`${blk}.${names[0]}.weight`)) continue;
    for (const name of names) {
      if (name.endsWith("norm")) {
        model.vector(`${blk}.${name}`, headDim);
        model.bias(`${blk}.${name}`, headDim);
        continue;
      }
      const inDim = name === "attn_q_b" ? (model.rows(`blk.${layer}.attn_q_a`) ?? 0) : dim;
      const outDim = name === "proj" ? heads : name.includes("k") ? headDim : heads * headDim;
      model.matrix(`${blk}.${name}`, { inDim, outDim });
    }
  }
}
