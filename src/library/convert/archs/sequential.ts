/**
 * Dense decoders that differ from Llama in names, norms, biases or factors. Where the file's rotation turns halves and
 * GGUF's neighbours, rows of query and key are reordered (`paired`).
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import {
  checkActivation,
  decoderMetadata,
  headNorms,
  headsOf,
  layerNorms,
  llamaTable,
  rotaryPart,
  windowKeys,
  type DecoderDefaults,
} from "../decoder.ts";
import { llama3Factors } from "../rope.ts";

const paired = (config: Config): TensorTable => llamaTable({ heads: headsOf(config) });
const { "layers.*.mlp.gate_proj": _, ...UNGATED } = llamaTable();

const EXAONE_32B_LAYERS = 64;

/** Post-norms only: after attention and after the MLP. */
const POST_NORMS: TensorTable = {
  "layers.*.post_attention_layernorm": { to: "blk.*.post_attention_norm" },
  "layers.*.post_feedforward_layernorm": { to: "blk.*.post_ffw_norm" },
};

const without = (table: TensorTable, ...names: readonly string[]): TensorTable =>
  Object.fromEntries(Object.entries(table).filter(([name]) => !names.includes(name)));

/** OLMo: norms have no weights, and values may be clamped. */
export const olmo: Architecture = {
  arch: "olmo",
  activations: ["silu"],
  metadata(config) {
    const clip = config.findNumber("clip_qkv");
    return {
      ...layerNorms(decoderMetadata(config), 1e-5),
      ...(clip === undefined ? {} : { "attention.clamp_kqv": f32(clip) }),
    };
  },
  tensors: (config) => without(paired(config), "norm", "layers.*.input_layernorm", "layers.*.post_attention_layernorm"),
};

/** OLMo 2 and 3: norms after the blocks only, and norms over the whole of query and key. */
export const olmo2: Architecture = {
  arch: "olmo2",
  activations: ["silu"],
  metadata: (config) => ({ ...decoderMetadata(config, { eps: 1e-5 }), ...windowKeys(config) }),
  tensors: () => ({ ...without(llamaTable(), "layers.*.input_layernorm"), ...headNorms(), ...POST_NORMS }),
};

/** The 32 B model, of 64 layers, has windows in three of four layers; a GGUF of another number has none. */
export const exaone4: Architecture = {
  arch: "exaone4",
  activations: ["silu"],
  metadata(config) {
    const windows = windowKeys(config, 4);
    if (layersOf(config) !== EXAONE_32B_LAYERS && "attention.sliding_window" in windows) {
      throw config.wrong("sliding_window", `null with other than ${EXAONE_32B_LAYERS} layers`);
    }
    return { ...decoderMetadata(config, { eps: 1e-5 }), ...windows };
  },
  tensors: () => ({ ...without(llamaTable(), "layers.*.input_layernorm"), ...headNorms(), ...POST_NORMS }),
};

/** Granite 3: scaled embeddings, residuals, attention and logits. */
export const granite: Architecture = {
  arch: "granite",
  activations: ["silu"],
  metadata: (config) => ({ ...decoderMetadata(config), ...graniteFactors(config) }),
  tensors: paired,
};

export const graniteFactors = (config: Config): Record<string, WriteValue> => ({
  "rope.dimension_count": u32(headsOf(config).headDim),
  "attention.scale": f32(config.number("attention_multiplier", 1)),
  embedding_scale: f32(config.number("embedding_multiplier", 1)),
  residual_scale: f32(config.number("residual_multiplier", 1)),
  logit_scale: f32(config.number("logits_scaling", 1)),
});

