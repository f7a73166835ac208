/**
 * Llama 1–3 and Mistral, `llama`: query and key rows are stored in halves and rotated in pairs; Llama 3.1's frequencies
 * have divisors. Such a GGUF cannot express a sliding window, which the first Mistral has.
 */
import { u32, type Architecture } from "../architecture.ts";
import { decoderMetadata, headsOf, llamaTable } from "../decoder.ts";
import { llama3Factors } from "../rope.ts";

export const llama: Architecture = {
  arch: "llama",
  activations: ["silu"],
  metadata: (config) => ({ ...decoderMetadata(config), "rope.dimension_count": u32(headsOf(config).headDim) }),
  tensors: (config) => llamaTable({ heads: headsOf(config) }),
  computed: (config) => llama3Factors(config, headsOf(config).headDim),
};
