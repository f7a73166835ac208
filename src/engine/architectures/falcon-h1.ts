/**
 * Falcon-H1: attention and Mamba 2 in parallel in every layer, after the same norm. Semantics: src/models/falcon-h1.cpp
 * of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { mamba2Block } from "./mamba.ts";
import { attnOutput, buffersOf, embedding, mlp, output, plainOrVector, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function falconH1(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps, keys } = model;
  const { x, h, q, k, v, heads, y, last, logits } = buffersOf(model);
  const beside = { name: "ssm.y", dim };
  const rope = ropeOf(model, { style: "neox", factors: false });
  model.values("rope_freqs", rope.rotaryDim / 2); // some files have them; the reference ignores them here
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: 1 }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    const { w: outW } = attnOutput(model, layer); // the reference omits its bias too
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window: 0, softCap: 0, rope },
      { op: "linear", out: y, x: heads, w: outW },
      ...mamba2Block(model, layer, { x: h, out: beside }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "add", out: x, a: x, b: beside, scale: 1 },
      { op: "rmsNorm", out: h, x, w: plainOrVector(model, `blk.${layer}.ffn_norm`, dim), eps },
      { op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "silu" },
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
