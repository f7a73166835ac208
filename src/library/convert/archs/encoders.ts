/** Encoders besides BERT: RoBERTa and XLM-RoBERTa, DistilBERT, and ModernBERT. */
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { bert } from "./bert.ts";

/** Positions of RoBERTa begin after the padding token's id, so the first rows of the table are never used. */
const unusedPositions = (config: Config): number => config.count("pad_token_id", { fallback: 1, min: 0 }) + 1;

/** RoBERTa and XLM-RoBERTa: BERT, whose table of positions begins later. */
export const roberta: Architecture = {
  ...bert,
  metadata(config) {
    const positions = config.count("max_position_embeddings") - unusedPositions(config);
    if (positions < 1) throw config.wrong("max_position_embeddings", `more than ${unusedPositions(config)}`);
    return { ...bert.metadata(config), context_length: u32(positions) };
  },
  tensors(config) {
    const first = unusedPositions(config);
    return {
      ...bert.tensors(config),
      "embeddings.position_embeddings": {
        to: "position_embd",
        precise: true,
        rows: ([rows = 0, dim = 0]) => ({
          shape: [rows - first, dim],
          order: Array.from({ length: Math.max(0, rows - first) }, (_, i) => first + i),
        }),
      },
    };
  },
  unused: /^(embeddings\.position_ids$|pooler\.|lm_head\.)/,
};

const DISTIL: TensorTable = {
  "embeddings.word_embeddings": { to: "token_embd" },
  "embeddings.position_embeddings": { to: "position_embd", precise: true },
  "embeddings.LayerNorm": { to: "token_embd_norm" },
  "layer.*.attention.q_lin": { to: "blk.*.attn_q" },
  "layer.*.attention.k_lin": { to: "blk.*.attn_k" },
  "layer.*.attention.v_lin": { to: "blk.*.attn_v" },
  "layer.*.attention.out_lin": { to: "blk.*.attn_output" },
  "layer.*.sa_layer_norm": { to: "blk.*.attn_output_norm" },
  "layer.*.ffn.lin1": { to: "blk.*.ffn_up" },
  "layer.*.ffn.lin2": { to: "blk.*.ffn_down" },
  "layer.*.output_layer_norm": { to: "blk.*.layer_output_norm" },
};

/** DistilBERT: BERT without token types, under other names. */
export const distilBert: Architecture = {
  arch: "bert",
  activations: ["gelu"],
  activationKey: "activation",
  metadata: (config) => ({
    context_length: u32(config.count("max_position_embeddings")),
    embedding_length: u32(config.count("dim")),
    block_count: u32(layersOf(config)),
    feed_forward_length: u32(config.count("hidden_dim")),
    "attention.head_count": u32(config.count("n_heads")),
    "attention.layer_norm_epsilon": f32(1e-12), // DistilBERT's own constant
    "attention.causal": false,
  }),
  tensors: () => DISTIL,
  unused: /^vocab_/,
};

/** ModernBERT: layers with a window between global layers, each kind with its own RoPE. */
export const modernBert: Architecture = {
  arch: "modern-bert",
  activations: ["gelu"],
  activationKey: "hidden_activation",
  metadata(config) {
    const rope = config.findPart("rope_parameters");
    const base = (kind: string, key: string, fallback: number): number =>
      rope?.findPart(kind)?.findNumber("rope_theta") ?? config.number(key, fallback);
    return {
      context_length: u32(config.count("max_position_embeddings")),
      embedding_length: u32(config.count("hidden_size")),
      block_count: u32(layersOf(config)),
      feed_forward_length: u32(config.count("intermediate_size")),
      "attention.head_count": u32(config.count("num_attention_heads")),
      "attention.layer_norm_epsilon": f32(config.number(nameOf(config, "norm_eps", "layer_norm_eps"), 1e-5)),
      "attention.causal": false,
      "attention.sliding_window": u32(config.count("local_attention", { fallback: 128 })),
      "attention.sliding_window_pattern": u32(config.count("global_attn_every_n_layers", { fallback: 3 })),
      "rope.freq_base": f32(base("full_attention", "global_rope_theta", 160_000)),
      "rope.freq_base_swa": f32(base("sliding_attention", "local_rope_theta", 10_000)),
    };
  },
  tensors: () => ({
    "embeddings.tok_embeddings": { to: "token_embd" },
    "embeddings.norm": { to: "token_embd_norm" },
    final_norm: { to: "output_norm" },
    "layers.*.attn_norm": { to: "blk.*.attn_norm", optional: "layers" }, // the first reads normed embeddings
    "layers.*.attn.Wqkv": { to: "blk.*.attn_qkv" },
    "layers.*.attn.Wo": { to: "blk.*.attn_output" },
    "layers.*.mlp_norm": { to: "blk.*.ffn_norm" },
    "layers.*.mlp.Wi": { to: "blk.*.ffn_up" },
    "layers.*.mlp.Wo": { to: "blk.*.ffn_down" },
  }),
  unused: /^(head|decoder)\./,
};
