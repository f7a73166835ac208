/** BERT for embeddings, `bert`: learned positions and token types, norms with biases. Its pooler is dropped. */
import { f32, u32, type Architecture } from "../architecture.ts";
import { layersOf } from "../config.ts";

export const bert: Architecture = {
  arch: "bert",
  activations: ["gelu"],
  metadata(config) {
    if (config.text("position_embedding_type", "absolute") !== "absolute") {
      throw config.wrong("position_embedding_type", "'absolute'");
    }
    return {
      context_length: u32(config.count("max_position_embeddings")),
      embedding_length: u32(config.count("hidden_size")),
      block_count: u32(layersOf(config)),
      feed_forward_length: u32(config.count("intermediate_size")),
      "attention.head_count": u32(config.count("num_attention_heads")),
      "attention.layer_norm_epsilon": f32(config.number("layer_norm_eps", 1e-12)),
      "attention.causal": false,
    };
  },
  tensors: () => ({
    "embeddings.word_embeddings": { to: "token_embd" },
    "embeddings.position_embeddings": { to: "position_embd", precise: true },
    "embeddings.token_type_embeddings": { to: "token_types", precise: true },
    "embeddings.LayerNorm": { to: "token_embd_norm" },
    "encoder.layer.*.attention.self.query": { to: "blk.*.attn_q" },
    "encoder.layer.*.attention.self.key": { to: "blk.*.attn_k" },
    "encoder.layer.*.attention.self.value": { to: "blk.*.attn_v" },
    "encoder.layer.*.attention.output.dense": { to: "blk.*.attn_output" },
    "encoder.layer.*.attention.output.LayerNorm": { to: "blk.*.attn_output_norm" },
    "encoder.layer.*.intermediate.dense": { to: "blk.*.ffn_up" },
    "encoder.layer.*.output.dense": { to: "blk.*.ffn_down" },
    "encoder.layer.*.output.LayerNorm": { to: "blk.*.layer_output_norm" },
  }),
  unused: /^(embeddings\.position_ids$|pooler\.|cls\.)/,
};
