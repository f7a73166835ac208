/** Common configuration and weights of all decoders, under Llama's names. */
import { AppError } from "../../base/index.ts";
import type { WriteValue } from "../../engine/formats/index.ts";
import { f32, u32, type TensorTable } from "./architecture.ts";
import { layersOf, nameOf, type Config } from "./config.ts";
import { ropeMetadata, ropeParameters } from "./rope.ts";

/** The loader's limit. */
const HEAD_DIM_MAX = 2048;

export interface Heads {
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
}

/** Defaults of Hugging Face's configuration classes, for keys that published files omit. */
export interface DecoderDefaults {
  readonly nHeads?: number;
  readonly nKvHeads?: number;
  readonly headDim?: number;
  readonly ctxLen?: number;
  readonly eps?: number;
  readonly ropeBase?: number;
}

export function headsOf(config: Config, defaults: DecoderDefaults = {}): Heads {
  const fallback = (value: number | undefined) => (value === undefined ? {} : { fallback: value });
  const nHeads = config.count("num_attention_heads", fallback(defaults.nHeads));
  const nKvHeads = config.findCount("num_key_value_heads") ?? defaults.nKvHeads ?? nHeads;
  const headDim = config.findCount("head_dim") ?? defaults.headDim ?? Math.floor(config.count("hidden_size") / nHeads);
  if (headDim > HEAD_DIM_MAX) throw config.wrong("head_dim", `heads of at most ${HEAD_DIM_MAX}`);
  return { nHeads, nKvHeads, headDim };
}

/** Hyperparameters of a decoder, including its RoPE. */
export function decoderMetadata(config: Config, defaults: DecoderDefaults = {}): Record<string, WriteValue> {
  const { nHeads, nKvHeads, headDim } = headsOf(config, defaults);
  const ctxLen = config.findCount("max_position_embeddings") ?? defaults.ctxLen;
  if (ctxLen === undefined) throw config.wrong("max_position_embeddings", "a whole number");
  return {
    context_length: u32(ctxLen),
    embedding_length: u32(config.count("hidden_size")),
    block_count: u32(layersOf(config)),
    feed_forward_length: u32(config.count("intermediate_size")),
    "attention.head_count": u32(nHeads),
    "attention.head_count_kv": u32(nKvHeads),
    "attention.key_length": u32(headDim),
    "attention.value_length": u32(headDim),
    "attention.layer_norm_rms_epsilon": f32(config.number("rms_norm_eps", defaults.eps ?? 1e-6)),
    ...ropeMetadata(config, defaults),
  };
}

/** The metadata of a family with layer norms in place of RMS norms. */
export function layerNorms(metadata: Record<string, WriteValue>, eps: number): Record<string, WriteValue> {
  const { "attention.layer_norm_rms_epsilon": _, ...rest } = metadata;
  return { ...rest, "attention.layer_norm_epsilon": f32(eps) };
}

/** The part of a head that is rotated. */
export function rotaryPart(
  config: Config,
  { headDim, part }: { headDim?: number; part: number },
): Record<string, WriteValue> {
  const found =
    ropeParameters(config)?.findNumber("partial_rotary_factor") ??
    config.findNumber(nameOf(config, "partial_rotary_factor", "rotary_pct")) ??
    part;
  const heads = headsOf(config, headDim === undefined ? {} : { headDim });
  return { "rope.dimension_count": u32(Math.floor(found * heads.headDim)) };
}

/**
 * The window of attention and the layers that have it, from `layer_types`; empty without a window.
 * @param period of the layers without a window, if the configuration lists none
 */
export function windowKeys(config: Config, period = 0): Record<string, WriteValue> {
  const window = config.findCount("sliding_window");
  if (window === undefined) return {};
  const types = config.find("layer_types");
  const nLayers = layersOf(config);
  if (types !== undefined && !(Array.isArray(types) && types.length === nLayers)) {
    throw config.wrong("layer_types", `a list of ${nLayers}`);
  }
  const every = config.findCount("sliding_window_pattern") ?? period;
  const slides = (layer: number): boolean =>
    types === undefined ? every === 0 || (layer + 1) % every !== 0 : types[layer] === "sliding_attention";
  const pattern = Array.from({ length: nLayers }, (_, layer) => slides(layer));
  if (!pattern.includes(true)) return {};
  return { "attention.sliding_window": u32(window), "attention.sliding_window_pattern": pattern };
}

/** Throws `unsupported` for an activation other than the one that the architecture implies in GGUF. */
export function checkActivation(config: Config, known: readonly string[], key = "hidden_act"): void {
  const found = config.find("hidden_activation") ?? config.find(key) ?? known[0];
  if (known.includes(String(found))) return;
  const expected = known.join(" or ");
  throw new AppError("unsupported", `${config.label}: '${key}': expected ${expected}, got '${String(found)}'`);
}

interface TableOptions {
  /** Reorders the rows of query and key for RoPE on neighbouring values. */
  readonly heads?: Heads;
  /** Added to the norms' weights. */
  readonly shift?: number;
}

/** Llama's weights; other architectures replace some rules. */
export function llamaTable({ heads, shift = 0 }: TableOptions = {}): TensorTable {
  return {
    embed_tokens: { to: "token_embd" },
    norm: { to: "output_norm", shift },
    lm_head: { to: "output", optional: true },
    "layers.*.input_layernorm": { to: "blk.*.attn_norm", shift },
    "layers.*.self_attn.q_proj": { to: "blk.*.attn_q", pairedHeads: heads?.nHeads ?? 0 },
    "layers.*.self_attn.k_proj": { to: "blk.*.attn_k", pairedHeads: heads?.nKvHeads ?? 0 },
    "layers.*.self_attn.v_proj": { to: "blk.*.attn_v" },
    "layers.*.self_attn.o_proj": { to: "blk.*.attn_output" },
    "layers.*.post_attention_layernorm": { to: "blk.*.ffn_norm", shift },
    "layers.*.mlp.gate_proj": { to: "blk.*.ffn_gate" },
    "layers.*.mlp.up_proj": { to: "blk.*.ffn_up" },
    "layers.*.mlp.down_proj": { to: "blk.*.ffn_down" },
  };
}

/** QK-norm weights. */
export function headNorms(shift = 0): TensorTable {
  return {
    "layers.*.self_attn.q_norm": { to: "blk.*.attn_q_norm", shift },
    "layers.*.self_attn.k_norm": { to: "blk.*.attn_k_norm", shift },
  };
}

/** Norms before and after each block, as Gemma 2 and 3 have them. */
export function sandwichNorms(shift: number): TensorTable {
  return {
    "layers.*.post_attention_layernorm": { to: "blk.*.post_attention_norm", shift },
    "layers.*.pre_feedforward_layernorm": { to: "blk.*.ffn_norm", shift },
    "layers.*.post_feedforward_layernorm": { to: "blk.*.post_ffw_norm", shift },
  };
}
