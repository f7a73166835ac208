/**
 * Variants of Llama: RMS norms before attention and before the MLP, in sequence. Each states only its differences;
 * optional parts are read from the file. Semantics: the files of the same names in llama.cpp's src/models.
 */
import type { Activation, Buf, RopeScaling, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention, type AttentionOptions } from "./attention.ts";
import {
  decoder,
  feedForward,
  moe,
  moeOrFeedForward,
  parallelBlock,
  sequentialBlock,
  type BlockOptions,
  type DecoderOptions,
  type Frame,
  type NormKind,
} from "./decoder.ts";
import { readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { localRope, ropeOf } from "./rope.ts";

/** The differences of a family from Llama; README.md has a table with an example of each. */
export interface Options
  extends
    Omit<DecoderOptions, "block">,
    Omit<BlockOptions, "attention" | "ffn">,
    Pick<AttentionOptions, "scale" | "softCap" | "bareQkv" | "queries" | "gate" | "resultNorm"> {
  /** RoPE of queries and keys: its pairs are neighbours (`norm`) or lie half a head apart (`neox`); null: none. */
  readonly rope: RopeScaling["style"] | RopeScaling | null;
  /** The assignment of time, height and width to pairs, as in `ropeOf`. */
  readonly sections?: "runs" | "interleaved";
  /** RoPE uses the file's frequency factors; default: true. */
  readonly factors?: boolean;
  /** Activation of the MLP; default: silu. */
  readonly act?: Activation;
  /** The kind of all norms; default: `rms`. */
  readonly norm?: NormKind;
  /** Attention and MLP are computed from the same stream; default: false. */
  readonly parallel?: boolean | ((layer: number) => boolean);
  /** The window of each layer; 0 or absent: no window. */
  readonly windows?: readonly number[];
  /** The rotation in layers with a window; default: as in other layers. */
  readonly local?: RopeScaling;
  /** Options of attention for single layers. */
  readonly perLayer?: (layer: number) => Partial<AttentionOptions>;
  /** Steps in place of the MLP. */
  readonly ffn?: (layer: number) => readonly Step[];
  /** Makes the steps around the layers; default: `decoder`. */
  readonly frame?: Frame;
  /** Input of attention and MLP; default: the normed stream. */
  readonly from?: Buf;
  /** Limit of ALiBi's slopes. */
  readonly alibi?: number;
  /** Refuses a file without norms of query and key, which every file of the family has; default: false. */
  readonly needsQkNorm?: boolean;
  /** QK-norm after RoPE. */
  readonly normLast?: boolean;
  /** Rows attend in both directions; default: false. */
  readonly bidirectional?: boolean;
  /** Inner width of the MLP; default: the model's. */
  readonly ffnDim?: number;
  /** Limit of the values of query, key and value; 0: no limit. */
  readonly clamp?: number;
  /** Omits the bias of attention's output, as llama.cpp does; default: false. */
  readonly bareResult?: boolean;
  /** Omits biases of the MLP, as llama.cpp does; default: false. */
  readonly bareMlp?: boolean;
}

/** An architecture whose layers differ only by `perLayer`. */
export function sequential(model: Model, options: Options): Step[] {
  const { act = "silu", norm = "rms", windows = [], frame = decoder } = options;
  const { rope: style, sections, factors = true } = options;
  const rope = typeof style === "string" ? ropeOf(model, { style, factors, ...(sections && { sections }) }) : style;
  if (!factors) model.values("rope_freqs", model.headDim / 2);
  const scale = model.keys.number("attention.scale", 0);
  const mlpOf = (layer: number): Step[] =>
    model.has(`blk.${layer}.ffn_gate_inp.weight`)
      ? moe(model, layer, { act, normalize: true })
      : feedForward(model, layer, { ...options, act, bare: options.bareMlp ?? false });
  return frame(model, {
    ...options,
    norm,
    block: (layer) => {
      const { parallel = false, perLayer } = options;
      const window = windows[layer] ?? 0;
      const block = (typeof parallel === "function" ? parallel(layer) : parallel) ? parallelBlock : sequentialBlock;
      return block(model, layer, {
        ...options,
        norm,
        attention: attention(model, layer, {
          ...options,
          rope: (window > 0 ? options.local : undefined) ?? rope ?? undefined,
          window,
          qkNorm: norm,
          ...(scale !== 0 && { scale }),
          ...perLayer?.(layer),
        }),
        ffn: options.ffn?.(layer) ?? mlpOf(layer),
      });
    },
  });
}

/** Layers 3, 7, 11 … of SmolLM 3 have no RoPE. No GGUF key says so. */
const NO_ROPE_PERIOD = 4;
const ALIBI = 8;
const ROPE_BASE = 10_000;
/** Number of layers of Baichuan 2 13 B, which has no RoPE. No GGUF key says so. */
const BAICHUAN_13B_LAYERS = 40;

/** Qwen 2 and 2.5: query, key and value have biases. */
export const qwen2 = (model: Model): Step[] => sequential(model, { rope: "neox" });
/** Qwen 2 with QK-norm in place of biases. */
export const qwen3 = (model: Model): Step[] => sequential(model, { rope: "neox", needsQkNorm: true });
/**
 * Phi 3 and 4: fused matrices, and a short and a long set of frequency factors. The files' sliding window is ignored,
 * as in llama.cpp (its pull request 13676).
 */
export const phi3 = (model: Model): Step[] => sequential(model, { rope: "neox" });
export const arcee = (model: Model): Step[] => sequential(model, { rope: "norm", act: "relu_sqr" });
export const ernie45 = (model: Model): Step[] => sequential(model, { rope: "norm", bareResult: true });
export const qwen2vl = (model: Model): Step[] =>
  sequential(model, { rope: "neox", sections: "runs", bareLogits: true });
export const qwen3vl = (model: Model): Step[] => sequential(model, { rope: "neox", sections: "interleaved" });
export const maincoder = (model: Model): Step[] => sequential(model, { rope: "norm", normLast: true });
export const nanbeige = (model: Model): Step[] => sequential(model, { rope: "norm" });
/** Its files may have RoPE factors, which llama.cpp ignores. */
export const panguEmbedded = (model: Model): Step[] => sequential(model, { rope: "neox", factors: false });
export const paddleocr = (model: Model): Step[] => sequential(model, { rope: "neox" });
export const jais2 = (model: Model): Step[] => sequential(model, { rope: "neox", norm: "layer", act: "relu_sqr" });
export const exaone = (model: Model): Step[] => sequential(model, { rope: "neox" });
export const chatglm = (model: Model): Step[] => sequential(model, { rope: "norm" });
export const hunyuanDense = (model: Model): Step[] => sequential(model, { rope: "neox", normLast: true });
export const internlm2 = (model: Model): Step[] => sequential(model, { rope: "norm" });
export const orion = (model: Model): Step[] => sequential(model, { rope: "neox", norm: "layer" });

/** Its files have factors for a RoPE that it does not use. No file has experts. */
export function refact(model: Model): Step[] {
  if (model.nExperts > 0) {
    throw new AppError("unsupported", `${model.path}: 'refact.expert_count': expected none, got ${model.nExperts}`);
  }
  const alibi = model.keys.number("attention.max_alibi_bias", 0) || ALIBI;
  model.values("rope_freqs", model.headDim / 2);
  return sequential(model, { rope: null, alibi, bareResult: true, bareMlp: true });
}
export const seedOss = (model: Model): Step[] => sequential(model, { rope: "neox", ffnNorm: "post_attention_norm" });
export const xverse = (model: Model): Step[] => sequential(model, { rope: "norm" });

/** Its feed-forward length counts gate and up together. */
export const qwen = (model: Model): Step[] => sequential(model, { rope: "neox", ffnDim: model.ffnDim / 2 });

/** Norms have no weights. */
export const olmo = (model: Model): Step[] =>
  sequential(model, { rope: "norm", norm: "bare", clamp: model.keys.number("attention.clamp_kqv", 0) });

export const baichuan = (model: Model): Step[] =>
  sequential(model, model.nLayers === BAICHUAN_13B_LAYERS ? { rope: null, alibi: ALIBI } : { rope: "norm" });

/** Older files lack the factors of embeddings, residuals and logits. */
export function minicpm(model: Model): Step[] {
  const { keys, nLayers, dim } = model;
  return sequential(model, {
    rope: "norm",
    embeddingScale: keys.number("embedding_scale", 12),
    residualScale: keys.number("residual_scale", 1.4 / Math.sqrt(nLayers)),
    logitScale: 1 / keys.number("logit_scale", 256 / dim),
  });
}

/** CogVLM as text: weights for image rows stay unused, and so do RoPE's frequency factors. */
export function cogvlm(model: Model): Step[] {
  const { dim, ffnDim, headDim, nHeads, nLayers } = model;
  model.values("rope_freqs", headDim / 2);
  for (let layer = 0; layer < nLayers; layer++) {
    const image = (name: string, inDim: number, outDim: number): void =>
      void model.matrix(`blk.${layer}.vis_${name}`, { inDim, outDim });
    image("attn_qkv", dim, 3 * nHeads * headDim);
    image("attn_output", nHeads * headDim, dim);
    image("gate", dim, ffnDim);
    image("up", dim, ffnDim);
    image("down", ffnDim, dim);
  }
  const scaled = ropeOf(model, { style: "neox", factors: false });
  const rope = localRope(model, scaled, { base: ROPE_BASE, rotaryDim: headDim });
  return sequential(model, { rope, bareQkv: true });
}

const AFTER = { attnPostNorm: "post_attention_norm", ffnPostNorm: "post_ffw_norm" };
/** Norms after the blocks only. */
const ONLY_AFTER = { ...AFTER, attnNorm: null, ffnNorm: null };

/** GLM 4: also a norm after each block. With sections it has multi-position RoPE, which is equal for text. */
export function glm4(model: Model): Step[] {
  const rope = hasSections(model)
    ? ropeOf(model, { style: "neox", sections: "runs" })
    : ropeOf(model, { style: "norm" });
  return sequential(model, { ...AFTER, rope });
}

/** Returns whether a model's positions have three parts (time, height, width). */
function hasSections({ keys }: Model): boolean {
  const sections = keys.find("rope.dimension_sections");
  return typeof sections === "object" && Array.from(sections as ArrayLike<unknown>).some((count) => count !== 0);
}

/**
 * EXAONE 4: norms after the blocks only; in the 32 B model, three of four layers have a window, and only those have
 * RoPE.
 */
export function exaone4(model: Model): Step[] {
  const { keys, nLayers } = model;
  const slides = nLayers === 64;
  // Marks the key as read: the smaller models have no window, whatever the key says
  keys.find("attention.sliding_window");
  const windows = slides ? readWindows(keys, model, { window: 4096, period: 4 }) : [];
  const rope = ropeOf(model, { style: "neox" });
  const turns = slides ? { rope: null, local: rope } : { rope };
  return sequential(model, { ...ONLY_AFTER, ...turns, windows, from: buffersOf(model).x });
}

/** Mistral 3 (Ministral): YaRN, and queries that grow with the logarithm of their position. */
export function mistral3(model: Model): Step[] {
  const rope = ropeOf(model, { style: "norm", logMultiplier: true });
  const coef = model.keys.number("attention.temperature_scale", 0);
  const { q } = buffersOf(model);
  const queries: Step[] =
    coef === 0 ? [] : [{ op: "positionScale", x: q, coef, floorScale: rope.ctxLenOrig, offset: 0 }];
  return sequential(model, {
    rope,
    queries,
    ffn: (layer) => moeOrFeedForward(model, layer, { act: "silu", normalize: true }),
  });
}

/**
 * OLMo 2 and 3: norms after the blocks only, and norms over all heads of query and key together. OLMo 3 adds layers
 * with a sliding window, which have unscaled RoPE.
 */
export function olmo2(model: Model): Step[] {
  const { keys } = model;
  const rope = ropeOf(model, { style: "neox" });
  const local = localRope(model, rope, { base: keys.number("rope.freq_base_swa", rope.base) });
  const windows = readWindows(keys, model, { window: 0, period: 4 });
  return sequential(model, { ...ONLY_AFTER, rope, local, windows, from: buffersOf(model).x, needsQkNorm: true });
}

export function smollm3(model: Model): Step[] {
  const rope = ropeOf(model, { style: "norm" });
  const perLayer = (layer: number) => ({ rope: (layer + 1) % NO_ROPE_PERIOD === 0 ? undefined : rope });
  return sequential(model, { rope, perLayer });
}
