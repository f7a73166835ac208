/**
 * Gemma 4: layers with a window and global layers differ in head size, key heads and rotation. The E models have a part
 * of a second embedding for each layer, and their last layers reuse earlier keys; the 26 B model has experts.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type Computed, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { headNorms, llamaTable, sandwichNorms } from "../decoder.ts";
import { localRopeBase, ropeParameters, ropeType } from "../rope.ts";
import { stackedExperts } from "./experts.ts";

/** The loader's limit. */
const HEAD_DIM_MAX = { max: 2048 };
/** A divisor so large that a frequency is 0: pairs that do not rotate. */
const STILL = 1e30;

export const gemma4: Architecture = {
  arch: "gemma4",
  activations: ["gelu_pytorch_tanh"],
  metadata(config) {
    for (const key of ["use_bidirectional_attention", "attention_bias"]) {
      if (config.find(key) === "all" || config.find(key) === true) throw config.wrong(key, "null or 'vision'");
    }
    const { slides, headDim, globalHeadDim } = kindsOf(config);
    const nLayers = slides.length;
    const shared = config.count("num_kv_shared_layers", { fallback: 0, min: 0 });
    const ffnDim = config.count("intermediate_size");
    const isWide = (layer: number): boolean => config.flag("use_double_wide_mlp", false) && layer >= nLayers - shared;
    const cap = config.findNumber("final_logit_softcapping");
    return {
      context_length: u32(config.count("max_position_embeddings")),
      embedding_length: u32(config.count("hidden_size")),
      block_count: u32(nLayers),
      feed_forward_length: Uint32Array.from(slides, (_, layer) => ffnDim * (isWide(layer) ? 2 : 1)),
      embedding_length_per_layer_input: u32(config.count("hidden_size_per_layer_input", { fallback: 0, min: 0 })),
      "attention.head_count": u32(config.count("num_attention_heads")),
      "attention.head_count_kv": Uint32Array.from(slides, (_, layer) => keyHeads(config, layer)),
      "attention.key_length": u32(globalHeadDim),
      "attention.value_length": u32(globalHeadDim),
      "attention.key_length_swa": u32(headDim),
      "attention.value_length_swa": u32(headDim),
      "attention.layer_norm_rms_epsilon": f32(config.number("rms_norm_eps", 1e-6)),
      "attention.shared_kv_layers": u32(shared),
      "attention.sliding_window": u32(config.count("sliding_window")),
      "attention.sliding_window_pattern": slides,
      "rope.dimension_count": u32(globalHeadDim),
      "rope.dimension_count_swa": u32(headDim),
      "rope.freq_base": f32(ropeParameters(config)?.number("rope_theta", 1e6) ?? 1e6),
      "rope.freq_base_swa": f32(localRopeBase(config) ?? 10_000),
      ...(cap === undefined ? {} : { final_logit_softcapping: f32(cap) }),
      ...(hasExperts(config) ? expertKeys(config) : {}),
    };
  },
  tensors: (config) => ({
    ...llamaTable(),
    ...sandwichNorms(0),
    ...inLayersWithKeys({ ...headNorms(), ...keyTable() }),
    "layers.*.layer_scalar": { to: "blk.*.layer_output_scale.weight" },
    ...(hasExperts(config) ? expertTable() : {}),
    ...(config.count("hidden_size_per_layer_input", { fallback: 0, min: 0 }) > 0 ? PER_LAYER : {}),
  }),
  computed: rotated,
  unused: /^(lm_head|embed_(vision|audio))\./,
  addSpacePrefix: false,
  textTokens: {
    model: "gemma4",
    visible: [
      "<|channel>",
      "<channel|>",
      "<|tool_call>",
      "<tool_call|>",
      "<|tool_response>",
      "<tool_response|>",
      '<|"|>',
    ],
  },
};

const hasExperts = (config: Config): boolean => config.flag("enable_moe_block", false);

const expertKeys = (config: Config): Record<string, WriteValue> => ({
  expert_count: u32(config.count("num_experts")),
  expert_used_count: u32(config.count("top_k_experts")),
  expert_feed_forward_length: u32(config.count("moe_intermediate_size")),
});

