/**
 * Encoders with a decoder's structure: norms before each block, RoPE, gated MLPs, a final norm. Semantics: the files of
 * the same names in llama.cpp's src/models.
 */
import type { Activation, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, normSteps, sequentialBlock } from "./decoder.ts";
import { readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { localRope, ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

/** Spellings of the activation in files. llama.cpp takes the tanh form for the exact GELU. */
const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  gelu: "gelu_erf",
  geglu: "gelu_erf",
  gelu_new: "gelu",
  gelu_fast: "gelu",
  gelu_pytorch_tanh: "gelu",
  silu: "silu",
  swish: "silu",
  swiglu: "silu",
};

/** The activation that the file names; default: the exact GELU. Throws `unsupported` for an unknown one. */
export function activationOf({ keys, path }: Model): Activation {
  const said = keys.text("hidden_activation", "gelu");
  const act = Object.hasOwn(ACTIVATIONS, said) ? ACTIVATIONS[said] : undefined;
  if (act) return act;
  const expected = `one of ${Object.keys(ACTIVATIONS).join(", ")}`;
  throw new AppError("unsupported", `${path}: '${keys.arch}.hidden_activation': expected ${expected}, got '${said}'`);
}

/** ModernBERT: one layer of full attention, then two with a window and a separate RoPE base. */
export function modernBert(model: Model): Step[] {
  const { keys } = model;
  const { x } = buffersOf(model);
  const full = ropeOf(model, { style: "neox", factors: false });
  const local = localRope(model, full, { base: keys.number("rope.freq_base_swa", 10_000) });
  const slides = keys.number("attention.sliding_window", 0) > 0;
  const windows = slides ? readWindows(keys, model, { window: 0, period: 3, fullFirst: true }) : [];
  const act = activationOf(model);
  return decoder(model, {
    norm: "layer",
    start: normSteps(model, "layer", { out: x, x, name: "token_embd_norm" }),
    encoder: [],
    block: (layer) => {
      const window = windows[layer] ?? 0;
      // The first layer reads the embeddings after their norm
      const isNormed = model.has(`blk.${layer}.attn_norm.weight`);
      return sequentialBlock(model, layer, {
        norm: "layer",
        attnNorm: isNormed ? "attn_norm" : null,
        attention: attention(model, layer, {
          ...(isNormed ? {} : { from: x }),
          rope: window > 0 ? local : full,
          window,
          bidirectional: true,
          bareResult: true,
        }),
        ffn: feedForward(model, layer, { act }),
      });
    },
  });
}

export const euroBert = (model: Model): Step[] => plain(model, { style: "neox", outputNorm: "output_norm" });
export const neoBert = (model: Model): Step[] => plain(model, { style: "norm", outputNorm: "enc.output_norm" });

function plain(model: Model, { style, outputNorm }: { style: "neox" | "norm"; outputNorm: string }): Step[] {
  const rope = ropeOf(model, { style, factors: false });
  return sequential(model, { rope, outputNorm, encoder: [], bidirectional: true, bareResult: true });
}
