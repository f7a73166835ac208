/**
 * Granite 3 and 4, dense or with experts (`granitemoe`, optionally with a shared expert): Llama with scaled embeddings,
 * residuals, attention and logits. Semantics: src/models/granite.cpp and granite-swa.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { feedForward, moe } from "./decoder.ts";
import { readWindows, sharedFfnDim } from "./hparams.ts";
import { buffersOf, mlp, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

export const granite = (model: Model): Step[] =>
  // this key marks a file that was trained without positions
  layers(model, { windows: [], turns: () => model.keys.flag("rope.scaling.finetuned", true) });

/** Granite 3 with experts: always uses RoPE, even if that key says otherwise, as in llama.cpp. */
export const graniteMoe = (model: Model): Step[] => layers(model, { windows: [], turns: () => true });

/** Granite 4.1: some layers have a window, and some have no RoPE. */
export function graniteSwa(model: Model): Step[] {
  const { keys } = model;
  const pattern = keys.find("attention.rope_pattern");
  return layers(model, {
    windows: readWindows(keys, model, { window: 0, period: 0 }),
    turns: (layer) => typeof pattern !== "object" || Boolean(pattern[layer]),
  });
}

interface Options {
  /** Window of each layer; 0 for global layers. */
  readonly windows: readonly number[];
  readonly turns: (layer: number) => boolean;
}

function layers(model: Model, { windows, turns }: Options): Step[] {
  const { keys, nExperts } = model;
  const rope = ropeOf(model, { style: "norm" });
  const residualScale = keys.number("residual_scale", 0) || 1;
  const sharedDim = nExperts > 0 ? sharedFfnDim(keys) : 0;
  const { x, h } = buffersOf(model);
  /** The shared expert is added first, so that a GPU computes it in the experts' dispatches. */
  const shared = (layer: number): Step[] => {
    if (sharedDim === 0) return [];
    const out = { name: "shared", dim: x.dim };
    return [
      { op: "gatedMlp", out, x: h, ...mlp(model, layer, { ffnDim: sharedDim, shared: true }), act: "silu" },
      { op: "add", out: x, a: x, b: out, scale: residualScale },
    ];
  };
  return sequential(model, {
    rope,
    windows,
    embeddingScale: keys.number("embedding_scale", 0) || 1,
    logitScale: 1 / keys.number("logit_scale"),
    residualScale,
    perLayer: (layer) => (turns(layer) ? {} : { rope: undefined }),
    ffn: (layer) =>
      nExperts > 0
        ? [...shared(layer), ...moe(model, layer, { act: "silu", normalize: true, sharedDim: 0 })]
        : feedForward(model, layer, { act: "silu" }),
  });
}
