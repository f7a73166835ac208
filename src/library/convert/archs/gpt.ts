/** The line of GPT-2: layer norms with biases, and other names; fused queries, keys and values are reordered. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type RowSelection, type TensorTable } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { decoderMetadata, layerNorms, rotaryPart } from "../decoder.ts";

/** The loader's limit. */
const HEADS_MAX = 512;

/** Sizes under the names of this line. */
function sizes(config: Config): { dim: number; nHeads: number; ctxLen: number } {
  return {
    dim: config.count(nameOf(config, "hidden_size", "n_embd", "d_model")),
    nHeads: config.count(nameOf(config, "num_attention_heads", "n_head", "n_heads"), { max: HEADS_MAX }),
    ctxLen: config.count(nameOf(config, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length"), {
      fallback: 2048,
    }),
  };
}

function gptMetadata(config: Config, { ffnDim }: { ffnDim: number }): Record<string, WriteValue> {
  const { dim, nHeads, ctxLen } = sizes(config);
  return {
    context_length: u32(ctxLen),
    embedding_length: u32(dim),
    block_count: u32(layersOf(config)),
    feed_forward_length: u32(ffnDim),
    "attention.head_count": u32(nHeads),
    "attention.layer_norm_epsilon": f32(config.number("layer_norm_epsilon", 1e-5)),
  };
}

/**
 * Rows of groups of (queries, key, value) heads as all queries, all keys, all values.
 * @param queries of a group, which has one key and one value
 */
const ungrouped =
  (nHeads: number, queries = 1) =>
  ([rows = 0, ...rest]: readonly number[]): RowSelection => {
    const groups = nHeads / queries;
    const headDim = rows / (groups * (queries + 2));
    const order: number[] = [];
    for (const part of [Array.from({ length: queries }, (_, i) => i), [queries], [queries + 1]]) {
      for (let group = 0; group < groups; group++) {
        for (const head of part) {
          for (let i = 0; i < headDim; i++) order.push((group * (queries + 2) + head) * headDim + i);
        }
      }
    }
    // a bias is one row of the file, so its values are rows of one
    return { shape: [rows, ...rest], order };
  };

const GPT2: TensorTable = {
  wte: { to: "token_embd" },
  wpe: { to: "position_embd", precise: true },
  ln_f: { to: "output_norm" },
  lm_head: { to: "output", optional: true },
  "h.*.ln_1": { to: "blk.*.attn_norm" },
  "h.*.attn.c_attn": { to: "blk.*.attn_qkv", isTransposed: true },
  "h.*.attn.c_proj": { to: "blk.*.attn_output", isTransposed: true },
  "h.*.ln_2": { to: "blk.*.ffn_norm" },
  "h.*.mlp.c_fc": { to: "blk.*.ffn_up", isTransposed: true },
  "h.*.mlp.c_proj": { to: "blk.*.ffn_down", isTransposed: true },
};

/** GPT-2 stores its matrices transposed, and causal masks. */
export const gpt2: Architecture = {
  arch: "gpt2",
  activations: ["gelu_new", "gelu_pytorch_tanh"],
  activationKey: "activation_function",
  metadata(config) {
    const { dim } = sizes(config);
    return gptMetadata(config, { ffnDim: config.findCount("n_inner") ?? 4 * dim });
  },
  tensors: () => GPT2,
  unused: /\.attn\.(bias|masked_bias)$/,
};

/** StarCoder: GPT-2 with one head of keys and values, which follows the queries. */
export const starcoder: Architecture = {
  arch: "starcoder",
  activations: ["gelu_pytorch_tanh", "gelu_new"],
  activationKey: "activation_function",
  metadata(config) {
    if (!config.flag("multi_query", true)) throw config.wrong("multi_query", "true");
    const { dim } = sizes(config);
    return {
      ...gptMetadata(config, { ffnDim: config.findCount("n_inner") ?? 4 * dim }),
      "attention.head_count_kv": u32(1),
    };
  },
  tensors: () =>
    Object.fromEntries(Object.entries(GPT2).map(([name, rule]) => [name, { ...rule, isTransposed: false }])),
};

export const gptneox: Architecture = {
  arch: "gptneox",
  activations: ["gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"],
  metadata: (config) => ({
    ...layerNorms(decoderMetadata(config), config.number("layer_norm_eps", 1e-5)),
    ...rotaryPart(config, { part: 0.25 }),
    use_parallel_residual: config.flag("use_parallel_residual", true),
    hidden_activation: config.text("hidden_act", "gelu"),
  }),
  tensors: (config) => ({
    embed_in: { to: "token_embd" },
    final_layer_norm: { to: "output_norm" },
    embed_out: { to: "output", optional: true },
    "layers.*.input_layernorm": { to: "blk.*.attn_norm" },
    "layers.*.attention.query_key_value": { to: "blk.*.attn_qkv", rows: ungrouped(sizes(config).nHeads) },
    "layers.*.attention.dense": { to: "blk.*.attn_output" },
    "layers.*.post_attention_layernorm": { to: "blk.*.ffn_norm" },
    "layers.*.mlp.dense_h_to_4h": { to: "blk.*.ffn_up" },
    "layers.*.mlp.dense_4h_to_h": { to: "blk.*.ffn_down" },
  }),
  unused: /\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$/,
};

