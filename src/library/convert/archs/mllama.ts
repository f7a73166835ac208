/**
 * Llama 3.2 Vision, `mllama`: Llama with layers of cross attention, and its image encoder in the same file. Names and
 * keys of the encoder: convert_mllama.go of ollama.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import type { Config } from "../config.ts";
import { decoderMetadata, headsOf, llamaTable } from "../decoder.ts";
import { llama3Factors } from "../rope.ts";

/** The loader's limits. */
const LAYERS_MAX = 256;
const TILES_MAX = 64;

export const mllama: Architecture = {
  arch: "mllama",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config),
    "rope.dimension_count": u32(headsOf(config).headDim),
    "attention.cross_attention_layers": Uint32Array.from(config.findNumbers("cross_attention_layers") ?? []),
  }),
  tensors: (config) => ({ ...llamaTable({ heads: headsOf(config) }), ...selfAttention(headsOf(config)), ...CROSS }),
  encoder: { metadata: visionMetadata, tensors: visionTable },
  computed: (config) => llama3Factors(config, headsOf(config).headDim),
};

/** Each layer has one of two kinds of attention. */
const selfAttention = ({ nHeads, nKvHeads }: { nHeads: number; nKvHeads: number }): TensorTable => ({
  "layers.*.self_attn.q_proj": { to: "blk.*.attn_q", pairedHeads: nHeads, optional: "layers" },
  "layers.*.self_attn.k_proj": { to: "blk.*.attn_k", pairedHeads: nKvHeads, optional: "layers" },
  "layers.*.self_attn.v_proj": { to: "blk.*.attn_v", optional: "layers" },
  "layers.*.self_attn.o_proj": { to: "blk.*.attn_output", optional: "layers" },
});

const CROSS: TensorTable = Object.fromEntries(
  [
    ...["q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"].map(
      (name) => [`cross_attn.${name}`, name] as const,
    ),
    ...["attn_gate", "mlp_gate"].map((name) => [`cross_attn_${name}`, name] as const),
  ].map(([from, name]) => [`layers.*.${from}`, { to: `blk.*.cross_attn_${name}`, optional: "layers" }] as const),
);

const layersOf = (vision: Config) => ({
  own: vision.count("num_hidden_layers", { max: LAYERS_MAX }),
  global: vision.count("num_global_layers", { min: 0, max: LAYERS_MAX }),
});

function visionMetadata(vision: Config, images: Config): Record<string, WriteValue> {
  if (vision.text("hidden_act", "gelu") !== "gelu") throw vision.wrong("hidden_act", "'gelu'");
  const tiles = vision.count("max_num_tiles", { max: TILES_MAX });
  checkRatios(vision, tiles);
  return {
    "vision.block_count": u32(layersOf(vision).own),
    "vision.global.block_count": u32(layersOf(vision).global),
    "vision.intermediate_layers_indices": Int32Array.from(vision.findNumbers("intermediate_layers_indices") ?? []),
    "vision.embedding_length": u32(vision.count("hidden_size")),
    "vision.feed_forward_length": u32(vision.count("intermediate_size")),
    "vision.attention.head_count": u32(vision.count("attention_heads")),
    "vision.attention.layer_norm_epsilon": f32(vision.number("norm_eps")),
    "vision.image_size": u32(vision.count("image_size")),
    "vision.patch_size": u32(vision.count("patch_size")),
    "vision.max_num_tiles": u32(tiles),
    "vision.num_channels": u32(vision.count("num_channels")),
    ...coloursOf(images),
  };
}

/** Colours that differ from CLIP's, which Ollama's files imply. */
function coloursOf(images: Config): Record<string, WriteValue> {
  const keys = ["image_mean", "image_std"].flatMap((key) => {
    const values = images.findNumbers(key);
    if (values && values.length !== 3) throw images.wrong(key, "three numbers");
    return values ? [[`vision.${key}`, Float32Array.from(values)] as const] : [];
  });
  return Object.fromEntries(keys);
}

/** Tables have a row for each canvas, in the order of heights and then of widths; no key of the file says another. */
function checkRatios(vision: Config, tiles: number): void {
  const stored = vision.find("supported_aspect_ratios");
  if (stored === undefined) return;
  const sides = Array.from({ length: tiles }, (_, i) => i + 1);
  const canvases = sides.flatMap((height) =>
    sides.flatMap((width) => (height * width <= tiles ? [[height, width]] : [])),
  );
  const expected = JSON.stringify(canvases);
  if (JSON.stringify(stored) !== expected) throw vision.wrong("supported_aspect_ratios", expected);
}

function visionTable(vision: Config): TensorTable {
  const { own, global } = layersOf(vision);
  const positions = "vision_model.gated_positional_embedding";
  const tiles = (side: string): TensorTable => ({
    [`vision_model.${side}_tile_positional_embedding.embedding`]: { to: `v.${side}_tile_position_embd` },
    [`vision_model.${side}_tile_positional_embedding.gate`]: {
      to: `v.${side}_tile_position_embd.gate`,
      value: Math.tanh,
    },
  });
  return {
    "vision_model.patch_embedding": { to: "v.patch_embd" },
    "vision_model.class_embedding": { to: "v.class_embd" },
    [`${positions}.embedding`]: { to: "v.position_embd.weight" },
    [`${positions}.tile_embedding`]: { to: "v.tile_position_embd" },
    [`${positions}.gate`]: [
      { to: "v.position_embd.gate", value: (gate) => 1 - Math.tanh(gate) },
      { to: "v.tile_position_embd.gate", value: Math.tanh },
    ],
    ...tiles("pre"),
    ...tiles("post"),
    "vision_model.layernorm_pre": { to: "v.pre_ln" },
    "vision_model.layernorm_post": { to: "v.post_ln" },
    ...visionLayers("transformer", "v.blk", own),
    ...visionLayers("global_transformer", "v.global.blk", global),
    "vision_model.global_transformer.layers.*.gate_attn": gateOf("attn", global),
    "vision_model.global_transformer.layers.*.gate_ffn": gateOf("ffn", global),
    multi_modal_projector: { to: "mm.0" },
  };
}

const gateOf = (part: string, layers: number) => ({ to: `v.global.blk.*.${part}_gate`, value: Math.tanh, layers });

const LAYER: Readonly<Record<string, string>> = {
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  post_attention_layernorm: "ffn_norm",
  "mlp.fc1": "ffn_up",
  "mlp.fc2": "ffn_down",
};

const visionLayers = (from: string, to: string, layers: number): TensorTable =>
  Object.fromEntries(
    Object.entries(LAYER).map(([name, own]) => {
      return [`vision_model.${from}.layers.*.${name}`, { to: `${to}.*.${own}`, layers }] as const;
    }),
  );
