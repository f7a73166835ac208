/**
 * Families whose layers score earlier positions by an indexer and attend to the best of them only: DeepSeek 3.2, GLM 5,
 * MiniMax M3. The indexer has keys of its own, one per position. Semantics: the files of the same names in llama.cpp's
 * src/models, without its rotation of the indexer's queries and keys, which does not change their products.
 */
import type { Buf, RopeScaling, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention, type Choice } from "./attention.ts";
import { decoder, denseThenExperts, sequentialBlock } from "./decoder.ts";
import { deepseek2, queryRank, type Chooser } from "./deepseek2.ts";
import { routingOf } from "./experts.ts";
import { HEAD_DIM_MAX, type Keys } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

const CHOSEN_MAX = 2 ** 20;
const INDEX_HEADS_MAX = 65_536;
/** The layer norm of the indexer's keys has its own epsilon, which no key gives. */
const KEY_EPS = 1e-6;

/** Maximum positions that a row attends to: a number of positions, or of blocks. */
export function chosenPositions(keys: Keys): number {
  const { count, block } = choiceSizes(keys);
  return count * block;
}

export function choiceSizes(keys: Keys): { count: number; block: number } {
  const count = keys.count("attention.indexer.top_k", { min: 1, max: CHOSEN_MAX });
  const block = keys.count("attention.indexer.block_size", { min: 0, max: CHOSEN_MAX, fallback: 1 });
  return { count, block: Math.max(block, 1) }; // llama.cpp writes 0 for families that choose single positions
}

/** DeepSeek 3.2: DeepSeek 3 with an indexer in each layer. */
export const deepseek32 = (model: Model): Step[] =>
  deepseek2(model, decoder, { chooser: (rope) => lightningIndexer(model, { ...rope, style: "neox" }) });

/** GLM 5: DeepSeek 3.2 with sigmoid scores of experts; some layers use an earlier layer's choice. */
export const glmDsa = (model: Model): Step[] =>
  deepseek2(model, decoder, { score: "sigmoid", chooser: (rope) => lightningIndexer(model, rope) });

interface IndexerOptions {
  /** RoPE applies to the last values of a head, which are moved to its front. */
  readonly turnsLast?: boolean;
  readonly keyEps?: number;
}

/** A position's score is the sum over heads of max(q·k, 0), each times the row's factor. */
export function lightningIndexer(model: Model, rope: RopeScaling, options: IndexerOptions = {}): Chooser {
  const { turnsLast = false, keyEps = KEY_EPS } = options;
  const { keys, dim, nLayers, path } = model;
  const { heads, headDim } = indexSizes(keys);
  const { count } = choiceSizes(keys);
  const { h } = buffersOf(model);
  const q = { name: "indexer.q", dim: heads * headDim };
  const k = { name: "indexer.k", dim: headDim };
  const weights = { name: "indexer.weights", dim: heads };
  const chosen = { name: "indexer.chosen", dim: count };
  const ownChoice = ownChoices(keys, (layer) => model.has(`blk.${layer}.indexer.attn_q_b.weight`));
  if (!ownChoice(0)) {
    throw new AppError("bad_file", `${path}: layer 0: expected an indexer, got none, nor an earlier layer's choice`);
  }
  const turn = (x: Buf): Step[] => {
    if (turnsLast) return turnLast(x, { heads: x.dim / headDim, headDim, rope });
    return [{ op: "rope", x, heads: x.dim / headDim, headDim, rope }];
  };
  return (layer, narrow) => {
    const blk = `blk.${layer}.indexer`;
    if (!ownChoice(layer)) return { steps: [], chosen, chosenBlock: 1 };
    const bias = model.bias(`${blk}.k_norm`, headDim);
    const steps: Step[] = [
      {
        op: "linear",
        out: q,
        x: narrow,
        w: model.matrix(`${blk}.attn_q_b`, { inDim: queryRank(model, layer), outDim: q.dim }),
      },
      ...turn(q),
      { op: "linear", out: k, x: h, w: model.matrix(`${blk}.attn_k`, { inDim: dim, outDim: headDim }) },
      {
        op: "layerNorm",
        out: k,
        x: k,
        w: model.vector(`${blk}.k_norm`, headDim),
        ...(bias && { b: bias }),
        eps: keyEps,
      },
      ...turn(k),
      { op: "linear", out: weights, x: h, w: model.matrix(`${blk}.proj`, { inDim: dim, outDim: heads }) },
      choose({ out: chosen, q, k, weights, layer, rope }, { heads, headDim, count, block: 1, local: 0, nLayers }),
    ];
    return { steps, chosen, chosenBlock: 1 };
  };
}

