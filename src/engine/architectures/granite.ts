/**
 * Granite 3 and 4, dense or with experts (`granitemoe`, perhaps beside an MLP that every token passes): Llama whose
 * embeddings, residuals, attention and logits are scaled. Meaning: src/models/granite.cpp and granite-swa.cpp of
 * llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, moe, sequentialBlock } from "./decoder.ts";
import { readWindows, sharedFfnDim } from "./hparams.ts";
import { buffersOf, mlp, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export const granite = (model: Model): Step[] =>
  // A file that was trained without positions says so with this key.
  layers(model, { windows: [], turns: () => model.keys.flag("rope.scaling.finetuned", true) });

/** Granite 3 with experts: it turns always, whatever that key says, as llama.cpp does. */
export const graniteMoe = (model: Model): Step[] => layers(model, { windows: [], turns: () => true });

/** Granite 4.1: layers with a window, and some that do not turn queries and keys. */
export function graniteSwa(model: Model): Step[] {
  const { keys } = model;
  const pattern = keys.find("attention.rope_pattern");
  return layers(model, {
    windows: readWindows(keys, model, { window: 0, period: 0 }),
    turns: (layer) => typeof pattern !== "object" || Boolean(pattern[layer]),
  });
}

interface Options {
  /** Of each layer; none for layers that see everything. */
  readonly windows: readonly number[];
  readonly turns: (layer: number) => boolean;
}

function layers(model: Model, { windows, turns }: Options): Step[] {
  const { keys, nExperts, headDim } = model;
  const rope = ropeOf(model, { style: "norm" });
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  const residualScale = keys.number("residual_scale", 0) || 1;
  const sharedDim = nExperts > 0 ? sharedFfnDim(keys) : 0;
  const { x, h } = buffersOf(model);
  /** The MLP beside the experts joins the stream first, so that a GPU runs it in their dispatches. */
  const shared = (layer: number): Step[] => {
    if (sharedDim === 0) return [];
    const out = { name: "shared", dim: x.dim };
    return [
      { op: "gatedMlp", out, x: h, ...mlp(model, layer, { ffnDim: sharedDim, shared: true }), act: "silu" },
      { op: "add", out: x, a: x, b: out, scale: residualScale },
    ];
  };
  return decoder(model, {
    embeddingScale: keys.number("embedding_scale", 0) || 1,
    logitScale: 1 / keys.number("logit_scale"),
    block: (layer) =>
      sequentialBlock(model, layer, {
        residualScale,
        attention: attention(model, layer, {
          rope: turns(layer) ? rope : undefined,
          window: windows[layer] ?? 0,
          scale,
        }),
        ffn:
          nExperts > 0
            ? [...shared(layer), ...moe(model, layer, { act: "silu", normalize: true, sharedDim: 0 })]
            : feedForward(model, layer, { act: "silu" }),
      }),
  });
}
