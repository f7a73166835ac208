/**
 * Tiny diffusion models, as in families.ts. Their masks have far smaller logits than all other tokens, so that no
 * random choice is a mask: the stream has a part that no layer changes, which only the mask's logit reads.
 */
import type { WriteModel } from "../../../src/engine/formats/files/write.ts";
import { buildFamily } from "./families.ts";
import {
  attention,
  biases,
  DIM,
  each,
  experts,
  f32,
  headNorms,
  heads,
  mlp,
  moe,
  norms,
  u32,
  VOCAB,
  type Family,
} from "./family-parts.ts";
import { vocabulary } from "./models.ts";

export const MASK = VOCAB - 1;
export const PROMPT: Int32Array = Int32Array.from({ length: 12 }, (_, i) => (i * 23 + 7) % (VOCAB - 1));
/** Tokens of prompt and answer in the recorded answers. */
export const ANSWERED = 64;

const common = norms("attn_norm", "ffn_norm");

const models: Readonly<Record<string, Family>> = {
  llada: {
    arch: "llada",
    keys: heads(4, 4),
    shapes: { output: [DIM, VOCAB] },
    layers: each(3, () => ({ ...common, ...attention(4, 4), ...mlp() })),
  },
  "llada-moe": {
    arch: "llada-moe",
    keys: { ...heads(4, 4), ...experts },
    shapes: { output: [DIM, VOCAB] },
    layers: each(3, () => ({ ...common, ...attention(4, 4), ...headNorms(), ...moe() })),
  },
  dream: {
    arch: "dream",
    keys: { ...heads(4, 2), "rope.freq_base": f32(1e6) },
    shapes: { output: [DIM, VOCAB] },
    layers: each(3, () => ({ ...common, ...biases(attention(), "attn_q", "attn_k", "attn_v"), ...mlp() })),
  },
  rnd1: {
    arch: "rnd1",
    keys: { ...heads(4, 2), ...experts, "rope.freq_base": f32(1e6) },
    shapes: { output: [DIM, VOCAB] },
    layers: each(3, () => ({ ...common, ...attention(), ...headNorms(), ...moe() })),
  },
};

export const diffusionNames: readonly string[] = Object.keys(models);

export function makeDiffusionModel(name: string): WriteModel {
  const { metadata, tensors } = buildFamily(name, models[name]!, vocabulary());
  for (const { name: tensor, data } of tensors)
    steady(tensor, new Float32Array((data as Uint8Array<ArrayBuffer>).buffer));
  return {
    tensors,
    metadata: {
      ...metadata,
      [`${models[name]!.arch}.attention.causal`]: false,
      "tokenizer.ggml.mask_token_id": u32(MASK),
      ...(name.startsWith("llada") && { "diffusion.shift_logits": false }),
    },
  };
}

/** Keeps the first value of the stream the same in all rows, and lets it lower the mask's logit. */
function steady(name: string, values: Float32Array): void {
  if (name === "token_embd.weight") for (let at = 0; at < values.length; at += DIM) values[at] = 3;
  if (name === "output.weight") {
    for (let at = 0; at < values.length; at += DIM) values[at] = 0;
    values.fill(0, MASK * DIM).fill(-20, MASK * DIM, MASK * DIM + 1);
  }
  if (name.endsWith("attn_output.weight")) values.fill(0, 0, values.length / DIM);
  if (!/ffn_down(_exps)?\.weight$/.test(name)) return;
  const experts = name.includes("exps") ? 4 : 1;
  const size = values.length / experts;
  for (let at = 0; at < values.length; at += size) values.fill(0, at, at + size / DIM);
}
