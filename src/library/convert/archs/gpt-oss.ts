/** gpt-oss: experts in MXFP4 blocks, with the rows of gate and up interleaved. */
import { u32, type Architecture, type ExpertRows, type TensorTable } from "../architecture.ts";
import { layersOf } from "../config.ts";
import { decoderMetadata } from "../decoder.ts";
import { bareTable, expertMetadata } from "./experts.ts";

/** Every second row of stacked matrices in which the rows of gate and up are interleaved. */
const inTurns = (first: 0 | 1): ExpertRows => ({ first, step: 2 });
/** Selects every second value of each expert's biases. */
const biasInTurns =
  (first: 0 | 1) =>
  ([experts = 0, both = 0]: readonly number[]) => ({
    shape: [experts, both / 2],
    order: Array.from({ length: (experts * both) / 2 }, (_, i) => 2 * i + first),
    rowLen: 1,
  });

/** gpt-oss, whose experts are MXFP4 blocks, or floats after further training. */
export const gptOss: Architecture = {
  arch: "gpt-oss",
  activations: ["silu"],
  metadata(config) {
    if (config.number("swiglu_limit", 7) !== 7) throw config.wrong("swiglu_limit", "7");
    const kinds = config.find("layer_types");
    const usual = Array.from({ length: layersOf(config) }, (_, i) => (i % 2 === 0 ? "sliding" : "full"));
    if (kinds !== undefined && String(kinds) !== usual.map((kind) => `${kind}_attention`).join(",")) {
      throw config.wrong("layer_types", "a window in every other layer, from the first");
    }
    return {
      ...decoderMetadata(config, { headDim: 64, ctxLen: 131_072, eps: 1e-5 }),
      ...expertMetadata(config, "intermediate_size"),
      "attention.sliding_window": u32(config.count("sliding_window", { fallback: 128 })),
    };
  },
  tensors() {
    const parts = (name: string): TensorTable => ({
      [`layers.*.mlp.experts.gate_up_proj${name}`]: [
        { to: "blk.*.ffn_gate_exps.weight", experts: inTurns(0), optional: "layers" },
        { to: "blk.*.ffn_up_exps.weight", experts: inTurns(1), optional: "layers" },
      ],
      [`layers.*.mlp.experts.down_proj${name}`]: {
        to: "blk.*.ffn_down_exps.weight",
        experts: { first: 0, step: 1 },
        optional: "layers",
      },
    });
    return {
      ...bareTable(),
      "layers.*.post_attention_layernorm": { to: "blk.*.post_attention_norm" },
      "layers.*.self_attn.sinks": { to: "blk.*.attn_sinks.weight" },
      "layers.*.mlp.router": { to: "blk.*.ffn_gate_inp" },
      ...parts(""),
      ...parts("_blocks"),
      "layers.*.mlp.experts.gate_up_proj_bias": [
        { to: "blk.*.ffn_gate_exps.bias", rows: biasInTurns(0), precise: true },
        { to: "blk.*.ffn_up_exps.bias", rows: biasInTurns(1), precise: true },
      ],
      "layers.*.mlp.experts.down_proj_bias": { to: "blk.*.ffn_down_exps.bias", precise: true },
    };
  },
  unused: /_scales$/,
};