/** Kinds of layers, and both sizes of heads: older files have a key for the global size, newer ones a list. */
function kindsOf(config: Config): { slides: boolean[]; headDim: number; globalHeadDim: number } {
  const nLayers = layersOf(config);
  const kinds = config.find("layer_types");
  if (!Array.isArray(kinds) || kinds.length !== nLayers) throw config.wrong("layer_types", `a list of ${nLayers}`);
  const slides = kinds.map((kind) => kind === "sliding_attention");
  const headDim = config.count("head_dim", { ...HEAD_DIM_MAX, fallback: 256 });
  const first = slides.indexOf(false);
  const listed = config.findPart("per_layer_config")?.findPart(String(first));
  const whole = listed ? listed.count("head_dim", HEAD_DIM_MAX) : undefined;
  return {
    slides,
    headDim,
    globalHeadDim: whole ?? config.count("global_head_dim", { ...HEAD_DIM_MAX, fallback: 512 }),
  };
}

function keyHeads(config: Config, layer: number): number {
  const usual = config.count("num_key_value_heads");
  const listed = config.findPart("per_layer_config");
  if (listed) return listed.findPart(String(layer))?.findCount("num_key_value_heads") ?? usual;
  const slides = (config.find("layer_types") as readonly unknown[])[layer] === "sliding_attention"; // checked before
  return slides || !config.flag("attention_k_eq_v", false)
    ? usual
    : (config.findCount("num_global_key_value_heads") ?? usual);
}

/** Global layers rotate only the first pairs, but with the frequencies of a whole rotated head. */
function rotated(config: Config): Computed {
  const parameters = ropeParameters(config);
  if (parameters && ropeType(parameters) !== "proportional") throw parameters.wrong("rope_type", "'proportional'");
  const pairs = kindsOf(config).globalHeadDim / 2;
  const turning = Math.floor(pairs * (parameters?.number("partial_rotary_factor", 0.25) ?? 0.25));
  return { rope_freqs: Float32Array.from({ length: pairs }, (_, pair) => (pair < turning ? 1 : STILL)) };
}

/** Layers that reuse earlier keys have no keys, and some layers use keys as values. */
const keyTable = (): TensorTable => ({
  "layers.*.self_attn.k_proj": { to: "blk.*.attn_k" },
  "layers.*.self_attn.v_proj": { to: "blk.*.attn_v" },
});

function inLayersWithKeys(table: TensorTable): TensorTable {
  const some = Object.entries(table).map(([name, rule]) =>
    /k_norm|[kv]_proj/.test(name)
      ? [name, [rule].flat().map((each) => ({ ...each, optional: "layers" as const }))]
      : [name, rule],
  );
  return Object.fromEntries(some);
}

const expertTable = (): TensorTable => ({
  ...stackedExperts("layers.*.experts"),
  "layers.*.router.proj": { to: "blk.*.ffn_gate_inp" },
  "layers.*.router.scale": { to: "blk.*.ffn_gate_inp.scale" },
  "layers.*.router.per_expert_scale": { to: "blk.*.ffn_down_exps.scale" },
  "layers.*.post_feedforward_layernorm_1": { to: "blk.*.post_ffw_norm_1" },
  "layers.*.post_feedforward_layernorm_2": { to: "blk.*.post_ffw_norm_2" },
  "layers.*.pre_feedforward_layernorm_2": { to: "blk.*.pre_ffw_norm_2" },
});

/** A second embedding, of which each layer has a part. */
export const PER_LAYER: TensorTable = {
  embed_tokens_per_layer: { to: "per_layer_token_embd" },
  per_layer_model_projection: { to: "per_layer_model_proj" },
  per_layer_projection_norm: { to: "per_layer_proj_norm" },
  "layers.*.per_layer_input_gate": { to: "blk.*.inp_gate" },
  "layers.*.per_layer_projection": { to: "blk.*.proj" },
  "layers.*.post_per_layer_input_norm": { to: "blk.*.post_norm" },
};
