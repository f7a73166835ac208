/** Tiny models, as in families.ts: RWKV 6 and 7, and Qwen 2 with their layers in place of attention. */
import { each, FFN, u32, VOCAB, type Family, type Shapes } from "./family-parts.ts";

/** llama.cpp's recurrence of RWKV 7 takes whole groups of 64 values. */
const HEAD = 64;
const DIM = 2 * HEAD;
const RANK = 8;

const norms = (...names: readonly string[]): Shapes => Object.fromEntries(names.map((name) => [name, [DIM]]));
const mlp: Shapes = { ffn_gate: [DIM, FFN], ffn_up: [DIM, FFN], ffn_down: [FFN, DIM] };

const layerNorms = (...names: readonly string[]): Shapes => ({
  ...norms(...names),
  ...norms(...names.map((name) => `${name}.bias`)),
});

const world: Pick<Family, "shapes"> = {
  shapes: { ...layerNorms("token_embd_norm"), "output_norm.bias": [DIM], output: [DIM, VOCAB] },
};
const square = (...names: readonly string[]): Shapes =>
  Object.fromEntries(names.map((name) => [`time_mix_${name}`, [DIM, DIM]]));

const sixth: Shapes = {
  time_mix_w1: [DIM, 5 * RANK],
  time_mix_w2: [RANK, DIM, 5],
  time_mix_lerp_x: [DIM, 1, 1],
  time_mix_decay: [DIM],
  time_mix_decay_w1: [DIM, 2 * RANK],
  time_mix_decay_w2: [2 * RANK, DIM],
  ...square("receptance", "gate", "output"),
};
const sixthKeys = {
  "attention.head_count": u32(0),
  "wkv.head_size": u32(HEAD),
  time_mix_extra_dim: u32(RANK),
  time_decay_extra_dim: u32(2 * RANK),
};
const finch: Shapes = {
  ...layerNorms("attn_norm", "attn_norm_2", "time_mix_ln"),
  ...sixth,
  ...square("key", "value"),
  time_mix_first: [HEAD, DIM / HEAD],
  channel_mix_lerp_k: [DIM, 1, 1],
  channel_mix_lerp_r: [DIM, 1, 1],
  channel_mix_key: [DIM, FFN],
  channel_mix_value: [FFN, DIM],
  channel_mix_receptance: [DIM, DIM],
};
const fused = (count: number): Shapes => ({ time_mix_lerp_fused: [DIM, 1, 1, count] });

const pair = (name: string, rank: number): Shapes => ({
  [`time_mix_${name}1`]: [DIM, rank],
  [`time_mix_${name}2`]: [rank, DIM],
});
/** The first layer's unused matrices have the rank of `a`. */
const seventh = (layer: number): Shapes => ({
  ...norms("time_mix_w0", "time_mix_a0", "time_mix_v0", "time_mix_k_k", "time_mix_k_a", "time_mix_r_k"),
  ...pair("w", RANK),
  ...pair("a", 2 * RANK),
  ...pair("v", layer === 0 ? 2 * RANK : 3 * RANK),
  ...square("receptance", "key", "value", "output"),
});
const gate = (): Shapes => pair("g", 4 * RANK);
const seventhKeys = {
  "attention.head_count": u32(0),
  "wkv.head_size": u32(HEAD),
  "attention.decay_lora_rank": u32(RANK),
  "attention.iclr_lora_rank": u32(2 * RANK),
  "attention.value_residual_mix_lora_rank": u32(3 * RANK),
};

export const rwkvFamilies: Readonly<Record<string, Family>> = {
  rwkv6: {
    arch: "rwkv6",
    dim: DIM,
    keys: sixthKeys,
    ...world,
    layers: each(2, () => ({ ...finch, ...fused(5) })),
  },
  "rwkv6-apart": {
    arch: "rwkv6",
    dim: DIM,
    keys: { ...sixthKeys, rescale_every_n_layers: u32(2) },
    ...world,
    layers: each(3, () => ({
      ...finch,
      ...Object.fromEntries(["w", "k", "v", "r", "g"].map((name) => [`time_mix_lerp_${name}`, [DIM, 1, 1]])),
    })),
  },
  rwkv6qwen2: {
    arch: "rwkv6qwen2",
    dim: DIM,
    keys: { ...sixthKeys, "attention.head_count_kv": u32(1), token_shift_count: u32(1) },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, () => ({
      ...norms("attn_norm", "ffn_norm"),
      ...sixth,
      ...fused(5),
      time_mix_key: [DIM, HEAD],
      "time_mix_key.bias": [HEAD],
      time_mix_value: [DIM, HEAD],
      "time_mix_value.bias": [HEAD],
      "time_mix_receptance.bias": [DIM],
      ...mlp,
    })),
  },
  rwkv7: {
    arch: "rwkv7",
    dim: DIM,
    keys: { ...seventhKeys, "attention.gate_lora_rank": u32(4 * RANK) },
    ...world,
    layers: each(3, (layer) => ({
      ...layerNorms("attn_norm", "attn_norm_2", "time_mix_ln"),
      ...seventh(layer),
      ...gate(),
      ...fused(6),
      channel_mix_lerp_k: [DIM, 1, 1],
      channel_mix_key: [DIM, FFN],
      channel_mix_value: [FFN, DIM],
    })),
  },
  arwkv7: {
    arch: "arwkv7",
    dim: DIM,
    keys: { ...seventhKeys, "attention.gate_lora_rank": u32(4 * RANK), token_shift_count: u32(1) },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, (layer) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...layerNorms("time_mix_ln"),
      ...seventh(layer),
      ...gate(),
      ...fused(6),
      ...mlp,
    })),
  },
};
