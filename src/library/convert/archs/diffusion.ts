/** Diffusion language models: known layers with bidirectional attention, and a mask token. */
import { u32, type Architecture, type TensorTable } from "../architecture.ts";
import { configOf, type Config } from "../config.ts";
import { decoderMetadata, headNorms, headsOf, llamaTable } from "../decoder.ts";
import { bareTable, expertMetadata, inMlp } from "./experts.ts";
import { qwen2 } from "./qwen2.ts";

const BOTH_WAYS = { "attention.causal": false };
/** Their logits belong to the row itself. */
const UNSHIFTED = { "diffusion.shift_logits": false };

export const dream: Architecture = {
  ...qwen2,
  arch: "dream",
  metadata: (config) => ({ ...qwen2.metadata(config), ...BOTH_WAYS }),
};

export const rnd1: Architecture = {
  arch: "rnd1",
  activations: ["silu"],
  metadata(config) {
    if (!config.flag("norm_topk_prob", true)) throw config.wrong("norm_topk_prob", "true");
    const sizes = { headDim: 128, ctxLen: 32_768 };
    return { ...decoderMetadata(config, sizes), ...expertMetadata(config), ...BOTH_WAYS };
  },
  tensors: () => ({ ...bareTable(), ...headNorms(), ...inMlp() }),
};

/** The mask token of every published LLaDA with experts, which files may omit. */
const LLADA_MOE_MASK = 156_895;

export const lladaMoe: Architecture = {
  arch: "llada-moe",
  activations: ["silu"],
  metadata(config) {
    if (config.flag("norm_topk_prob", false)) throw config.wrong("norm_topk_prob", "false");
    const width = { intermediate_size: "expert_intermediate_size" };
    return {
      ...decoderMetadata(renamed(config, width), { ctxLen: 4096 }),
      ...expertMetadata(config, "expert_intermediate_size"),
      ...BOTH_WAYS,
    };
  },
  whole: { "tokenizer.ggml.mask_token_id": u32(LLADA_MOE_MASK), ...UNSHIFTED },
  tensors: () => ({ ...bareTable(), ...headNorms(), ...inMlp() }),
};

/** Llama's names of LLaDA's sizes. */
const SIZES = {
  hidden_size: "d_model",
  intermediate_size: "mlp_hidden_size",
  max_position_embeddings: "max_sequence_length",
  num_attention_heads: "n_heads",
  num_hidden_layers: "n_layers",
  num_key_value_heads: "n_kv_heads",
};

/** Llama's layers under other names. */
export const llada: Architecture = {
  arch: "llada",
  activations: ["silu"],
  activationKey: "activation_type",
  metadata: (config) => ({ ...decoderMetadata(renamed(config, SIZES), { ctxLen: 4096, eps: 1e-5 }), ...BOTH_WAYS }),
  whole: UNSHIFTED,
  tensors(config) {
    const { nHeads, nKvHeads } = headsOf(renamed(config, SIZES));
    const table = llamaTable({ heads: { nHeads, nKvHeads, headDim: 0 } });
    return Object.fromEntries(Object.entries(NAMES).map(([name, known]) => [name, table[known]!])) as TensorTable;
  },
};

const NAMES = {
  wte: "embed_tokens",
  ln_f: "norm",
  ff_out: "lm_head",
  "blocks.*.attn_norm": "layers.*.input_layernorm",
  "blocks.*.q_proj": "layers.*.self_attn.q_proj",
  "blocks.*.k_proj": "layers.*.self_attn.k_proj",
  "blocks.*.v_proj": "layers.*.self_attn.v_proj",
  "blocks.*.attn_out": "layers.*.self_attn.o_proj",
  "blocks.*.ff_norm": "layers.*.post_attention_layernorm",
  "blocks.*.ff_proj": "layers.*.mlp.gate_proj",
  "blocks.*.up_proj": "layers.*.mlp.up_proj",
  "blocks.*.ff_out": "layers.*.mlp.down_proj",
};

/** A configuration with other names for some of its keys. */
function renamed(config: Config, names: Readonly<Record<string, string>>): Config {
  const found = [...KEYS, ...Object.keys(SIZES)].map((key) => [key, config.find(names[key] ?? key)] as const);
  return configOf(Object.fromEntries(found), config.label);
}

/** Keys that decoders have besides their sizes. */
const KEYS = ["head_dim", "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta"];
