/**
 * BERT and its kin, which read a text at once and embed it: learned positions and a plain MLP (`bert`), or rotations
 * and a gated one (`nomic-bert`). Norms come after each block, and there is no output vocabulary. Meaning:
 * src/models/bert.cpp of llama.cpp.
 */
import type { Step } from "../backend/step.ts";
import { AppError } from "../base/errors.ts";
import { moe } from "./decoder.ts";
import { attnOutput, buffersOf, embedding, layerNorm, mlp, plainMlp, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

/** Where the two differ. */
interface Parts {
  /** What is done to the embedding before its norm. */
  readonly start: readonly Step[];
  /** What is done to query and key of each layer. */
  readonly rotation: readonly Step[];
  readonly mlp: (layer: number) => Step | Step[];
}

export function bert(model: Model): Step[] {
  const { dim, ctxLen } = model;
  const { x, y } = buffersOf(model);
  const positions = model.matrix("position_embd", { inDim: dim, outDim: ctxLen });
  return encoder(model, {
    start: [{ op: "addPosition", x, table: positions }],
    rotation: [],
    mlp: (layer) => ({ op: "mlp", out: y, x, ...plainMlp(model, layer, { scaled: true }), act: "gelu" }),
  });
}

export function nomicBert(model: Model): Step[] {
  const { nHeads: heads, headDim } = model;
  const { q, k, x, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  return encoder(model, {
    start: [],
    rotation: [q, k].map((each) => ({ op: "rope", x: each, heads, headDim, rope })),
    mlp: (layer) => ({ op: "gatedMlp", out: y, x, ...mlp(model, layer), act: "silu" }),
  });
}

/** Nomic Embed 2: of every so many layers one has experts, which are no gated MLPs. */
export function nomicBertMoe(model: Model): Step[] {
  const { nHeads: heads, headDim, keys, nLayers } = model;
  const { q, k, x, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const every = keys.count("moe_every_n_layers", { min: 0, max: nLayers, fallback: 0 });
  return encoder(model, {
    start: [],
    rotation: [q, k].map((each) => ({ op: "rope", x: each, heads, headDim, rope })),
    mlp: (layer) =>
      every > 0 && layer % every === 1
        ? moe(model, layer, { act: "gelu", normalize: false, from: x })
        : { op: "mlp", out: y, x, ...plainMlp(model, layer, { scaled: true }), act: "gelu" },
  });
}

function encoder(model: Model, parts: Parts): Step[] {
  const { nLayers, nHeads, nKvHeads, headDim, path, keys } = model;
  if (nKvHeads !== nHeads) {
    const expected = `attention.head_count, ${nHeads}`;
    throw new AppError(
      "unsupported",
      `${path}: '${keys.arch}.attention.head_count_kv': expected ${expected}, got ${nKvHeads}`,
    );
  }
  const { x, q, k, v, heads, y, last } = buffersOf(model);
  const scale = 1 / Math.sqrt(headDim);
  const steps: Step[] = [
    { op: "embed", out: x, table: embedding(model), scale: 1 },
    ...tokenTypes(model),
    ...parts.start,
    { op: "layerNorm", out: x, x, ...layerNorm(model, "token_embd_norm") },
  ];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    steps.push(
      { op: "linear", out: q, x, ...w.q },
      { op: "linear", out: k, x, ...w.k },
      { op: "linear", out: v, x, ...w.v },
      ...parts.rotation,
      { op: "bidirectionalAttention", out: heads, q, k, v, nHeads, headDim, scale },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "layerNorm", out: x, x, ...layerNorm(model, `${blk}.attn_output_norm`) },
      ...[parts.mlp(layer)].flat(),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "layerNorm", out: x, x, ...layerNorm(model, `${blk}.layer_output_norm`) },
    );
  }
  return [...steps, { op: "takeRows", out: last, x }];
}

/** Every token is of the first type: texts are not given in pairs. */
function tokenTypes(model: Model): Step[] {
  const outDim = model.rows("token_types");
  if (outDim === undefined) return [];
  const types = model.matrix("token_types", { inDim: model.dim, outDim });
  return [{ op: "addVector", x: buffersOf(model).x, w: { ...types, outDim: 1 } }];
}
