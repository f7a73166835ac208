/**
 * Decoders with experts, a few lines each: their attention, routing and dense layers. Semantics: the files of the same
 * names in llama.cpp's src/models.
 */
import type { GateLimit, Routing, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, moe, moeOrFeedForward, normSteps, type Frame } from "./decoder.ts";
import { readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { localRope, ropeOf, windowRope } from "./rope.ts";
import { sequential, type Options } from "./sequential.ts";

interface ExpertOptions extends Options {
  /** Divides the weights of chosen experts by their sum; default: by the file. */
  readonly normalize?: boolean;
  readonly routing?: Routing;
  /** Returns whether a layer is dense; default: the file's number of leading dense layers, or 0. */
  readonly dense?: (layer: number) => boolean;
}

/** Experts in all layers except the first few, otherwise Llama. */
export function withExperts(model: Model, options: ExpertOptions, frame = decoder): Step[] {
  const { keys, nLayers } = model;
  const { act = "silu" } = options;
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const isDense = options.dense ?? ((layer: number) => layer < leading);
  const routing = options.routing ?? routingOf(model);
  return sequential(model, {
    ...options,
    frame,
    ffn: (layer) =>
      isDense(layer)
        ? feedForward(model, layer, { act })
        : moe(model, layer, {
            act,
            normalize: options.normalize ?? keys.flag("expert_weights_norm", false),
            routing,
          }),
  });
}

/** `expert_gating_func` of llama.cpp, from 1 on. */
const SCORES = [undefined, "softmax", "sigmoid", "softmax_chosen", "sqrt_softplus"] as const;

/** The routing score of the file; undefined for softmax over all. */
export function routingOf(model: Model, fallback: Routing["score"] = "softmax"): Routing | undefined {
  const { keys, path, nExperts } = model;
  const code = keys.count("expert_gating_func", { min: 0, max: 255, fallback: 0 });
  if (code >= SCORES.length) {
    const expected = `a whole number of 0 … ${SCORES.length - 1}`;
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
export const glm4moe = (model: Model, frame?: Frame): Step[] =>
  withExperts(model, { rope: "neox", ffnNorm: "post_attention_norm" }, frame);
export const hunyuanMoe = (model: Model): Step[] =>
  withExperts(model, { rope: "neox", normLast: true, normalize: true });
export const minimaxM2 = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: true });
export const olmoe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: false });
export const phimoe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: true });
export const qwen2moe = (model: Model): Step[] => withExperts(model, { rope: "neox", normalize: false });
export const qwen3moe = (model: Model): Step[] =>
  withExperts(model, { rope: "neox", normalize: true, needsQkNorm: true });
export const qwen3vlmoe = (model: Model): Step[] =>
  withExperts(model, { rope: "neox", sections: "interleaved", normalize: true });
/** The first generation of DeepSeek. */
export const deepseek = (model: Model): Step[] => withExperts(model, { rope: "norm", normalize: false });
/** The first generation of Ling. */
export const bailingmoe = (model: Model): Step[] => withExperts(model, { rope: "norm", dense: () => false });
/** DBRX: clamped values, layer norms without bias, and a second norm named after attention's output. */
export const dbrx = (model: Model): Step[] =>
  withExperts(model, {
    rope: "neox",
    norm: "layer",
    ffnNorm: "attn_output_norm",
    clamp: model.keys.number("attention.clamp_kqv", 0),
    normalize: true,
  });

/** ERNIE 4.5: every n-th layer has experts. */
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

/** Command A with experts: attention and experts in parallel; with a shared expert, both count half. */
export function cohere2moe(model: Model): Step[] {
  const { keys, nLayers } = model;
  const { y } = buffersOf(model);
  const norm = keys.number("attention.layer_norm_rms_epsilon", 0) === 0 ? "layer" : "rms";
  const rope = ropeOf(model, { style: "norm" });
  const windows = readWindows(keys, model, { window: 0, period: 4, fullFirst: true });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const routing = routingOf(model, "sigmoid");
  const normalize = keys.flag("expert_weights_norm", false);
  const experts = { act: "silu", normalize, routing } as const;
  const ffn = (layer: number): Step[] => {
    if (!model.has(`blk.${layer}.ffn_gate_inp.weight`)) return feedForward(model, layer, { act: "silu" });
    const halves = model.has(`blk.${layer}.ffn_up_shexp.weight`);
    return [...moe(model, layer, experts), ...(halves ? [{ op: "scale", x: y, by: 0.5 } as const] : [])];
  };
  return sequential(model, {
    rope: null,
    local: rope,
    windows,
    norm,
    parallel: true,
    logitScale: keys.number("logit_scale", 0) || 1,
    perLayer: (layer) => ({ qkNorm: "rms", ...(layer < leading && { rope }) }),
    ffn,
  });
}