/** Apertus: norms of query and key, and an activation with separate parameters in each layer. */
export const apertus: Architecture = {
  arch: "apertus",
  activations: ["xielu"],
  metadata: (config) => decoderMetadata(config, { eps: 1e-5, ropeBase: 12_000_000 }),
  tensors: () => ({
    ...without(UNGATED, "layers.*.input_layernorm", "layers.*.post_attention_layernorm"),
    ...headNorms(),
    "layers.*.attention_layernorm": { to: "blk.*.attn_norm" },
    "layers.*.feedforward_layernorm": { to: "blk.*.ffn_norm" },
  }),
  computed: (config) => llama3Factors(config, headsOf(config).headDim),
  layerValues: {
    "layers.*.mlp.act_fn.alpha_n": "xielu.alpha_n",
    "layers.*.mlp.act_fn.alpha_p": "xielu.alpha_p",
    "layers.*.mlp.act_fn.beta": "xielu.beta",
    "layers.*.mlp.act_fn.eps": "xielu.eps",
  },
  unused: /\.mlp\.act_fn\./,
};

export const arcee: Architecture = {
  arch: "arcee",
  activations: ["relu2"],
  metadata: (config) => ({
    ...decoderMetadata(config, { eps: 1e-5 }),
    "rope.dimension_count": u32(headsOf(config).headDim),
  }),
  tensors: (config) => without(paired(config), "layers.*.mlp.gate_proj"),
};

/** Every fourth layer has no RoPE: a GGUF cannot express anything else. */
export const smollm3: Architecture = {
  arch: "smollm3",
  activations: ["silu"],
  metadata(config) {
    const listed = config.find("no_rope_layers");
    const usual = Array.from({ length: layersOf(config) }, (_, i) => ((i + 1) % 4 === 0 ? 0 : 1));
    if (listed !== undefined && String(listed) !== String(usual)) {
      throw config.wrong("no_rope_layers", "rotations in all layers but every fourth");
    }
    return { ...decoderMetadata(config), "rope.dimension_count": u32(headsOf(config).headDim) };
  },
  tensors: paired,
};

export const seedOss: Architecture = {
  arch: "seed_oss",
  activations: ["silu"],
  metadata: (config) => decoderMetadata(config, { headDim: 128 }),
  tensors: () => ({
    ...llamaTable(),
    "layers.*.post_attention_layernorm": { to: "blk.*.post_attention_norm" },
  }),
};

/** Rotates neighbours as its file does. */
export const ernie45: Architecture = {
  arch: "ernie4_5",
  activations: ["silu"],
  metadata: (config) => decoderMetadata(config, { eps: 1e-5 }),
  tensors: () => llamaTable(),
};

export const hunyuanDense: Architecture = {
  arch: "hunyuan-dense",
  activations: ["silu"],
  metadata: (config) => decoderMetadata(config, { eps: 1e-5 }),
  tensors: () => ({ ...llamaTable(), ...HUNYUAN_NORMS }),
};

export const HUNYUAN_NORMS: TensorTable = {
  "layers.*.self_attn.query_layernorm": { to: "blk.*.attn_q_norm" },
  "layers.*.self_attn.key_layernorm": { to: "blk.*.attn_k_norm" },
};

const GLM: DecoderDefaults = { headDim: 128, ctxLen: 131_072, eps: 1.5625e-7 };
const glmTable = (): TensorTable => ({
  ...without(UNGATED, "layers.*.mlp.up_proj"),
  "layers.*.mlp.gate_up_proj": { to: "blk.*.ffn_up" },
});

/** GLM 4 of 2024, as transformers writes it. */
export const glm: Architecture = {
  arch: "chatglm",
  activations: ["silu"],
  metadata: (config) => ({ ...decoderMetadata(config, GLM), ...rotaryPart(config, { headDim: 128, part: 0.5 }) }),
  tensors: glmTable,
};

/** GLM 4 of 2025: also a norm after each block. */
export const glm4: Architecture = {
  arch: "glm4",
  activations: ["silu"],
  metadata: (config) => ({ ...decoderMetadata(config, GLM), ...rotaryPart(config, { headDim: 128, part: 0.5 }) }),
  tensors: () => ({
    ...glmTable(),
    "layers.*.post_self_attn_layernorm": { to: "blk.*.post_attention_norm" },
    "layers.*.post_mlp_layernorm": { to: "blk.*.post_ffw_norm" },
  }),
};

