/**
 * Granite 3, dense or with experts (`granitemoe`, perhaps beside an MLP that every token passes): Llama whose
 * embeddings, residuals, attention and logits are scaled. Meaning: src/models/granite.cpp of llama.cpp.
 */
import type { Step } from "../backend/step.ts";
import { sharedFfnDim } from "./hparams.ts";
import { attnOutput, buffersOf, embedding, experts, mlp, output, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function granite(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps, keys, nExperts } = model;
  const { x, h, q, k, v, heads, y, last, logits } = buffersOf(model);
  const shared = { name: "shared", dim };
  const sharedDim = nExperts > 0 ? sharedFfnDim(keys) : 0;
  const rope = ropeOf(model, { style: "norm" });
  // A file that was trained without positions says so with this key.
  const rotates = keys.flag("rope.scaling.finetuned", true);
  const residual = keys.number("residual_scale", 0) || 1;
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  const embeddingScale = keys.number("embedding_scale", 0) || 1;
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: embeddingScale }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
    );
    if (rotates) {
      steps.push(
        { op: "rope", x: q, heads: nHeads, headDim, rope },
        { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      );
    }
    steps.push(
      {
        op: "attention",
        out: heads,
        q,
        k,
        v,
        layer,
        nHeads,
        nKvHeads,
        headDim,
        scale,
        window: 0,
        softCap: 0,
        rope: rotates ? rope : undefined,
      },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
      { op: "add", out: x, a: x, b: y, scale: residual },
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.ffn_norm`, dim), eps },
    );
    if (sharedDim > 0) {
      steps.push(
        { op: "gatedMlp", out: shared, x: h, ...mlp(model, layer, { ffnDim: sharedDim, shared: true }), act: "silu" },
        { op: "add", out: shared, a: x, b: shared, scale: residual },
      );
    }
    steps.push(
      nExperts > 0
        ? { op: "moe", out: y, x: h, ...experts(model, layer), act: "silu", normalize: true }
        : { op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "silu" },
      { op: "add", out: x, a: sharedDim > 0 ? shared : x, b: y, scale: residual },
    );
  }
  steps.push(
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector("output_norm", dim), eps },
    { op: "linear", out: logits, x: last, ...output(model) },
    { op: "scale", x: logits, by: 1 / keys.number("logit_scale") },
  );
  return steps;
}
