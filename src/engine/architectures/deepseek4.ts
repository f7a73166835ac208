/**
 * DeepSeek V4: heads share one key per position, which is also its value. In addition to a window, layers attend to
 * blocks of positions, each compressed to one vector: to all blocks of 128, or to blocks of 4 that an indexer chooses.
 * Streams are mixed between blocks, and the first layers choose experts by the token. Semantics:
 * src/models/deepseek4.cpp of llama.cpp, without its rotation of the indexer's queries and keys, which does not change
 * their products.
 */
import type { Buf, RopeScaling, Step } from "../program/step.ts";
import { moe } from "./decoder.ts";
import { narrowQuery, queries, queryRank } from "./deepseek2.ts";
import { limitsOfGates, routingOf } from "./experts.ts";
import { CTX_LEN_MAX, type Keys } from "./hparams.ts";
import { mixingConnections, streamsDecoder } from "./hyper-connections.ts";
import { choiceSizes, indexSizes } from "./indexed.ts";
import { buffersOf, type Model } from "./model.ts";
import { checkedRope, localRope, ropeOf } from "./rope.ts";

/** Blocks of this many positions overlap, and an indexer chooses among them. */
const CHOSEN_RATIO = 4;
/** Limit of a block's positions: each layer keeps that many rows of a sequence, twice as wide as a head. */
const RATIO_MAX = 1024;
const RANK_MAX = 65_536;

/** Context length up to which an indexer chooses all blocks. */
export const deepseek4Chooses = (keys: Keys): number => choiceSizes(keys).count * CHOSEN_RATIO;

export function deepseek4(model: Model): Step[] {
  const { keys, nLayers, vocabSize, nExperts, nExpertsUsed } = model;
  const attend = compressedAttention(model);
  const routing = routingOf(model, "sqrt_softplus");
  const normalize = keys.flag("expert_weights_norm", false);
  const limits = limitsOfGates(model);
  const sharedLimits =
    keys.find("swiglu_clamp_shexp") === undefined ? limits : limitsOfGates(model, "swiglu_clamp_shexp");
  const byToken = keys.count("hash_layer_count", { min: 0, max: nLayers, fallback: 0 });
  return streamsDecoder(
    model,
    (layer) => {
      model.bias(`blk.${layer}.exp_probs_b_vl`, nExperts); // for the rows of images
      const chosen = layer < byToken ? { name: "moe.chosen", dim: nExpertsUsed } : undefined;
      const [limit, sharedLimit] = [limits[layer], sharedLimits[layer]];
      const experts = moe(model, layer, { act: "silu", normalize, routing, limit, sharedLimit, chosen });
      if (!chosen) return { attention: attend(layer), ffn: experts };
      const values = model.numbers(`blk.${layer}.ffn_gate_tid2eid`, [nExpertsUsed, vocabSize], nExperts);
      return { attention: attend(layer), ffn: [{ op: "lookup", out: chosen, values }, ...experts] };
    },
    mixingConnections(model),
  );
}

/** Steps that compute `y` from `h`. */
function compressedAttention(model: Model): (layer: number) => Step[] {
  const { keys, dim, nLayers, nHeads, headDim, eps } = model;
  const { h, y, q, heads } = buffersOf(model);
  const k = { name: "k", dim: headDim };
  const ratios = keys.counts("attention.compress_ratios", { min: 0, max: RATIO_MAX }, nLayers);
  const window = keys.count("attention.sliding_window", { min: 1, max: CTX_LEN_MAX });
  const groups = keys.count("attention.output_group_count", { min: 1, max: nHeads });
  const rank = keys.count("attention.output_lora_rank", { min: 1, max: RANK_MAX });
  const low = { name: "attention.low", dim: groups * rank };
  const turns = turnsOf(model);
  const delayed = new Map<number, RopeScaling>();
  const scale = 1 / Math.sqrt(headDim);
  return (layer) => {
    const blk = `blk.${layer}`;
    const ratio = ratios[layer]!;
    const { rope, back } = turns(ratio);
    const start = delayed.get(ratio) ?? { ...rope, delay: ratio - 1 };
    delayed.set(ratio, start);
    const sinks = model.vector(`${blk}.attn_sinks`, nHeads);
    const common = { out: heads, q, k, layer, nHeads, headDim, scale, window, sinks };
    const outward = model.matrix(`${blk}.attn_output_a`, { inDim: heads.dim / groups, outDim: low.dim });
    return [
      ...queries(model, layer, q),
      { op: "bareRmsNorm", out: q, x: q, run: headDim, eps },
      turn(q, headDim, rope),
      { op: "linear", out: k, x: h, w: model.matrix(`${blk}.attn_kv`, { inDim: dim, outDim: headDim }) },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`${blk}.attn_kv_a_norm`, headDim), eps },
      turn(k, headDim, rope),
      ...(ratio === 0
        ? [{ op: "attention", ...common, v: k, nKvHeads: 1, softCap: 0, rope: undefined } as const]
        : compressed(model, layer, { common, ratio, rope, start })),
      turn(heads, headDim, back),
      {
        op: "headLinear",
        out: low,
        x: heads,
        w: { ...outward, outDim: rank, tensorRows: rank, experts: groups },
        transposed: false,
      },
      { op: "linear", out: y, x: low, w: model.matrix(`${blk}.attn_output_b`, { inDim: low.dim, outDim: dim }) },
    ];
  };
}

