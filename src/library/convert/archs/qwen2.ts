/** Qwen 2 and 2.5, `qwen2`: Llama with biases on query, key and value. Its sliding window is off in every release. */
import type { Architecture } from "../architecture.ts";
import { decoderMetadata, llamaTable } from "../decoder.ts";

export const qwen2: Architecture = {
  arch: "qwen2",
  activations: ["silu"],
  metadata: (config) => decoderMetadata(config, { ctxLen: 32_768 }),
  tensors: () => llamaTable(),
};