export const bloom: Architecture = {
  arch: "bloom",
  metadata: (config) => gptMetadata(config, { ffnDim: 4 * sizes(config).dim }),
  tensors: (config) => ({
    word_embeddings: { to: "token_embd" },
    word_embeddings_layernorm: { to: "token_embd_norm" },
    ln_f: { to: "output_norm" },
    lm_head: { to: "output", optional: true },
    "h.*.input_layernorm": { to: "blk.*.attn_norm" },
    "h.*.self_attention.query_key_value": { to: "blk.*.attn_qkv", rows: ungrouped(sizes(config).nHeads) },
    "h.*.self_attention.dense": { to: "blk.*.attn_output" },
    "h.*.post_attention_layernorm": { to: "blk.*.ffn_norm" },
    "h.*.mlp.dense_h_to_4h": { to: "blk.*.ffn_up" },
    "h.*.mlp.dense_4h_to_h": { to: "blk.*.ffn_down" },
  }),
};

/** Falcon: attention and MLP in parallel, with one norm or two; keys and values follow each group's queries. */
export const falcon: Architecture = {
  arch: "falcon",
  activations: ["gelu"],
  activationKey: "activation",
  metadata(config) {
    if (config.flag("alibi", false)) throw config.wrong("alibi", "false");
    const { nKvHeads, dim } = falconSizes(config);
    const { "attention.layer_norm_epsilon": eps, ...rest } = gptMetadata(config, {
      ffnDim: config.findCount("ffn_hidden_size") ?? 4 * dim,
    });
    return {
      ...rest,
      "attention.head_count_kv": u32(nKvHeads),
      "attention.layer_norm_epsilon": eps!,
      "rope.freq_base": f32(
        config.findPart("rope_parameters")?.number("rope_theta", 10_000) ?? config.number("rope_theta", 10_000),
      ),
    };
  },
  tensors(config) {
    const { nHeads, nKvHeads, isNew } = falconSizes(config);
    return {
      word_embeddings: { to: "token_embd" },
      ln_f: { to: "output_norm" },
      lm_head: { to: "output", optional: true },
      "h.*.input_layernorm": { to: "blk.*.attn_norm", optional: true },
      "h.*.ln_attn": { to: "blk.*.attn_norm_2", optional: true },
      "h.*.ln_mlp": { to: "blk.*.attn_norm", optional: true },
      "h.*.self_attention.query_key_value": {
        to: "blk.*.attn_qkv",
        ...(isNew && { rows: ungrouped(nHeads, nHeads / nKvHeads) }),
      },
      "h.*.self_attention.dense": { to: "blk.*.attn_output" },
      "h.*.mlp.dense_h_to_4h": { to: "blk.*.ffn_up" },
      "h.*.mlp.dense_4h_to_h": { to: "blk.*.ffn_down" },
    };
  },
};

function falconSizes(config: Config) {
  const { nHeads, dim } = sizes(config);
  const isNew = config.flag("new_decoder_architecture", false);
  if (!isNew && !(config.flag("multi_query", true) && config.flag("parallel_attn", true))) {
    throw config.wrong("multi_query", "true, with parallel_attn");
  }
  const nKvHeads = isNew ? (config.findCount(nameOf(config, "num_kv_heads", "n_head_kv")) ?? nHeads) : 1;
  if (nHeads % nKvHeads !== 0) throw config.wrong("num_kv_heads", `a divisor of ${nHeads} heads`);
  return { nHeads, nKvHeads, dim, isNew };
}

/** MPT: ALiBi, and values that may be clamped. */
export const mpt: Architecture = {
  arch: "mpt",
  metadata(config) {
    const { dim } = sizes(config);
    const attention = config.findPart("attn_config");
    const ffnDim = config.number("expansion_ratio", 4) * dim;
    if (!Number.isInteger(ffnDim) || ffnDim < 1)
      throw config.wrong("expansion_ratio", "a factor that gives a whole width");
    const clip = attention?.findNumber("clip_qkv");
    const isAlibi = attention?.flag("alibi", true) ?? true;
    return {
      ...gptMetadata(config, { ffnDim }),
      ...(isAlibi ? { "attention.max_alibi_bias": f32(attention?.number("alibi_bias_max", 8) ?? 8) } : {}),
      ...(clip === undefined ? {} : { "attention.clamp_kqv": f32(clip) }),
    };
  },
  tensors: () => ({
    wte: { to: "token_embd" },
    wpe: { to: "position_embd", precise: true, optional: true },
    norm_f: { to: "output_norm" },
    lm_head: { to: "output", optional: true },
    "blocks.*.norm_1": { to: "blk.*.attn_norm" },
    "blocks.*.attn.Wqkv": { to: "blk.*.attn_qkv" },
    "blocks.*.attn.out_proj": { to: "blk.*.attn_output" },
    "blocks.*.norm_2": { to: "blk.*.ffn_norm" },
    "blocks.*.ffn.up_proj": { to: "blk.*.ffn_up" },
    "blocks.*.ffn.down_proj": { to: "blk.*.ffn_down" },
  }),
};
