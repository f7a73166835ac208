/** Embedders: Nomic Embed 1 and 1.5, Jina Embeddings 3 as transformers writes it, and EuroBERT. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { checkActivation, decoderMetadata, llamaTable } from "../decoder.ts";
import { ropeParameters } from "../rope.ts";

/** Layers after which a norm comes, with query, key and value in one matrix. */
const FUSED: TensorTable = {
  "embeddings.word_embeddings": { to: "token_embd" },
  "embeddings.token_type_embeddings": { to: "token_types", precise: true, optional: true },
  emb_ln: { to: "token_embd_norm" },
  "encoder.layers.*.norm1": { to: "blk.*.attn_output_norm" },
  "encoder.layers.*.norm2": { to: "blk.*.layer_output_norm" },
};

interface Defaults {
  readonly ctxLen: number;
  readonly ropeBase: number;
}

/** Reads the sizes by BERT's or GPT-2's names. */
function fusedMetadata(config: Config, { ctxLen, ropeBase }: Defaults): Record<string, WriteValue> {
  const base = ropeParameters(config)?.findNumber("rope_theta") ?? config.number("rotary_emb_base", ropeBase);
  return {
    context_length: u32(ctxLen),
    embedding_length: u32(config.count(nameOf(config, "hidden_size", "n_embd"))),
    block_count: u32(layersOf(config)),
    feed_forward_length: u32(config.count(nameOf(config, "intermediate_size", "n_inner"))),
    "attention.head_count": u32(config.count(nameOf(config, "num_attention_heads", "n_head"))),
    "attention.layer_norm_epsilon": f32(config.number(nameOf(config, "layer_norm_eps", "layer_norm_epsilon"), 1e-12)),
    "attention.causal": false,
    "rope.freq_base": f32(base),
  };
}

/** Whole heads rotate by halves, and norms follow their blocks: a GGUF cannot express anything else. */
function checkNomic(config: Config): void {
  checkActivation(config, ["silu"]);
  checkActivation(config, ["swiglu"], "activation_function");
  for (const key of ["prenorm", "rotary_emb_interleaved", "use_rms_norm"]) {
    if (config.flag(key, false)) throw config.wrong(key, "false");
  }
  if (config.number("rotary_emb_fraction", 1) !== 1) throw config.wrong("rotary_emb_fraction", "1");
  if (config.find("rotary_emb_scale_base") !== undefined) throw config.wrong("rotary_emb_scale_base", "null");
  if (config.number("moe_every_n_layers", 0) !== 0) throw config.wrong("moe_every_n_layers", "0: no experts");
}

/** Nomic Embed: trained with 2,048 positions, although its configuration counts more. */
export const nomicBert: Architecture = {
  arch: "nomic-bert",
  metadata(config) {
    checkNomic(config);
    const positions = config.count(nameOf(config, "max_position_embeddings", "n_positions"));
    const ctxLen = Math.min(positions, config.count("max_trained_positions", { fallback: positions }));
    return fusedMetadata(config, { ctxLen, ropeBase: 1000 });
  },
  tensors: () => ({
    ...FUSED,
    "encoder.layers.*.attn.Wqkv": { to: "blk.*.attn_qkv" },
    "encoder.layers.*.attn.out_proj": { to: "blk.*.attn_output" },
    "encoder.layers.*.mlp.fc11": { to: "blk.*.ffn_up" },
    "encoder.layers.*.mlp.fc12": { to: "blk.*.ffn_gate" },
    "encoder.layers.*.mlp.fc2": { to: "blk.*.ffn_down" },
  }),
  unused: /^(pooler|cls)\./,
};

export const jinaBertV3: Architecture = {
  arch: "jina-bert-v3",
  activations: ["gelu"],
  metadata(config) {
    const ctxLen = config.count("max_position_embeddings");
    return fusedMetadata(config, { ctxLen, ropeBase: 20_000 });
  },
  tensors: () => ({
    ...FUSED,
    "encoder.layers.*.mixer.Wqkv": { to: "blk.*.attn_qkv" },
    "encoder.layers.*.mixer.out_proj": { to: "blk.*.attn_output" },
    "encoder.layers.*.mlp.fc1": { to: "blk.*.ffn_up" },
    "encoder.layers.*.mlp.fc2": { to: "blk.*.ffn_down" },
  }),
  unused: /^pooler\./,
};

/** Llama with bidirectional attention, without an output. */
export const euroBert: Architecture = {
  arch: "eurobert",
  activations: ["silu"],
  metadata: (config) => ({ ...decoderMetadata(config, { eps: 1e-5 }), "attention.causal": false }),
  tensors() {
    const { lm_head: _, ...table } = llamaTable();
    return table;
  },
  unused: /^lm_head\./,
};
