/** Ministral 3 and later: Llama whose queries grow with the logarithm of the position. */
import { f32, type Architecture } from "../architecture.ts";
import { decoderMetadata, headsOf, llamaTable } from "../decoder.ts";
import { ropeParameters } from "../rope.ts";

export const mistral3: Architecture = {
  arch: "mistral3",
  activations: ["silu"],
  metadata(config) {
    if (config.find("sliding_window") !== undefined) throw config.wrong("sliding_window", "null");
    const beta = ropeParameters(config)?.findNumber("llama_4_scaling_beta");
    return {
      ...decoderMetadata(config, { eps: 1e-5 }),
      ...(beta === undefined ? {} : { "attention.temperature_scale": f32(beta) }),
    };
  },
  tensors: (config) => llamaTable({ heads: headsOf(config) }),
};
