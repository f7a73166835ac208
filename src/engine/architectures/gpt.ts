/**
 * Architectures in the line of GPT-2 and GPT-J: layer norms with biases, and often attention and MLP in parallel.
 * Semantics: the files of the same names in llama.cpp's src/models, which take the tanh form of GELU also in Falcon,
 * GPT-NeoX and MPT: these were trained with the exact one.
 */
import type { Step } from "../program/step.ts";
import { normSteps } from "./decoder.ts";
import { activationOf } from "./encoders.ts";
import { readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

const ALIBI = 8;

export const starcoder2 = (model: Model): Step[] => sequential(model, { rope: "neox", norm: "layer", act: "gelu" });
export const codeshell = (model: Model): Step[] => sequential(model, { rope: "neox", norm: "layer", act: "gelu" });
export const nemotron = (model: Model): Step[] => sequential(model, { rope: "neox", norm: "layer", act: "relu_sqr" });

/** GPT-2 and StarCoder: learned positions. */
export const gpt2 = (model: Model): Step[] =>
  sequential(model, { rope: null, norm: "layer", act: "gelu", start: learnedPositions(model) });

/** BLOOM: normed embeddings and ALiBi. */
export function bloom(model: Model): Step[] {
  const { x } = buffersOf(model);
  const start = normSteps(model, "layer", { out: x, x, name: "token_embd_norm" });
  const alibi = model.keys.number("attention.max_alibi_bias", 0) || ALIBI;
  return sequential(model, { rope: null, norm: "layer", act: "gelu", alibi, start });
}

export function mpt(model: Model): Step[] {
  const { keys } = model;
  const alibi = keys.number("attention.max_alibi_bias", 0);
  return sequential(model, {
    rope: null,
    norm: "layer",
    act: "gelu_erf",
    clamp: keys.number("attention.clamp_kqv", 0),
    ...(alibi > 0 && { alibi }),
    ...(model.has("position_embd.weight") && { start: learnedPositions(model) }),
  });
}

/** Jais: a gated MLP, and scores divided by the head size. */
export function jais(model: Model): Step[] {
  const alibi = model.keys.number("attention.max_alibi_bias", 0);
  return sequential(model, { rope: null, norm: "layer", scale: 1 / model.headDim, ...(alibi > 0 && { alibi }) });
}

/** Falcon; the 40 B model has a separate norm for attention's input. */
export function falcon(model: Model): Step[] {
  const norms = model.has("blk.0.attn_norm_2.weight") && { attnNorm: "attn_norm_2", ffnNorm: "attn_norm" };
  return sequential(model, { rope: "neox", norm: "layer", act: "gelu_erf", parallel: true, ...norms });
}

export function gptneox(model: Model): Step[] {
  const parallel = model.keys.flag("use_parallel_residual", true);
  return sequential(model, { rope: "neox", norm: "layer", act: activationOf(model), parallel, ffnNorm: "ffn_norm" });
}

export const phi2 = (model: Model): Step[] =>
  sequential(model, { rope: "neox", norm: "layer", act: "gelu", parallel: true });

/** StableLM; without its own norm, the MLP shares attention's input. */
export const stablelm = (model: Model): Step[] =>
  sequential(model, {
    rope: "neox",
    norm: "layer",
    parallel: (layer) => !model.has(`blk.${layer}.ffn_norm.weight`),
  });

export const commandR = (model: Model): Step[] => cohere(model, { slides: false });

/** Command R7B and A: three of four layers have a window, and only those use RoPE. */
export const cohere2 = (model: Model): Step[] => cohere(model, { slides: true });

function cohere(model: Model, { slides }: { slides: boolean }): Step[] {
  const { keys } = model;
  const rope = ropeOf(model, { style: "norm" });
  const windows = slides ? readWindows(keys, model, { window: 0, period: 4 }) : [];
  return sequential(model, {
    ...(slides ? { rope: null, local: rope } : { rope }),
    windows,
    norm: "layer",
    parallel: true,
    logitScale: keys.number("logit_scale", 0) || 1,
  });
}

export function learnedPositions(model: Model): Step[] {
  const table = model.matrix("position_embd", { inDim: model.dim, outDim: model.ctxLen });
  return [{ op: "addPosition", x: buffersOf(model).x, table }];
}
