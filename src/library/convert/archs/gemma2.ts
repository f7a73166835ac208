/** Gemma 2, `gemma2`: norms are stored minus 1; scores and logits are soft-capped. */
import { f32, u32, type Architecture } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { decoderMetadata, headsOf, llamaTable, sandwichNorms, type DecoderDefaults } from "../decoder.ts";

/** Gemma2Config of transformers. */
const DEFAULTS: DecoderDefaults = { headDim: 256, ctxLen: 8192 };
/** The 27B model, which scales attention by width / heads. */
const LAYERS_27B = 46;

export const gemma2: Architecture = {
  arch: "gemma2",
  activations: ["gelu_pytorch_tanh"],
  metadata(config) {
    checkScale(config, { layers27b: LAYERS_27B, defaults: DEFAULTS });
    return {
      ...decoderMetadata(config, DEFAULTS),
      "attention.sliding_window": u32(config.count("sliding_window", { fallback: 4096 })),
      attn_logit_softcapping: f32(config.number("attn_logit_softcapping", 50)),
      final_logit_softcapping: f32(config.number("final_logit_softcapping", 30)),
    };
  },
  tensors: () => ({ ...llamaTable({ shift: 1 }), ...sandwichNorms(1) }),
  unused: /^lm_head\./,
  addSpacePrefix: false,
};

/** GGUF has no key for the attention scale: it follows from the sizes, so the configuration must agree. */
export function checkScale(config: Config, { layers27b, defaults }: { layers27b: number; defaults: DecoderDefaults }) {
  const { nHeads, headDim } = headsOf(config, defaults);
  const is27b = layersOf(config) === layers27b;
  const implied = is27b ? config.count("hidden_size") / nHeads : headDim;
  const found = config.number("query_pre_attn_scalar", implied);
  if (found !== implied) throw config.wrong("query_pre_attn_scalar", `${implied}, which its sizes imply`);
}
