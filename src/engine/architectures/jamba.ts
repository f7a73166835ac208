/**
 * Jamba: layers without key heads are Mamba 1 with norms on time steps, B and C; the others are attention without RoPE.
 * Some layers have experts. Semantics: src/models/jamba.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { readLayers } from "./hparams.ts";
import { mamba1Block } from "./mamba.ts";
import { attnOutput, buffersOf, embedding, experts, mlp, output, qkv, type Model } from "./model.ts";

export function jamba(model: Model): Step[] {
  const { dim, nLayers, nHeads, headDim, eps, keys } = model;
  const { x, h, q, heads, y, last, logits } = buffersOf(model);
  const { kvHeads } = readLayers(keys, model);
  const scale = 1 / Math.sqrt(headDim);
  const attend = (layer: number, nKvHeads: number): Step[] => {
    const w = qkv(model, layer, { nKvHeads });
    const [k, v] = [
      { name: "k", dim: nKvHeads * headDim },
      { name: "v", dim: nKvHeads * headDim },
    ];
    const shape = { layer, nHeads, nKvHeads, headDim, scale, window: 0, softCap: 0, rope: undefined };
    return [
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "attention", out: heads, q, k, v, ...shape },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
    ];
  };
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: 1 }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const nKvHeads = kvHeads[layer]!;
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      ...(nKvHeads === 0 ? mamba1Block(model, layer, { x: h, out: y }) : attend(layer, nKvHeads)),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.ffn_norm`, dim), eps },
      model.has(`${blk}.ffn_gate_inp.weight`)
        ? { op: "moe", out: y, x: h, ...experts(model, layer), act: "silu", normalize: false }
        : { op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "silu" },
      { op: "add", out: x, a: x, b: y, scale: 1 },
    );
  }
  return [
    ...steps,
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector("output_norm", dim), eps },
    { op: "linear", out: logits, x: last, ...output(model) },
  ];
}
