/**
 * RWKV 6 and 7, and Qwen 2 with such layers in place of attention. Names and shapes: conversion/rwkv.py of llama.cpp.
 * The vectors of a layer's mixtures are stacked, and the matrices of low ranks are stored transposed.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { checkActivation, llamaTable } from "../decoder.ts";

const flat = (shape: readonly number[]) => ({ shape: [shape.reduce((all, size) => all * size, 1)] });
/** A vector whose name has no suffix, with any dimensions of one. */
const vector = (to: string): TensorRule => ({ to: `blk.*.${to}.weight`, rows: flat });
/** A matrix whose name has no suffix, stored transposed; several, as (count, inDim, outDim). */
const transposed = (to: string, more: Partial<TensorRule> = {}): TensorRule => ({
  to: `blk.*.${to}.weight`,
  isTransposed: true,
  ...more,
});
/** Parameters of the first layer's value mixture, which are unused because there is no earlier layer. */
const FIRST_VALUES = /^(layers|blocks)\.0\.[a-z_.]*\.v([012]$|_lora\.)/;

const PRECISE = { precise: true } as const;

/** The vectors of mixtures, (1, 1, dim) each, as one tensor in this order. */
const mixtures = (at: string, names: readonly string[]): TensorTable =>
  Object.fromEntries(
    names.map((name, place): [string, TensorRule] => [
      `${at}${name}`,
      {
        to: "blk.*.time_mix_lerp_fused.weight",
        part: { at: place, of: names.length },
        rows: (shape) => ({ shape: [1, 1, ...flat(shape).shape] }),
        ...PRECISE,
      },
    ]),
  );

const sizes = (config: Config): Record<string, WriteValue> => ({
  context_length: u32(2 ** 20), // unlimited; converters write this
  embedding_length: u32(config.count("hidden_size")),
  block_count: u32(layersOf(config)),
  "attention.head_count": u32(0),
});

/** Amounts of mixtures, and decays, which RWKV 6 and its layers in Qwen 2 share. */
const sixth = (at: string, groups?: readonly number[]): TensorTable => ({
  [`${at}.time_maa_x`]: vector("time_mix_lerp_x"),
  [`${at}.time_maa_w1`]: transposed("time_mix_w1", { ...PRECISE, ...(groups && { groups }) }),
  [`${at}.time_maa_w2`]: transposed("time_mix_w2", { ...PRECISE, ...(groups && { groups }) }),
  ...mixtures(`${at}.time_maa_`, ["w", "k", "v", "r", "g"]),
  [`${at}.time_decay`]: vector("time_mix_decay"),
  [`${at}.time_decay_w1`]: transposed("time_mix_decay_w1", PRECISE),
  [`${at}.time_decay_w2`]: transposed("time_mix_decay_w2", PRECISE),
  [`${at}.gate`]: { to: "blk.*.time_mix_gate" },
});

export const rwkv6: Architecture = {
  arch: "rwkv6",
  metadata(config) {
    const dim = config.count("hidden_size");
    const isWide = dim === 4096;
    return {
      ...sizes(config),
      feed_forward_length: u32(config.findCount("intermediate_size") ?? Math.floor((dim * 3.5) / 32) * 32),
      "attention.layer_norm_epsilon": f32(config.number("layer_norm_epsilon", 1e-5)),
      rescale_every_n_layers: u32(config.count("rescale_every", { fallback: 6, min: 0 })),
      "wkv.head_size": u32(config.count("head_size", { fallback: 64 })),
      time_mix_extra_dim: u32(isWide ? 64 : 32),
      time_decay_extra_dim: u32(isWide ? 128 : 64),
    };
  },
  tensors: (config) => ({
    embeddings: { to: "token_embd" },
    "blocks.0.pre_ln": { to: "token_embd_norm" },
    ln_out: { to: "output_norm" },
    head: { to: "output" },
    "blocks.*.ln1": { to: "blk.*.attn_norm" },
    "blocks.*.ln2": { to: "blk.*.attn_norm_2" },
    ...sixth("blocks.*.attention"),
    "blocks.*.attention.time_faaaa": { to: "blk.*.time_mix_first.weight", ...PRECISE },
    "blocks.*.attention.key": { to: "blk.*.time_mix_key" },
    "blocks.*.attention.value": { to: "blk.*.time_mix_value" },
    "blocks.*.attention.receptance": { to: "blk.*.time_mix_receptance" },
    "blocks.*.attention.ln_x": { to: "blk.*.time_mix_ln" },
    "blocks.*.feed_forward.time_maa_k": vector("channel_mix_lerp_k"),
    "blocks.*.feed_forward.time_maa_r": vector("channel_mix_lerp_r"),
    "blocks.*.feed_forward.key": { to: "blk.*.channel_mix_key" },
    "blocks.*.feed_forward.receptance": { to: "blk.*.channel_mix_receptance" },
    ...halved(config, { "attention.output": "time_mix_output", "feed_forward.value": "channel_mix_value" }),
  }),
  vocabulary: "world",
};