/** Norms are stored minus 1. */
export const nemotron: Architecture = {
  arch: "nemotron",
  activations: ["relu2"],
  metadata: (config) => ({
    ...layerNorms(decoderMetadata(config), config.number("norm_eps", 1e-5)),
    ...rotaryPart(config, { part: 0.5 }),
  }),
  tensors: () => without(llamaTable({ shift: 1 }), "layers.*.mlp.gate_proj"),
};

export const jais2: Architecture = {
  arch: "jais2",
  activations: ["relu2"],
  metadata: (config) => layerNorms(decoderMetadata(config), config.number("layer_norm_eps", 1e-5)),
  tensors: () => UNGATED,
};

export const starcoder2: Architecture = {
  arch: "starcoder2",
  activations: ["gelu_pytorch_tanh"],
  metadata: (config) => layerNorms(decoderMetadata(config), config.number("norm_epsilon", 1e-5)),
  tensors: () => ({
    ...without(UNGATED, "layers.*.mlp.up_proj", "layers.*.mlp.down_proj"),
    "layers.*.mlp.c_fc": { to: "blk.*.ffn_up" },
    "layers.*.mlp.c_proj": { to: "blk.*.ffn_down" },
  }),
};

/** Without a separate norm, the MLP shares attention's input; norms of heads are not converted. */
export const stablelm: Architecture = {
  arch: "stablelm",
  activations: ["silu"],
  metadata(config) {
    if (config.flag("qk_layernorm", false)) throw config.wrong("qk_layernorm", "false");
    const parallel = config.flag("use_parallel_residual", false);
    return {
      ...layerNorms(decoderMetadata(config), config.number("layer_norm_eps", 1e-5)),
      ...rotaryPart(config, { part: 0.25 }),
      use_parallel_residual: parallel,
    };
  },
  tensors: (config) =>
    config.flag("use_parallel_residual", false)
      ? without(llamaTable(), "layers.*.post_attention_layernorm")
      : llamaTable(),
};

/** Phi 1, 1.5 and 2: attention and MLP in parallel. */
export const phi2: Architecture = {
  arch: "phi2",
  activations: ["gelu_new"],
  metadata: (config) => ({
    ...layerNorms(decoderMetadata(config), config.number("layer_norm_eps", 1e-5)),
    ...rotaryPart(config, { part: 0.5 }),
  }),
  tensors: () => ({
    embed_tokens: { to: "token_embd" },
    final_layernorm: { to: "output_norm" },
    lm_head: { to: "output" },
    "layers.*.input_layernorm": { to: "blk.*.attn_norm" },
    "layers.*.self_attn.q_proj": { to: "blk.*.attn_q" },
    "layers.*.self_attn.k_proj": { to: "blk.*.attn_k" },
    "layers.*.self_attn.v_proj": { to: "blk.*.attn_v" },
    "layers.*.self_attn.dense": { to: "blk.*.attn_output" },
    "layers.*.mlp.fc1": { to: "blk.*.ffn_up" },
    "layers.*.mlp.fc2": { to: "blk.*.ffn_down" },
  }),
};

const parallelTable = (): TensorTable => without(llamaTable(), "layers.*.post_attention_layernorm");

/** Command R, which rotates neighbours as its file does. */
export const commandR: Architecture = {
  arch: "command-r",
  metadata: (config) => cohereMetadata(config),
  tensors: parallelTable,
  unused: /^lm_head\./,
};

/** Command R7B and A: windows in three of four layers. */
export const cohere2: Architecture = {
  arch: "cohere2",
  metadata: (config) => ({ ...cohereMetadata(config), ...windowKeys(config, 4) }),
  tensors: parallelTable,
  unused: /^lm_head\./,
};

function cohereMetadata(config: Config): Record<string, WriteValue> {
  checkActivation(config, ["silu"]);
  if (config.flag("use_qk_norm", false)) throw config.wrong("use_qk_norm", "false");
  return {
    ...layerNorms(decoderMetadata(config), config.number("layer_norm_eps", 1e-5)),
    "rope.dimension_count": u32(headsOf(config).headDim),
    logit_scale: f32(config.number("logit_scale", 0.0625)),
  };
}
