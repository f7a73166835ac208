/** Qwen 3, dense, `qwen3`: QK-norm, and an independent head size. */
import type { Architecture } from "../architecture.ts";
import { decoderMetadata, headNorms, llamaTable } from "../decoder.ts";

export const qwen3: Architecture = {
  arch: "qwen3",
  activations: ["silu"],
  metadata: (config) => decoderMetadata(config, { headDim: 128, ctxLen: 32_768 }),
  tensors: () => ({ ...llamaTable(), ...headNorms() }),
};
