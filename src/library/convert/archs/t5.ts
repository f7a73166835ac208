/** T5's encoder, `t5encoder`: of T5, mT5 and UMT5. */
import { f32, u32, type Architecture } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { DENSE } from "../sentence-transformers.ts";

/** Distance from which on all keys share a bucket: a GGUF has no key for it. */
const DISTANCE_MAX = 128;
/** The context length of training, which is the same for configurations without the key. */
const CTX_LEN = 512;

/** Throws `bad_file` for other activations: in a GGUF, only the tensors show which of these it is. */
function checkFeedForward(config: Config): void {
  const kind = config.text("feed_forward_proj", "relu");
  if (kind !== "relu" && kind !== "gated-gelu") throw config.wrong("feed_forward_proj", "'relu' or 'gated-gelu'");
}

export const t5Encoder: Architecture = {
  arch: "t5encoder",
  metadata(config) {
    checkFeedForward(config);
    const distance = config.count("relative_attention_max_distance", { fallback: DISTANCE_MAX });
    if (distance !== DISTANCE_MAX) throw config.wrong("relative_attention_max_distance", String(DISTANCE_MAX));
    const eps = f32(config.number("layer_norm_epsilon", 1e-6));
    const headDim = u32(config.count("d_kv"));
    return {
      context_length: u32(config.count("n_positions", { fallback: CTX_LEN })),
      embedding_length: u32(config.count(nameOf(config, "d_model", "hidden_size"))),
      block_count: u32(layersOf(config)),
      feed_forward_length: u32(config.count("d_ff")),
      "attention.head_count": u32(config.count(nameOf(config, "num_heads", "num_attention_heads"))),
      "attention.key_length": headDim,
      "attention.value_length": headDim,
      "attention.relative_buckets_count": u32(config.count("relative_attention_num_buckets", { fallback: 32 })),
      "attention.layer_norm_epsilon": eps,
      "attention.layer_norm_rms_epsilon": eps,
      "attention.causal": false,
    };
  },
  tensors: () => ({
    shared: { to: "token_embd" },
    "encoder.block.*.layer.0.layer_norm": { to: "enc.blk.*.attn_norm" },
    "encoder.block.*.layer.0.SelfAttention.q": { to: "enc.blk.*.attn_q" },
    "encoder.block.*.layer.0.SelfAttention.k": { to: "enc.blk.*.attn_k" },
    "encoder.block.*.layer.0.SelfAttention.v": { to: "enc.blk.*.attn_v" },
    "encoder.block.*.layer.0.SelfAttention.o": { to: "enc.blk.*.attn_o" },
    // the first layer's serves all layers that have none
    "encoder.block.*.layer.0.SelfAttention.relative_attention_bias": {
      to: "enc.blk.*.attn_rel_b",
      precise: true,
      optional: "layers",
    },
    "encoder.block.*.layer.1.layer_norm": { to: "enc.blk.*.ffn_norm" },
    "encoder.block.*.layer.1.DenseReluDense.wi": { to: "enc.blk.*.ffn_up", optional: true },
    "encoder.block.*.layer.1.DenseReluDense.wi_0": { to: "enc.blk.*.ffn_gate", optional: true },
    "encoder.block.*.layer.1.DenseReluDense.wi_1": { to: "enc.blk.*.ffn_up", optional: true },
    "encoder.block.*.layer.1.DenseReluDense.wo": { to: "enc.blk.*.ffn_down" },
    "encoder.final_layer_norm": { to: "enc.output_norm" },
    [DENSE]: { to: "dense_2", optional: true },
  }),
  unused: /^encoder\.embed_tokens\./, // the same as `shared`
};
