/**
 * Decoders with experts, each in a line or a few: what its attention, its routing and its layers without experts are.
 * Meaning: the files of the same names in llama.cpp's src/models.
 */
import type { Activation, RopeScaling, Routing, Step } from "../backend/step.ts";
import { AppError } from "../base/errors.ts";
import { attention, decoder, feedForward, moe, parallelBlock, sequentialBlock, type NormKind } from "./decoder.ts";
import { readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

interface Options {
  readonly rope: RopeScaling["style"];
  readonly act?: Activation;
  readonly norm?: NormKind;
  readonly normLast?: boolean;
  readonly bareResult?: boolean;
  /** Tensor names of the norms, without `blk.N.` */
  readonly ffnNorm?: string;
  readonly attnPostNorm?: string;
  readonly ffnPostNorm?: string;
  readonly clamp?: number;
  /** Whether weights of chosen experts are divided by their sum; by the file. */
  readonly normalize?: boolean;
  readonly routing?: Routing;
  /** Applies `.scale` tensors of experts. */
  readonly scaled?: boolean;
  /** The layers at the start that are dense, where the file does not say; 0. */
  readonly dense?: (layer: number) => boolean;
}

/** Experts in all layers but the first few, Llama otherwise. */
function withExperts(model: Model, options: Options): Step[] {
  const { keys, nLayers } = model;
  const { act = "silu", norm = "rms", scaled = false } = options;
  const rope = ropeOf(model, { style: options.rope });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const isDense = options.dense ?? ((layer: number) => layer < leading);
  const routing = options.routing ?? routingOf(model);
  return decoder(model, {
    norm,
    block: (layer) =>
      sequentialBlock(model, layer, {
        ...options,
        norm,
        attention: attention(model, layer, {
          rope,
          qkNorm: norm,
          ...(options.normLast && { normLast: true }),
          ...(options.bareResult && { bareResult: true }),
          ...(options.clamp !== undefined && { clamp: options.clamp }),
        }),
        ffn: isDense(layer)
          ? feedForward(model, layer, { act })
          : moe(model, layer, {
              act,
              scaled,
              normalize: options.normalize ?? keys.flag("expert_weights_norm", false),
              ...(routing && { routing }),
            }),
      }),
  });
}

/** `expert_gating_func` of llama.cpp: 1 softmax, 2 sigmoid, 3 softmax of the chosen. */
const SCORES = [undefined, "softmax", "sigmoid", "softmax_chosen"] as const;

/** How the file says that experts are scored; undefined for softmax over all. */
export function routingOf(model: Model, fallback: Routing["score"] = "softmax"): Routing | undefined {
  const { keys, path, nExperts } = model;
  const code = keys.count("expert_gating_func", { min: 0, max: 255, fallback: 0 });
  if (code >= SCORES.length) {
    const expected = "a whole number of 0 … 3";
    throw new AppError("unsupported", `${path}: '${keys.arch}.expert_gating_func': expected ${expected}, got ${code}`);
  }
  const score = SCORES[code] ?? fallback;
  const count = keys.count("expert_group_count", { min: 0, max: nExperts, fallback: 0 });
  const used = keys.count("expert_group_used_count", { min: 0, max: nExperts, fallback: 0 });
  const groups = count > 1 && used > 0 && used < count ? { groups: { count, used } } : {};
  return score === "softmax" && count <= 1 ? undefined : { score, ...groups };
}

export const bailingmoe2 = (model: Model): Step[] => withExperts(model, { rope: "neox" });
export const dots1 = (model: Model): Step[] => withExperts(model, { rope: "neox" });
export const glm4moe = (model: Model): Step[] => withExperts(model, { rope: "neox", ffnNorm: "post_attention_norm" });
export const hunyuanMoe = (model: Model): Step[] =>
  withExperts(model, { rope: "neox", normLast: true, normalize: true });
export const minimaxM2 = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: true });
export const mellum = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: true, scaled: true });
export const olmoe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: false });
export const phimoe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: true });
export const qwen2moe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: false });
export const qwen3vlmoe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: true });
/** DeepSeek of the first generation. */
export const deepseek = (model: Model): Step[] => withExperts(model, { rope: "norm", normalize: false });
/** Ling of the first generation. */
export const bailingmoe = (model: Model): Step[] => withExperts(model, { rope: "norm", dense: () => false });
/** DBRX: values limited, a layer norm without bias, and its second norm named after attention's output. */
export const dbrx = (model: Model): Step[] =>
  withExperts(model, {
    rope: "neox",
    norm: "layer",
    ffnNorm: "attn_output_norm",
    clamp: model.keys.number("attention.clamp_kqv", 0),
    normalize: true,
  });

/** ERNIE 4.5: every so many layers have experts. */
export function ernie45moe(model: Model): Step[] {
  const { keys, nLayers } = model;
  const step = keys.count("interleave_moe_layer_step", { min: 1, max: nLayers });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  return withExperts(model, {
    rope: "norm",
    bareResult: true,
    normalize: true,
    dense: (layer) => layer < leading || (layer + 1) % step !== 0,
  });
}

/** Command A with experts: attention and experts side by side; where there is a shared expert, both count half. */
export function cohere2moe(model: Model): Step[] {
  const { keys, nLayers } = model;
  const { y } = buffersOf(model);
  const norm = keys.number("attention.layer_norm_rms_epsilon", 0) === 0 ? "layer" : "rms";
  const rope = ropeOf(model, { style: "norm" });
  const windows = readWindows(keys, model, { window: 0, period: 4, fullFirst: true });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const routing = routingOf(model, "sigmoid");
  const normalize = keys.flag("expert_weights_norm", false);
  const experts = { act: "silu", normalize, scaled: true, sharedScaled: true, ...(routing && { routing }) } as const;
  const ffn = (layer: number): Step[] => {
    if (!model.has(`blk.${layer}.ffn_gate_inp.weight`)) return feedForward(model, layer, { act: "silu", scaled: true });
    const halves = model.has(`blk.${layer}.ffn_up_shexp.weight`);
    return [...moe(model, layer, experts), ...(halves ? [{ op: "scale", x: y, by: 0.5 } as const] : [])];
  };
  return decoder(model, {
    norm,
    logitScale: keys.number("logit_scale", 0) || 1,
    block: (layer) => {
      const window = windows[layer]!;
      const turns = window > 0 || layer < leading;
      return parallelBlock(model, layer, {
        norm,
        attention: attention(model, layer, { rope: turns ? rope : undefined, window }),
        ffn: ffn(layer),
      });
    },
  });
}

/** gpt-oss: every other layer has a window, each head a sink, and an expert's gate and up are limited. */
export function gptOss(model: Model): Step[] {
  const { keys } = model;
  const rope = ropeOf(model, { style: "neox" });
  const windows = readWindows(keys, model, { window: 0, period: 2 });
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        ffnNorm: "post_attention_norm",
        attention: attention(model, layer, { rope, window: windows[layer]! }),
        ffn: moe(model, layer, { act: "swiglu_oai", normalize: false, routing: { score: "softmax_chosen" } }),
      }),
  });
}
