/** Gemma 3n: four streams, a low-rank path parallel to attention, and a part of a second embedding for each layer. */
import { f32, u32, type Architecture } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { headNorms, llamaTable, sandwichNorms, windowKeys } from "../decoder.ts";
import { localRopeBase, ropeMetadata } from "../rope.ts";
import { PER_LAYER } from "./gemma4.ts";

/** A GGUF has no keys for these: the share of gates that the first layers drop, and the number of these layers. */
const [SPARSITY, SPARSE_LAYERS] = [0.95, 10];

export const gemma3n: Architecture = {
  arch: "gemma3n",
  activations: ["gelu_pytorch_tanh"],
  metadata(config) {
    checkStreams(config);
    const headDim = config.count("head_dim", { fallback: 256 });
    const cap = config.findNumber("final_logit_softcapping");
    return {
      context_length: u32(config.count("max_position_embeddings")),
      embedding_length: u32(config.count("hidden_size")),
      block_count: u32(layersOf(config)),
      feed_forward_length: u32(ffnDim(config)),
      embedding_length_per_layer_input: u32(config.count("hidden_size_per_layer_input")),
      "attention.head_count": u32(config.count("num_attention_heads")),
      "attention.head_count_kv": u32(config.count("num_key_value_heads")),
      "attention.key_length": u32(headDim),
      "attention.value_length": u32(headDim),
      "attention.layer_norm_rms_epsilon": f32(config.number("rms_norm_eps", 1e-6)),
      "attention.shared_kv_layers": u32(config.count("num_kv_shared_layers", { fallback: 0, min: 0 })),
      ...windowKeys(config),
      ...ropeMetadata(config, { ropeBase: 1e6 }),
      "rope.freq_base_swa": f32(localRopeBase(config) ?? 10_000),
      ...(cap === undefined ? {} : { final_logit_softcapping: f32(cap) }),
    };
  },
  tensors(config) {
    const vocabSize = config.count("vocab_size");
    return {
      ...llamaTable(),
      ...sandwichNorms(0),
      ...headNorms(),
      ...PER_LAYER,
      // tokens of images and audio, which have no row, use the first token's
      embed_tokens_per_layer: {
        to: "per_layer_token_embd",
        rows: ([rows = 0, dim = 0]) => ({
          shape: [vocabSize, dim],
          order: Array.from({ length: vocabSize }, (_, i) => (i < rows ? i : 0)),
        }),
      },
      "altup_projections.#": { to: "altup_proj" },
      "altup_unembed_projections.#": { to: "altup_unembd_proj" },
      "layers.*.altup.correct_output_scale": { to: "blk.*.altup_correct_scale.weight" },
      "layers.*.altup.correction_coefs": { to: "blk.*.altup_correct_coef" },
      "layers.*.altup.prediction_coefs": { to: "blk.*.altup_predict_coef" },
      "layers.*.altup.modality_router": { to: "blk.*.altup_router" },
      "layers.*.altup.router_norm": { to: "blk.*.altup_router_norm" },
      "layers.*.laurel.linear_left": { to: "blk.*.laurel_l" },
      "layers.*.laurel.linear_right": { to: "blk.*.laurel_r" },
      "layers.*.laurel.post_laurel_norm": { to: "blk.*.laurel_post_norm" },
    };
  },
  unused: /^(lm_head|embed_(vision|audio))\./,
  addSpacePrefix: false,
};

/** One width for all layers, which some configurations list. */
function ffnDim(config: Config): number {
  const listed = config.find("intermediate_size");
  if (!Array.isArray(listed)) return config.count("intermediate_size");
  const [first = 0] = config.findNumbers("intermediate_size")!; // an array, as checked above
  if (listed.some((each) => each !== first)) throw config.wrong("intermediate_size", "the same number in all layers");
  return first;
}

function checkStreams(config: Config): void {
  const fixed = { altup_num_inputs: 4, altup_active_idx: 0 };
  for (const [key, value] of Object.entries(fixed)) {
    if (config.number(key, value) !== value) throw config.wrong(key, String(value));
  }
  const given = config.findNumbers("activation_sparsity_pattern");
  const usual = Array.from({ length: layersOf(config) }, (_, i) => (i < SPARSE_LAYERS ? SPARSITY : 0));
  if (given !== undefined && String(given) !== String(usual)) {
    throw config.wrong("activation_sparsity_pattern", `${SPARSITY} in the first ${SPARSE_LAYERS} layers, then 0`);
  }
}