/** K-EXAONE: three of four layers have a window, and only those use RoPE. */
export function exaoneMoe(model: Model): Step[] {
  const { keys } = model;
  const rope = ropeOf(model, { style: "neox" });
  const windows = readWindows(keys, model, { window: 128, period: 4 });
  const routing = routingOf(model);
  const normalize = keys.flag("expert_weights_norm", false);
  return sequential(model, {
    rope: null,
    local: rope,
    windows,
    ffn: (layer) => moeOrFeedForward(model, layer, { act: "silu", normalize, routing }),
  });
}

/** Mellum 2: three of four layers have a window, and RoPE without scaling. */
export function mellum(model: Model): Step[] {
  const { keys } = model;
  const rope = ropeOf(model, { style: "neox" });
  const local = localRope(model, rope, { base: rope.base });
  const slides = keys.number("attention.sliding_window", 0) > 0;
  const windows = slides ? readWindows(keys, model, { window: 0, period: 4 }) : [];
  return sequential(model, {
    rope,
    local,
    windows,
    ffn: (layer) => moe(model, layer, { act: "silu", normalize: true }),
  });
}

/** Hunyuan 3: experts in the layers that the file gives some. */
export function hyV3(model: Model, frame = decoder): Step[] {
  const { keys } = model;
  const routing = routingOf(model, "sigmoid");
  const normalize = keys.flag("expert_weights_norm", false);
  const experts = { act: "silu", normalize, routing } as const;
  return sequential(model, { rope: "neox", frame, ffn: (layer) => moeOrFeedForward(model, layer, experts) });
}

/** Maple: layers with a window use RoPE, global layers do not; an expert's gate and up are limited. */
export function maple(model: Model): Step[] {
  const { keys } = model;
  const rope = windowRope(model, ropeOf(model, { style: "neox" }));
  const windows = readWindows(keys, model, { window: 0, period: 0 });
  const limits = limitsOfGates(model);
  return sequential(model, {
    rope: null,
    local: rope,
    windows,
    ffn: (layer) => moe(model, layer, { act: "silu", normalize: true, scale: 1, limit: limits[layer] }),
  });
}

/** Smaller limits mean no limit, as in llama.cpp. */
export const LIMIT_MIN = 1e-6;

/**
 * The experts' limits by layer. Gates are limited before SiLU, which is monotonic there, so a limit after it would be
 * equivalent.
 */
export const limitsOfGates = ({ keys, nLayers }: Model, key = "swiglu_clamp_exp"): (GateLimit | undefined)[] =>
  keys.numbers(key, 0, nLayers).map((up) => (up > LIMIT_MIN ? { gate: up / (1 + Math.exp(-up)), up } : undefined));

/** SmallThinker: experts are chosen before attention, from the layer's input. */
export function smallthinker(model: Model): Step[] {
  const { keys } = model;
  const { x, h, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const slides = keys.number("attention.sliding_window", 0) > 0;
  const windows = slides ? readWindows(keys, model, { window: 0, period: 4, fullFirst: true }) : [];
  const local = windowRope(model, rope);
  const routing = routingOf(model);
  const z = { name: "z", dim: x.dim };
  return decoder(model, {
    block: (layer) => {
      const window = (windows[layer] ?? 0) > 0 ? SMALLTHINKER.window : 0;
      const turns = !slides || layer % SMALLTHINKER.noRopePeriod !== 0;
      return [
        ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.attn_norm` }),
        ...attention(model, layer, { rope: turns ? (window > 0 ? local : rope) : undefined, window }),
        { op: "add", out: z, a: x, b: y, scale: 1 },
        ...normSteps(model, "rms", { out: h, x: z, name: `blk.${layer}.ffn_norm` }),
        ...moe(model, layer, { act: "relu", normalize: true, routed: x, routing }),
        { op: "add", out: x, a: z, b: y, scale: 1 },
      ];
    },
  });
}

/** Overrides the files' values. */
const SMALLTHINKER = { window: 4096, noRopePeriod: 4 };

/** gpt-oss: every other layer has a window, each head has a sink, and an expert's gate and up are limited. */
export function gptOss(model: Model): Step[] {
  const { keys } = model;
  return sequential(model, {
    rope: "neox",
    windows: readWindows(keys, model, { window: 0, period: 2 }),
    ffnNorm: "post_attention_norm",
    ffn: (layer) => moe(model, layer, { act: "swiglu_oai", normalize: false, routing: { score: "softmax_chosen" } }),
  });
}