/** Moves the last values of each head to its front, and rotates them: products of heads stay the same. */
function turnLast(x: Buf, { heads, headDim, rope }: { heads: number; headDim: number; rope: RopeScaling }): Step[] {
  const { rotaryDim } = rope;
  const [plain, turned] = [
    { name: `${x.name}.plain`, dim: heads * (headDim - rotaryDim) },
    { name: `${x.name}.turned`, dim: heads * rotaryDim },
  ];
  return [
    { op: "slice", out: plain, x, heads, at: 0 },
    { op: "slice", out: turned, x, heads, at: headDim - rotaryDim },
    { op: "rope", x: turned, heads, headDim: rotaryDim, rope },
    { op: "join", out: x, a: turned, b: plain, heads },
  ];
}

/** MiniMax M3: dense layers, then experts and a shared one, all gated as in gpt-oss. */
export function minimaxM3(model: Model): Step[] {
  const rope = ropeOf(model, { style: "neox" });
  const ffn = denseThenExperts(model, { act: "swiglu_oai", routing: routingOf(model) });
  const chooser = blockIndexer(model, rope);
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: attention(model, layer, { rope, needsQkNorm: true, choice: chooser(layer) }),
        ffn: ffn(layer),
      }),
  });
}

/**
 * An indexer with one head per KV head, which chooses whole blocks; layers without an indexer attend to every position.
 */
function blockIndexer(model: Model, rope: RopeScaling): (layer: number) => Choice | undefined {
  const { keys, dim, nLayers, eps } = model;
  const { heads, headDim } = indexSizes(keys);
  const { count, block } = choiceSizes(keys);
  const local = keys.count("attention.indexer.local_blocks", { min: 0, max: count, fallback: 0 });
  const { h } = buffersOf(model);
  const q = { name: "indexer.q", dim: heads * headDim };
  const k = { name: "indexer.k", dim: headDim };
  const chosen = { name: "indexer.chosen", dim: heads * count };
  const ownChoice = ownChoices(keys, (layer) => model.has(`blk.${layer}.indexer.q_proj.weight`));
  return (layer) => {
    const blk = `blk.${layer}.indexer`;
    if (!ownChoice(layer)) return undefined;
    const project = (name: string, x: Buf): Step[] => [
      { op: "linear", out: x, x: h, w: model.matrix(`${blk}.${name}_proj`, { inDim: dim, outDim: x.dim }) },
      { op: "rmsNorm", out: x, x, w: model.vector(`${blk}.${name}_norm`, headDim), eps },
      { op: "rope", x, heads: x.dim / headDim, headDim, rope },
    ];
    const steps: Step[] = [
      ...project("q", q),
      ...project("k", k),
      choose({ out: chosen, q, k, layer, rope }, { heads, headDim, count, block, local, nLayers }),
    ];
    return { steps, chosen, chosenBlock: block };
  };
}

export const indexSizes = (keys: Keys): { heads: number; headDim: number } => ({
  heads: keys.count("attention.indexer.head_count", { min: 1, max: INDEX_HEADS_MAX }),
  headDim: keys.count("attention.indexer.key_length", { min: 1, max: HEAD_DIM_MAX }),
});

type Sizes = Record<"heads" | "headDim" | "count" | "block" | "local" | "nLayers", number>;
type Ends = { out: Buf; q: Buf; k: Buf; weights?: Buf; layer: number; rope: RopeScaling };

/** Attention's caches are numbered like the layers; the caches of indexers' keys have the numbers after them. */
const choose = ({ layer, ...ends }: Ends, { nLayers, ...sizes }: Sizes): Step => ({
  op: "choosePositions",
  ...ends,
  layer,
  cache: nLayers + layer,
  ...sizes,
});

/** Returns whether a layer has an indexer: as the file says, else if it has the tensors. */
function ownChoices(keys: Keys, has: (layer: number) => boolean): (layer: number) => boolean {
  const types = keys.find("attention.indexer.types");
  const flags = typeof types === "object" ? types : undefined;
  return (layer) => has(layer) && Boolean(flags?.[layer] ?? true);
}
