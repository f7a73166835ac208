/** T5, mT5 and UMT5: whole, as `t5`, or their encoders alone, as `t5encoder`. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { DENSE } from "../sentence-transformers.ts";

/** Distance from which on all keys share a bucket: a GGUF has no key for it. */
const DISTANCE_MAX = 128;
/** The context length of training, which is the same for configurations without the key. */
const CTX_LEN = 512;

/** Four times as many as published models have. */
const LAYERS_MAX = 128;

/** The same matrix under several names; a file may have any of them. */
const embeddings = {
  shared: { to: "token_embd" },
  "encoder.embed_tokens": { to: "token_embd" },
  "decoder.embed_tokens": { to: "token_embd" },
} as const;

/** Throws `bad_file` for other activations: in a GGUF, only the tensors show which of these it is. */
function checkFeedForward(config: Config): void {
  const kind = config.text("feed_forward_proj", "relu");
  if (kind !== "relu" && kind !== "gated-gelu") throw config.wrong("feed_forward_proj", "'relu' or 'gated-gelu'");
}

function sizesOf(config: Config): Record<string, WriteValue> {
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
  };
}

export const t5Encoder: Architecture = {
  arch: "t5encoder",
  metadata: (config) => ({ ...sizesOf(config), "attention.causal": false }),
  tensors: (config) => ({
    ...embeddings,
    ...layers("encoder", "enc", layersOf(config)),
    [DENSE]: { to: "dense_2", optional: true },
  }),
  copies: Object.keys(embeddings),
};

const both = {
  arch: "t5",
  metadata: (config: Config) => ({
    ...sizesOf(config),
    decoder_block_count: u32(decoderLayersOf(config)),
    decoder_start_token_id: u32(config.count("decoder_start_token_id", { min: 0, fallback: 0 })),
  }),
  copies: Object.keys(embeddings),
};

/** The whole model, with an output of its own. */
export const t5: Architecture = {
  ...both,
  tensors: (config) => ({ ...whole(config), lm_head: { to: "output" } }),
  keepsOutput: true,
};

/** The whole model, whose embedding is the output. */
export const t5Tied: Architecture = { ...both, tensors: whole, unused: /^lm_head\./ };

const decoderLayersOf = (config: Config): number =>
  config.count("num_decoder_layers", { max: LAYERS_MAX, fallback: layersOf(config) });

function whole(config: Config): TensorTable {
  return {
    ...embeddings,
    ...layers("encoder", "enc", layersOf(config)),
    ...layers("decoder", "dec", decoderLayersOf(config)),
  };
}

/** The layers of one half, and the norm after them. */
function layers(from: "encoder" | "decoder", to: "enc" | "dec", count: number): TensorTable {
  const block = `${from}.block.*.layer`;
  const isDecoder = from === "decoder";
  const mlp = isDecoder ? 2 : 1;
  const entries: Readonly<Record<string, TensorRule>> = {
    [`${block}.0.layer_norm`]: { to: "attn_norm" },
    ...attention(`${block}.0.SelfAttention`, "attn"),
    ...(isDecoder && {
      [`${block}.1.layer_norm`]: { to: "cross_attn_norm" },
      ...attention(`${block}.1.EncDecAttention`, "cross_attn"),
    }),
    [`${block}.${mlp}.layer_norm`]: { to: "ffn_norm" },
    [`${block}.${mlp}.DenseReluDense.wi`]: { to: "ffn_up", optional: true },
    [`${block}.${mlp}.DenseReluDense.wi_0`]: { to: "ffn_gate", optional: true },
    [`${block}.${mlp}.DenseReluDense.wi_1`]: { to: "ffn_up", optional: true },
    [`${block}.${mlp}.DenseReluDense.wo`]: { to: "ffn_down" },
  };
  const placed = Object.entries(entries).map(([name, rule]) => {
    return [name, { ...rule, to: `${to}.blk.*.${rule.to}`, layers: count }] as const;
  });
  return { ...Object.fromEntries(placed), [`${from}.final_layer_norm`]: { to: `${to}.output_norm` } };
}

function attention(from: string, to: string): Readonly<Record<string, TensorRule>> {
  return {
    [`${from}.q`]: { to: `${to}_q` },
    [`${from}.k`]: { to: `${to}_k` },
    [`${from}.v`]: { to: `${to}_v` },
    [`${from}.o`]: { to: `${to}_o` },
    // the first layer's serves all layers that have none; old models have one of cross attention, too, which is unused
    [`${from}.relative_attention_bias`]: { to: `${to}_rel_b`, precise: true, optional: "layers" },
  };
}