/** Matrices that a GGUF has halved once for each `rescale_every` layers before theirs. */
function halved(config: Config, names: Readonly<Record<string, string>>): TensorTable {
  const every = config.count("rescale_every", { fallback: 6, min: 0 });
  const rules = Array.from({ length: layersOf(config) }, (_, layer) => {
    const share = every === 0 ? 1 : 0.5 ** Math.floor(layer / every);
    return Object.entries(names).map(([from, to]): [string, TensorRule] => [
      `blocks.${layer}.${from}`,
      { to: `blk.${layer}.${to}`, ...(share === 1 ? {} : { value: (weight: number) => weight * share }) },
    ]);
  });
  return Object.fromEntries(rules.flat());
}

/** Qwen 2 stores its amounts of mixtures in the order r, k, v, w, g; a GGUF's is that of RWKV 6. */
const FROM_QWEN = [3, 1, 2, 0, 4];

const withoutAttention = (): TensorTable =>
  Object.fromEntries(Object.entries(llamaTable()).filter(([name]) => !name.includes(".self_attn.")));

const qwenSizes = (config: Config): Record<string, WriteValue> => {
  checkActivation(config, ["silu"]);
  return {
    ...sizes(config),
    feed_forward_length: u32(config.count("intermediate_size")),
    "attention.layer_norm_rms_epsilon": f32(config.number("rms_norm_eps", 1e-6)),
    token_shift_count: u32(1),
  };
};

export const rwkv6qwen2: Architecture = {
  arch: "rwkv6qwen2",
  metadata(config) {
    const [dim, heads] = [config.count("hidden_size"), config.count("num_attention_heads")];
    const isWide = dim >= 4096;
    return {
      ...qwenSizes(config),
      "wkv.head_size": u32(Math.floor(dim / heads)),
      "attention.head_count_kv": u32(config.count("num_key_value_heads")),
      time_mix_extra_dim: u32(config.count("lora_rank_tokenshift", { fallback: isWide ? 64 : 32 })),
      time_decay_extra_dim: u32(config.count("lora_rank_decay", { fallback: isWide ? 128 : 64 })),
    };
  },
  tensors: () => ({
    ...withoutAttention(),
    ...sixth("layers.*.self_attn", FROM_QWEN),
    "layers.*.self_attn.q_proj": { to: "blk.*.time_mix_receptance" },
    "layers.*.self_attn.k_proj": { to: "blk.*.time_mix_key" },
    "layers.*.self_attn.v_proj": { to: "blk.*.time_mix_value" },
    "layers.*.self_attn.o_proj": { to: "blk.*.time_mix_output" },
  }),
};

/** Reads a rank. Configurations may omit it, then a rule of thumb gives it; files of fla use other names. */
function rank(config: Config, names: readonly [string, string], [exponent, factor]: readonly [number, number]) {
  const usual = Math.max(1, Math.round((config.count("hidden_size") ** exponent * factor) / 32)) * 32;
  return u32(config.count(nameOf(config, ...names), { fallback: usual }));
}

export const rwkv7: Architecture = {
  arch: "rwkv7",
  activations: ["sqrelu", "relu2"],
  metadata: (config) => ({
    ...sizes(config),
    feed_forward_length: u32(config.findCount("intermediate_size") ?? 4 * config.count("hidden_size")),
    "attention.layer_norm_epsilon": f32(config.number(nameOf(config, "layer_norm_epsilon", "norm_eps"))),
    "wkv.head_size": u32(config.count(nameOf(config, "head_size", "head_dim"))),
    "attention.decay_lora_rank": rank(config, ["lora_rank_decay", "decay_low_rank_dim"], [0.5, 1.8]),
    "attention.iclr_lora_rank": rank(config, ["lora_rank_iclr", "a_low_rank_dim"], [0.5, 1.8]),
    "attention.value_residual_mix_lora_rank": rank(
      config,
      ["lora_rank_value_residual_mix", "v_low_rank_dim"],
      [0.5, 1.3],
    ),
    "attention.gate_lora_rank": rank(config, ["lora_rank_gate", "gate_low_rank_dim"], [0.8, 0.6]),
  }),
  tensors: () => ({
    embeddings: { to: "token_embd" },
    lm_head: { to: "output" },
    head: { to: "output" },
    norm: { to: "output_norm" },
    ln_out: { to: "output_norm" },
    pre_ln: { to: "token_embd_norm" },
    "blocks.0.pre_ln": { to: "token_embd_norm" },
    "layers.0.pre_norm": { to: "token_embd_norm" },
    "layers.*.attn_norm": { to: "blk.*.attn_norm" },
    "blocks.*.ln1": { to: "blk.*.attn_norm" },
    "layers.*.ffn_norm": { to: "blk.*.attn_norm_2" },
    "blocks.*.ln2": { to: "blk.*.attn_norm_2" },
    ...seventh("layers.*.attn", true),
    ...seventh("blocks.*.attention", true),
    ...channelMix("layers.*.ffn"),
    ...channelMix("blocks.*.feed_forward"),
  }),
  unused: FIRST_VALUES,
  vocabulary: "world",
};

