/** Whisper: the decoder's tensors are named like T5's decoder in llama.cpp, the encoder's like its audio encoders. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import type { Config } from "../config.ts";

/** The epsilon of all layer norms, for which configurations have no key (modeling_whisper.py of transformers). */
const EPS = 1e-5;
/** Positions of 30 seconds of sound. */
const SOUND_POSITIONS = 1500;
/** Four times as many as published models have. */
const LAYERS_MAX = 128;
const ID_MAX = 2 ** 24;

const layersOf = (config: Config, part: "encoder" | "decoder"): number =>
  config.count(`${part}_layers`, { max: LAYERS_MAX });

const sizesOf = (config: Config, part: "encoder" | "decoder"): Record<string, WriteValue> => ({
  embedding_length: u32(config.count("d_model")),
  block_count: u32(layersOf(config, part)),
  feed_forward_length: u32(config.count(`${part}_ffn_dim`)),
  "attention.head_count": u32(config.count(`${part}_attention_heads`)),
  "attention.layer_norm_epsilon": f32(EPS),
});

export const whisper: Architecture = {
  arch: "whisper",
  activations: ["gelu"],
  activationKey: "activation_function",
  metadata(config) {
    if (config.flag("scale_embedding", false)) throw config.wrong("scale_embedding", "false");
    const positions = config.count("max_source_positions", { fallback: SOUND_POSITIONS });
    if (positions !== SOUND_POSITIONS) throw config.wrong("max_source_positions", String(SOUND_POSITIONS));
    const audio = Object.entries(sizesOf(config, "encoder")).map(([key, value]) => [`audio.${key}`, value] as const);
    return {
      context_length: u32(config.count("max_target_positions")),
      ...sizesOf(config, "decoder"),
      ...Object.fromEntries(audio),
      "audio.num_mel_bins": u32(config.count("num_mel_bins")),
      ...suppressed(config),
    };
  },
  settings: suppressed,
  tensors: (config) => ({
    ...encoder(layersOf(config, "encoder")),
    ...decoder(layersOf(config, "decoder")),
  }),
  unused: /^proj_out\./, // the same as the embedding
};

/** Ids that no text contains, and ids that no text begins with. */
function suppressed(config: Config): Record<string, WriteValue> {
  const entries = ["suppress_tokens", "begin_suppress_tokens"].flatMap((key) => {
    const ids = config.findNumbers(key);
    if (!ids) return [];
    if (!ids.every((id) => Number.isInteger(id) && id >= 0 && id < ID_MAX)) throw config.wrong(key, "a list of ids");
    return [[key, Int32Array.from(ids)] as const];
  });
  return Object.fromEntries(entries);
}

/** Linear steps and norms of layers in both parts: their names in transformers, and in a GGUF. */
type Names = Readonly<Record<string, string>>;

function layerTable(from: string, to: string, layers: number, names: Names): TensorTable {
  const entries = Object.entries(names).map(
    ([name, own]) => [`${from}.layers.*.${name}`, { to: `${to}.*.${own}`, layers }] as const,
  );
  return Object.fromEntries(entries);
}

const SELF: Names = { "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v" };
const FFN: Names = { fc1: "ffn_up", fc2: "ffn_down" };

const encoder = (layers: number): TensorTable => ({
  "encoder.conv1": { to: "a.conv1d.1" },
  "encoder.conv2": { to: "a.conv1d.2" },
  "encoder.embed_positions": { to: "a.position_embd", precise: true },
  ...layerTable("encoder", "a.blk", layers, {
    self_attn_layer_norm: "ln1",
    ...SELF,
    "self_attn.out_proj": "attn_out",
    final_layer_norm: "ln2",
    ...FFN,
  }),
  "encoder.layer_norm": { to: "a.post_ln" },
});

const decoder = (layers: number): TensorTable => ({
  "decoder.embed_tokens": { to: "token_embd" },
  "decoder.embed_positions": { to: "position_embd", precise: true },
  ...layerTable("decoder", "blk", layers, {
    self_attn_layer_norm: "attn_norm",
    ...SELF,
    "self_attn.out_proj": "attn_output",
    encoder_attn_layer_norm: "cross_attn_norm",
    "encoder_attn.q_proj": "cross_attn_q",
    "encoder_attn.k_proj": "cross_attn_k",
    "encoder_attn.v_proj": "cross_attn_v",
    "encoder_attn.out_proj": "cross_attn_o",
    final_layer_norm: "ffn_norm",
    ...FFN,
  }),
  "decoder.layer_norm": { to: "output_norm" },
});
