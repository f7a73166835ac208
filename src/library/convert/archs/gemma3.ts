/**
 * The text models of Gemma 3, `gemma3`: Gemma 2 with QK-norm, five sliding-window layers per full-attention layer, and
 * separate RoPE parameters for the two. Releases with an image encoder omit most keys.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { defined, f32, u32, type Architecture } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { decoderMetadata, headNorms, llamaTable, sandwichNorms, type DecoderDefaults } from "../decoder.ts";
import { localRopeBase } from "../rope.ts";
import { checkScale } from "./gemma2.ts";

/** Gemma3TextConfig of transformers. */
const DEFAULTS: DecoderDefaults = { nHeads: 8, nKvHeads: 4, headDim: 256, ctxLen: 131_072, ropeBase: 1e6 };
const LAYERS_27B = 62;
const PERIOD = 6;

export const gemma3: Architecture = {
  arch: "gemma3",
  activations: ["gelu_pytorch_tanh"],
  metadata(config) {
    checkScale(config, { layers27b: LAYERS_27B, defaults: DEFAULTS });
    if (config.find("attn_logit_softcapping") !== undefined) throw config.wrong("attn_logit_softcapping", "null");
    const cap = config.findNumber("final_logit_softcapping");
    return {
      ...decoderMetadata(config, DEFAULTS),
      "attention.sliding_window": u32(config.count("sliding_window", { fallback: 4096 })),
      "rope.freq_base_swa": f32(localRopeBase(config) ?? 10_000),
      ...defined({
        "attention.sliding_window_pattern": windowPattern(config),
        final_logit_softcapping: cap === undefined ? undefined : f32(cap),
      }),
    };
  },
  tensors: () => ({ ...llamaTable({ shift: 1 }), ...sandwichNorms(1), ...headNorms(1) }),
  unused: /^lm_head\./,
  addSpacePrefix: false,
};

/** The period of full-attention layers, if unusual; irregular layers are refused. */
function windowPattern(config: Config): WriteValue | undefined {
  const nLayers = layersOf(config);
  const listed = config.find("layer_types");
  const period = config.findCount("sliding_window_pattern") ?? config.findCount("_sliding_window_pattern") ?? PERIOD;
  if (listed === undefined) return period === PERIOD ? undefined : u32(period);
  const isList = Array.isArray(listed) && listed.length === nLayers;
  if (!isList) throw config.wrong("layer_types", `a list of ${nLayers}`);
  const follows = (every: number): boolean =>
    listed.every((type, i) => type === (i % every < every - 1 ? "sliding_attention" : "full_attention"));
  const first = listed.indexOf("full_attention") + 1;
  const found = [period, first].find((every) => every > 0 && follows(every));
  if (found === undefined) throw config.wrong("layer_types", "full attention at a regular period");
  return found === PERIOD ? undefined : u32(found);
}
