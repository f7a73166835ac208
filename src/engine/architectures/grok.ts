/**
 * Decoders with experts and an MLP in parallel: Grok, and Snowflake Arctic. Semantics: src/models/grok.cpp and
 * arctic.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, moe, normSteps, sequentialBlock } from "./decoder.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

/** Values of Grok 1, which its files lack. */
const GROK = {
  embeddingScale: 78.38367176906169,
  logitScale: 0.5773502691896257,
  attentionScale: 0.08838834764831845,
  attentionCap: 30,
  betaFast: 8,
};

/** Grok: limited scores, norms before and after each block; Grok 2 adds an MLP to the experts, each weighted 1/√2. */
export function grok(model: Model): Step[] {
  const { keys, dim } = model;
  const { y } = buffersOf(model);
  const rope = {
    ...ropeOf(model, { style: "neox" }),
    betaFast: keys.number("rope.scaling.yarn_beta_fast", GROK.betaFast),
  };
  const scale = keys.number("attention.output_scale", GROK.attentionScale);
  const softCap = keys.number("attn_logit_softcapping", GROK.attentionCap);
  const ffn = (layer: number): Step[] => {
    const experts = { act: "gelu", normalize: true } as const;
    if (!model.has(`blk.${layer}.ffn_up.weight`)) return moe(model, layer, experts);
    const mixed = { name: "mixed", dim };
    return [
      ...moe(model, layer, { ...experts, out: mixed }),
      ...feedForward(model, layer, { act: "gelu" }),
      { op: "add", out: y, a: y, b: mixed, scale: 1 },
      { op: "scale", x: y, by: Math.SQRT1_2 },
    ];
  };
  return decoder(model, {
    embeddingScale: keys.number("embedding_scale", GROK.embeddingScale),
    logitScale: keys.number("logit_scale", GROK.logitScale),
    logitCap: keys.number("final_logit_softcapping", 0),
    block: (layer) =>
      sequentialBlock(model, layer, {
        attnPostNorm: "attn_output_norm",
        ffnPostNorm: model.has(`blk.${layer}.layer_output_norm.weight`) ? "layer_output_norm" : "post_ffw_norm",
        attention: attention(model, layer, { rope, scale, softCap }),
        ffn: ffn(layer),
      }),
  });
}

/** Arctic: attention, then an MLP; in parallel to both, experts on the layer's input. */
export function arctic(model: Model): Step[] {
  const { dim } = model;
  const { x, h, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "norm" });
  const z = { name: "z", dim };
  return decoder(model, {
    block: (layer) => [
      ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.attn_norm` }),
      ...attention(model, layer, { rope }),
      { op: "add", out: z, a: x, b: y, scale: 1 },
      ...normSteps(model, "rms", { out: h, x: z, name: `blk.${layer}.ffn_norm` }),
      ...feedForward(model, layer, { act: "silu", ffnDim: dim }),
      { op: "add", out: z, a: z, b: y, scale: 1 },
      ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.ffn_norm_exps` }),
      ...moe(model, layer, { act: "silu", normalize: true }),
      { op: "add", out: x, a: z, b: y, scale: 1 },
    ],
  });
}