type Attention = Extract<Step, { op: "compressedAttention" }>;

/** A layer's RoPE, and the inverse rotation, which is applied to the result. */
interface Turns {
  readonly rope: RopeScaling;
  readonly back: RopeScaling;
}

/** RoPE of layers without blocks, and of the other layers, which scale it without a magnitude. */
function turnsOf(model: Model): (ratio: number) => Turns {
  const given = ropeOf(model, { style: "norm", factors: false });
  const base = model.keys.number("attention.compress_rope_freq_base");
  const attnFactor = given.extFactor === 0 ? 1 : 1 / (1 + 0.1 * Math.log(1 / given.freqScale));
  const both = (rope: RopeScaling): Turns => ({ rope, back: { ...rope, back: true } });
  const plain = both(localRope(model, given, { base: given.base }));
  const stretched = both(checkedRope(model, { ...given, base, attnFactor }));
  return (ratio) => (ratio === 0 ? plain : stretched);
}

/** RoPE applies to the last values of each head. */
const turn = (x: Buf, headDim: number, rope: RopeScaling): Step => {
  return { op: "rope", x, heads: x.dim / headDim, headDim, rope, at: headDim - rope.rotaryDim };
};

interface Blocks {
  readonly common: Omit<Attention, "op" | "entries" | "ratio" | "chosen">;
  readonly ratio: number;
  readonly rope: RopeScaling;
  /** RoPE for a block's last row, which rotates it as the block's first position. */
  readonly start: RopeScaling;
}

function compressed(model: Model, layer: number, { common, ratio, rope, start }: Blocks): Step[] {
  const entries = { name: "entries", dim: model.headDim };
  const blk = `blk.${layer}`;
  const made = entriesOf(model, layer, { out: entries, name: `${blk}.attn_compressor`, ratio, start });
  const attend = { op: "compressedAttention", ...common, entries, ratio } as const;
  if (ratio !== CHOSEN_RATIO) return [...made, attend];
  const { heads, headDim } = indexSizes(model.keys);
  const { count } = choiceSizes(model.keys);
  const q = { name: "indexer.q", dim: heads * headDim };
  const k = { name: "indexer.k", dim: headDim };
  const weights = { name: "indexer.weights", dim: heads };
  const chosen = { name: "indexer.chosen", dim: count };
  const narrow = narrowQuery(model, layer);
  return [
    ...made,
    {
      op: "linear",
      out: q,
      x: narrow,
      w: model.matrix(`${blk}.indexer.attn_q_b`, { inDim: queryRank(model, layer), outDim: q.dim }),
    },
    turn(q, headDim, rope),
    ...entriesOf(model, layer, { out: k, name: `${blk}.indexer_compressor`, ratio, start }),
    {
      op: "linear",
      out: weights,
      x: buffersOf(model).h,
      w: model.matrix(`${blk}.indexer.proj`, { inDim: model.dim, outDim: heads }),
    },
    {
      op: "choosePositions",
      out: chosen,
      q,
      k,
      weights,
      layer,
      cache: model.nLayers + layer,
      heads,
      headDim,
      count,
      block: ratio,
      local: 0,
      rope: undefined,
      closed: true,
    },
    { ...attend, chosen },
  ];
}

interface Entries extends Pick<Blocks, "ratio" | "start"> {
  readonly out: Buf;
  /** The beginning of the tensors' names. */
  readonly name: string;
}

/** The vectors of blocks, from `h`, each rotated as the block's first position. */
function entriesOf(model: Model, layer: number, { out, name, ratio, start }: Entries): Step[] {
  const { dim: inDim, eps } = model;
  const { h } = buffersOf(model);
  const overlap = ratio === CHOSEN_RATIO;
  const outDim = (overlap ? 2 : 1) * out.dim;
  const [x, gate] = [
    { name: `${out.name}.parts`, dim: outDim },
    { name: `${out.name}.gate`, dim: outDim },
  ];
  const bias = model.matrix(`${name}_ape`, { inDim: outDim, outDim: ratio });
  return [
    { op: "linear", out: x, x: h, w: model.matrix(`${name}_kv`, { inDim, outDim }) },
    { op: "linear", out: gate, x: h, w: model.matrix(`${name}_gate`, { inDim, outDim }) },
    { op: "compress", out, x, gate, bias, layer, ratio, overlap },
    { op: "rmsNorm", out, x: out, w: model.vector(`${name}_norm`, out.dim), eps },
    turn(out, out.dim, start),
  ];
}
