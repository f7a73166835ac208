/**
 * Granite 4: Granite whose layers without key heads are Mamba 2. Semantics: src/models/granite-hybrid.cpp of llama.cpp.
 */
import type { Buf, Step } from "../program/step.ts";
import { readLayers, sharedFfnDim } from "./hparams.ts";
import { mamba2Block } from "./mamba.ts";
import { attnOutput, buffersOf, embedding, experts, mlp, output, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function graniteHybrid(model: Model): Step[] {
  const { dim, nLayers, eps, keys } = model;
  const { x, h, y, last, logits } = buffersOf(model);
  const { kvHeads } = readLayers(keys, model);
  const residual = keys.number("residual_scale", 0) || 1;
  const logitScale = keys.number("logit_scale", 0);
  const attend = attention(model);
  const steps: Step[] = [
    { op: "embed", out: x, table: embedding(model), scale: keys.number("embedding_scale", 0) || 1 },
  ];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const nKvHeads = kvHeads[layer]!;
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      ...(nKvHeads === 0 ? mamba2Block(model, layer, { x: h, out: y }) : attend(layer, nKvHeads)),
      { op: "add", out: x, a: x, b: y, scale: residual },
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.ffn_norm`, dim), eps },
      ...feedForward(model, layer),
      { op: "add", out: x, a: x, b: y, scale: residual },
    );
  }
  steps.push(
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector("output_norm", dim), eps },
    { op: "linear", out: logits, x: last, ...output(model) },
  );
  if (logitScale !== 0) steps.push({ op: "scale", x: logits, by: 1 / logitScale });
  return steps;
}

function attention(model: Model): (layer: number, nKvHeads: number) => Step[] {
  const { nHeads, headDim, keys } = model;
  const { h, q, heads, y } = buffersOf(model);
  const rope = keys.flag("rope.scaling.finetuned", true) ? ropeOf(model, { style: "norm" }) : undefined;
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  return (layer, nKvHeads) => {
    const w = qkv(model, layer, { nKvHeads });
    const [k, v] = [
      { name: "k", dim: nKvHeads * headDim },
      { name: "v", dim: nKvHeads * headDim },
    ];
    const turn = (x: Buf, count: number): Step[] => (rope ? [{ op: "rope", x, heads: count, headDim, rope }] : []);
    return [
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      ...turn(q, nHeads),
      ...turn(k, nKvHeads),
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window: 0, softCap: 0, rope },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
    ];
  };
}

/** The MLP of h to y, or experts, with a shared expert if the file has one. */
function feedForward(model: Model, layer: number): Step[] {
  const { dim, nExperts, keys } = model;
  const { h, y } = buffersOf(model);
  if (nExperts === 0) return [{ op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "silu" }];
  const ffnDim = sharedFfnDim(keys);
  const shared = { name: "shared", dim };
  const chosen: Step = { op: "moe", out: y, x: h, ...experts(model, layer), act: "silu", normalize: true };
  if (ffnDim === 0) return [chosen];
  return [
    chosen,
    { op: "gatedMlp", out: shared, x: h, ...mlp(model, layer, { ffnDim, shared: true }), act: "silu" },
    { op: "add", out: y, a: y, b: shared, scale: 1 },
  ];
}
