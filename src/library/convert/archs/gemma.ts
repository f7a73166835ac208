/** Gemma 1, `gemma`: norms are stored minus 1. Its first files say "gelu" but mean the approximation. */
import type { Architecture } from "../architecture.ts";
import { decoderMetadata, llamaTable } from "../decoder.ts";

export const gemma: Architecture = {
  arch: "gemma",
  activations: ["gelu_pytorch_tanh", "gelu"],
  metadata(config) {
    return decoderMetadata(config, { headDim: 256, ctxLen: 8192 }); // GemmaConfig of transformers
  },
  tensors: () => llamaTable({ shift: 1 }),
  unused: /^lm_head\./,
  addSpacePrefix: false,
};
