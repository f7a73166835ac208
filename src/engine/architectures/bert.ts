/**
 * Encoders of the BERT family: learned positions and a plain MLP (`bert`), RoPE (`nomic-bert`, `jina-bert-v3`) or ALiBi
 * (`jina-bert-v2`). Norms come after each block, and there is no output vocabulary. Semantics: src/models/bert.cpp of
 * llama.cpp, except for GELU, which is the exact one, as in the models' own code; llama.cpp takes the tanh form.
 */
import type { Buf, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { feedForward, moe, normSteps } from "./decoder.ts";
import { attnOutput, buffersOf, embedding, layerNorm, mlp, plainMlp, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

/** Limit of Jina 2's slopes. No GGUF key has it. */
const ALIBI = 8;

/** The differences within the family. */
interface Parts {
  /** Steps on the embedding before its norm; default none. */
  readonly start?: readonly Step[];
  /** Steps on query and key of each layer; default none. */
  readonly heads?: (layer: number) => readonly Step[];
  /** Limit of ALiBi's slopes. */
  readonly alibi?: number;
  readonly mlp: (layer: number) => Step | Step[];
}

export function bert(model: Model): Step[] {
  const { dim, ctxLen } = model;
  const { x, y } = buffersOf(model);
  const positions = model.matrix("position_embd", { inDim: dim, outDim: ctxLen });
  return encoder(model, {
    start: [{ op: "addPosition", x, table: positions }],
    mlp: (layer) => ({ op: "mlp", out: y, x, ...plainMlp(model, layer), act: "gelu_erf" }),
  });
}

export function nomicBert(model: Model): Step[] {
  const { x, y } = buffersOf(model);
  const turns = rotation(model);
  return encoder(model, {
    heads: () => turns,
    mlp: (layer) => ({ op: "gatedMlp", out: y, x, ...mlp(model, layer), act: "silu" }),
  });
}

/** Nomic Embed 2: every n-th layer has experts, whose MLPs have no gate. */
export function nomicBertMoe(model: Model): Step[] {
  const { keys, nLayers } = model;
  const { x, y } = buffersOf(model);
  const turns = rotation(model);
  const every = keys.count("moe_every_n_layers", { min: 0, max: nLayers, fallback: 0 });
  return encoder(model, {
    heads: () => turns,
    mlp: (layer) =>
      every > 0 && layer % every === 1
        ? moe(model, layer, { act: "gelu_erf", normalize: false, from: x })
        : { op: "mlp", out: y, x, ...plainMlp(model, layer), act: "gelu_erf" },
  });
}

/** RoPE on query and key. */
function rotation(model: Model): Step[] {
  const { nHeads: heads, headDim } = model;
  const { q, k } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  return [q, k].map((x) => ({ op: "rope", x, heads, headDim, rope }));
}

/** Jina Embeddings 3: BERT without learned positions. */
export function jinaBertV3(model: Model): Step[] {
  const { x, y } = buffersOf(model);
  const turns = rotation(model);
  return encoder(model, {
    heads: () => turns,
    mlp: (layer) => ({ op: "mlp", out: y, x, ...plainMlp(model, layer), act: "gelu_erf" }),
  });
}

/** Jina Embeddings 2: some models have QK-norm and a second norm after attention. */
export function jinaBertV2(model: Model): Step[] {
  const { x, q, k } = buffersOf(model);
  return encoder(model, {
    alibi: ALIBI,
    heads: (layer) => [
      ...rowNorm(model, q, `blk.${layer}.attn_q_norm`),
      ...rowNorm(model, k, `blk.${layer}.attn_k_norm`),
    ],
    mlp: (layer) => feedForward(model, layer, { act: "gelu_erf", from: x }),
  });
}

/** A norm over all heads together, if the file has its weight. */
function rowNorm(model: Model, x: Buf, name: string): Step[] {
  return model.has(`${name}.weight`) ? normSteps(model, "layer", { out: x, x, name }) : [];
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
  const slopes = parts.alibi === undefined ? {} : { alibi: parts.alibi };
  const steps: Step[] = [
    { op: "embed", out: x, table: embedding(model), scale: 1 },
    ...tokenTypes(model),
    ...(parts.start ?? []),
    { op: "layerNorm", out: x, x, ...layerNorm(model, "token_embd_norm") },
  ];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    steps.push(
      { op: "linear", out: q, x, ...w.q },
      { op: "linear", out: k, x, ...w.k },
      { op: "linear", out: v, x, ...w.v },
      ...(parts.heads?.(layer) ?? []),
      { op: "bidirectionalAttention", out: heads, q, k, v, nHeads, headDim, scale, ...slopes },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
      ...joined(model, layer),
      ...[parts.mlp(layer)].flat(),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "layerNorm", out: x, x, ...layerNorm(model, `${blk}.layer_output_norm`) },
    );
  }
  return [...steps, { op: "takeRows", out: last, x }];
}

/** x = norm(x + y); with a second norm in the layer, x = norm2(norm(x + y) + x). */
function joined(model: Model, layer: number): Step[] {
  const { x, y, h } = buffersOf(model);
  const first = layerNorm(model, `blk.${layer}.attn_output_norm`);
  if (!model.has(`blk.${layer}.attn_norm_2.weight`)) {
    return [
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "layerNorm", out: x, x, ...first },
    ];
  }
  return [
    { op: "add", out: h, a: x, b: y, scale: 1 },
    { op: "layerNorm", out: h, x: h, ...first },
    { op: "add", out: x, a: h, b: x, scale: 1 },
    { op: "layerNorm", out: x, x, ...layerNorm(model, `blk.${layer}.attn_norm_2`) },
  ];
}

/** Every token has the first type: texts are not given in pairs. */
function tokenTypes(model: Model): Step[] {
  const outDim = model.rows("token_types");
  if (outDim === undefined) return [];
  const types = model.matrix("token_types", { inDim: model.dim, outDim });
  return [{ op: "addVector", x: buffersOf(model).x, w: { ...types, outDim: 1 } }];
}