const channelMix = (at: string): TensorTable => ({
  [`${at}.x_k`]: vector("channel_mix_lerp_k"),
  [`${at}.key`]: { to: "blk.*.channel_mix_key" },
  [`${at}.value`]: { to: "blk.*.channel_mix_value" },
});

export const arwkv7: Architecture = {
  arch: "arwkv7",
  metadata(config) {
    if (config.count("wkv_version") !== 7) throw config.wrong("wkv_version", "7");
    return {
      ...qwenSizes(config),
      "wkv.head_size": u32(config.count("head_size")),
      "attention.decay_lora_rank": u32(64),
      "attention.iclr_lora_rank": u32(64),
      "attention.value_residual_mix_lora_rank": u32(32),
      "attention.gate_lora_rank": u32(config.flag("wkv_has_gate", true) ? 128 : 0),
    };
  },
  tensors: (config) => ({
    ...withoutAttention(),
    ...seventh("layers.*.self_attn.time_mixer", config.flag("wkv_has_gate", true)),
  }),
  unused: FIRST_VALUES,
};

/** Two names per square matrix. */
const SQUARES = { receptance: "r_proj", key: "k_proj", value: "v_proj", output: "o_proj" } as const;

function seventh(at: string, isGated: boolean): TensorTable {
  const names = ["w", "a", "v", ...(isGated ? ["g"] : [])];
  const all: TensorTable = {
    ...mixtures(`${at}.x_`, ["r", "w", "k", "v", "a", ...(isGated ? ["g"] : [])]),
    [`${at}.x_x`]: { to: "blk.*.time_mix_lerp_fused.weight", rows: stack, ...PRECISE },
    ...Object.fromEntries(["k_k", "k_a", "r_k"].map((name) => [`${at}.${name}`, vector(`time_mix_${name}`)])),
    ...Object.fromEntries(
      Object.entries(SQUARES).flatMap(([name, other]) =>
        [name, other].map((from) => [`${at}.${from}`, { to: `blk.*.time_mix_${name}` }]),
      ),
    ),
    ...Object.assign({}, ...names.map((name) => lowRank(at, name))),
    [`${at}.ln_x`]: { to: "blk.*.time_mix_ln", optional: true },
    [`${at}.g_norm`]: { to: "blk.*.time_mix_ln", optional: true },
  };
  const first = Object.entries(all).filter(([name]) => name.startsWith(`${at}.a`));
  return { ...all, ...Object.fromEntries(first.map(([name, rule]) => inFirstLayer(name, rule as TensorRule))) };
}

/** The vectors of all mixtures, (count, 1, 1, dim). */
const stack = (shape: readonly number[]) => ({ shape: [shape[0] ?? 0, 1, 1, shape.at(-1) ?? 0] });

/** The product of two matrices, and a vector added to it; fla stores them as layers of one module. */
function lowRank(at: string, name: string): TensorTable {
  const [to, more] = [`time_mix_${name}`, name === "w" ? PRECISE : {}];
  const isAdded = name !== "g";
  return {
    [`${at}.${name}1`]: transposed(`${to}1`, more),
    [`${at}.${name}2`]: transposed(`${to}2`, more),
    [`${at}.${name}_lora.lora.0`]: { to: `blk.*.${to}1`, ...more },
    [`${at}.${name}_lora.lora.2`]: { to: `blk.*.${to}2`, ...more },
    ...(isAdded && { [`${at}.${name}0`]: vector(`${to}0`), [`${at}.${name}_lora.lora.2.bias`]: vector(`${to}0`) }),
  };
}

/** The first layer's value mixture is unused; a GGUF has its rates under that name. */
function inFirstLayer(name: string, rule: TensorRule): [string, readonly TensorRule[]] {
  const to = rule.to.replace("*", "0");
  const places = [to, to.replace("time_mix_a", "time_mix_v")];
  return [name.replace("*", "0"), places.map((place) => ({ ...rule, to: place }))];
}
