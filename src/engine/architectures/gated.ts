/**
 * Decoders that gate the attention output by a projection of the layer's input. Layers with a window alternate with
 * global layers. Semantics: the files of the same names in llama.cpp's src/models.
 */
import type { GateLimit, Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, denseThenExperts, feedForward, moe, normSteps, sequentialBlock } from "./decoder.ts";
import { LIMIT_MIN, routingOf } from "./experts.ts";
import { readLayers, readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { checkedRope, localRope, ropeOf, windowRope } from "./rope.ts";
import { sequential } from "./sequential.ts";

/** Every n-th layer of Trinity has no RoPE. No GGUF key has this n. */
const NO_ROPE_PERIOD = 4;
/** Epsilon of the norms after a block of Muse Glimmer. */
const POST_EPS = 1e-8;

/** Trinity: experts in all layers except the first few, norms before and after each block. */
export function afmoe(model: Model): Step[] {
  const { keys, dim } = model;
  const rope = ropeOf(model, { style: "neox" });
  const local = windowRope(model, rope);
  const windows = readWindows(keys, model, { window: 0, period: 4 });
  return sequential(model, {
    rope,
    local,
    windows,
    gate: "sigmoid",
    embeddingScale: Math.sqrt(dim),
    attnPostNorm: "post_attention_norm",
    ffnPostNorm: "post_ffw_norm",
    perLayer: (layer) => ((layer + 1) % NO_ROPE_PERIOD === 0 ? { rope: undefined } : {}),
    ffn: denseThenExperts(model, { act: "silu", routing: routingOf(model, "sigmoid") }),
  });
}

/** Laguna: the first of four layers is global, with separate RoPE parameters; a gate per head or per value. */
export function laguna(model: Model): Step[] {
  const { keys, nLayers, headDim } = model;
  const rope = ropeOf(model, { style: "neox" });
  const rotaryDim = keys.count("rope.dimension_count_swa", { min: 2, max: headDim, fallback: rope.rotaryDim });
  const local = localRope(model, rope, { base: keys.number("rope.freq_base_swa", rope.base), rotaryDim });
  const slides = keys.number("attention.sliding_window", 0) > 0;
  const windows = slides ? readWindows(keys, model, { window: 0, period: 4, fullFirst: true }) : [];
  const { heads, kvHeads } = readLayers(keys, model);
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers });
  const routing = routingOf(model, "sigmoid");
  const normalize = keys.flag("expert_weights_norm", false);
  return sequential(model, {
    rope,
    local,
    windows,
    gate: "softplus",
    perLayer: (layer) => ({ sizes: { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]! } }),
    ffn: (layer) =>
      layer < leading
        ? feedForward(model, layer, { act: "silu" })
        : moe(model, layer, { act: "silu", normalize, routing }),
  });
}

/** Muse Glimmer: normed embeddings, and RoPE in layers with a window only. */
export function museGlimmer(model: Model): Step[] {
  const { keys } = model;
  const { x } = buffersOf(model);
  const local = windowRope(model, ropeOf(model, { style: "norm" }));
  const windows = readWindows(keys, model, { window: 0, period: 4 });
  return sequential(model, {
    rope: null,
    local,
    windows,
    gate: "sigmoid",
    start: normSteps(model, "bareRms", { out: x, x, name: "" }),
    logitScale: keys.number("logit_scale"),
    logitCap: keys.number("final_logit_softcapping", 0),
    attnPostNorm: "post_attention_norm",
    ffnPostNorm: "post_ffw_norm",
    postEps: POST_EPS,
  });
}

/** Spark 2.5: the number of heads varies by layer; a gate per head. */
export function spark25(model: Model): Step[] {
  const { keys } = model;
  const rope = ropeOf(model, { style: "neox" });
  const local = windowRope(model, rope);
  const windows = readWindows(keys, model, { window: 0, period: 0 });
  const { heads, kvHeads } = readLayers(keys, model);
  return sequential(model, {
    rope,
    local,
    windows,
    act: "gelu",
    gate: "sigmoid",
    perLayer: (layer) => ({ sizes: { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]! } }),
  });
}

/**
 * Step 3.5: half of each head rotates in global layers, which alone use the file's factors; layers with a window have
 * other numbers of heads and another rotation. A gate per head; the activations of some layers are limited.
 */
export function step35(model: Model): Step[] {
  const { keys, nLayers } = model;
  const { freqFactors, ...plain } = ropeOf(model, { style: "neox" });
  const rotaryDim = plain.rotaryDim / 2;
  const rope = checkedRope(model, {
    ...plain,
    rotaryDim,
    ...(freqFactors && { freqFactors: freqFactors.slice(0, rotaryDim / 2) }),
  });
  const local = windowRope(model, plain);
  const windows = readWindows(keys, model, { window: 0, period: 0 });
  const { heads, kvHeads } = readLayers(keys, model);
  const routing = routingOf(model, "sigmoid");
  const normalize = keys.flag("expert_weights_norm", false);
  const limitOf = (values: readonly number[], layer: number): GateLimit | undefined =>
    values[layer]! > LIMIT_MIN ? { gate: values[layer]!, up: values[layer]! } : undefined;
  const limits = keys.numbers("swiglu_clamp_exp", 0, nLayers);
  const otherLimits = keys.numbers("swiglu_clamp_shexp", 0, nLayers);
  return decoder(model, {
    block: (layer) => {
      const window = windows[layer]!;
      const sizes = { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]! };
      const [limit, sharedLimit] = [limitOf(limits, layer), limitOf(otherLimits, layer)];
      const gate = model.has(`blk.${layer}.attn_gate.weight`) ? ({ gate: "sigmoid" } as const) : {};
      return sequentialBlock(model, layer, {
        attention: attention(model, layer, { rope: window > 0 ? local : rope, window, sizes, ...gate }),
        ffn: model.has(`blk.${layer}.ffn_gate_inp.weight`)
          ? moe(model, layer, { act: "silu", normalize, routing, limit, sharedLimit })
          : feedForward(model, layer, { act: "silu", limit: sharedLimit }),
      });
    },
  });
}
