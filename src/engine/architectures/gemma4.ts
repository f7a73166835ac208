/**
 * Gemma 4: window layers and global layers differ in head size, head count and RoPE; the last ones reuse the KV caches
 * of earlier ones. The 26 B model has experts parallel to each MLP; the E models have a second embedding with a part
 * per layer. Semantics: src/models/gemma4.cpp of llama.cpp.
 */
import type { Buf, Step } from "../program/step.ts";
import { decoder, moe, normSteps } from "./decoder.ts";
import { HEAD_DIM_MAX, readLayers, readWindows } from "./hparams.ts";
import { buffersOf, mlp, type Model } from "./model.ts";
import { localRope, ropeOf } from "./rope.ts";

/** The token whose row of the second embedding is used for rows without an id. */
const PADDING_TOKEN = 0;

export function gemma4(model: Model): Step[] {
  const { dim, keys } = model;
  const perLayer = perLayerInputs(model);
  const attend = attentionOf(model);
  const { x, y } = buffersOf(model);
  return decoder(model, {
    embeddingScale: Math.sqrt(dim),
    start: perLayer?.start ?? [],
    logitCap: keys.number("final_logit_softcapping", 0),
    block: (layer) => [
      ...attend(layer),
      ...normSteps(model, "rms", { out: y, x: y, name: `blk.${layer}.post_attention_norm` }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      ...feedForward(model, layer),
      ...normSteps(model, "rms", { out: y, x: y, name: `blk.${layer}.post_ffw_norm` }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      ...(perLayer?.block(layer) ?? []),
      ...outputScale(model, layer),
    ],
  });
}

/** Attention of a layer, from `x` to `y`. */
function attentionOf(model: Model): (layer: number) => Step[] {
  const { keys, nLayers, dim, eps } = model;
  const { x, h, y } = buffersOf(model);
  const windows = readWindows(keys, model, { window: 0, period: 0 });
  const { kvHeads } = readLayers(keys, model);
  const heads = keys.counts("attention.head_count", { min: 1, max: model.nHeads }, nLayers);
  const shared = keys.count("attention.shared_kv_layers", { min: 0, max: nLayers - 1, fallback: 0 });
  const full = { rope: ropeOf(model, { style: "neox" }), headDim: model.headDim };
  const sizes = { min: 2, max: HEAD_DIM_MAX, fallback: model.headDim };
  const headDimOfWindow = keys.count("attention.key_length_swa", sizes);
  const base = keys.number("rope.freq_base_swa", 10_000);
  const rotaryDim = keys.count("rope.dimension_count_swa", {
    ...sizes,
    max: headDimOfWindow,
    fallback: headDimOfWindow,
  });
  const local = { rope: localRope(model, full.rope, { base, rotaryDim }), headDim: headDimOfWindow };
  return (layer) => {
    const blk = `blk.${layer}`;
    const window = windows[layer]!;
    const { rope, headDim } = window > 0 ? local : full;
    const [nHeads, nKvHeads] = [heads[layer]!, kvHeads[layer]!];
    const sized = (name: string, count: number): Buf => ({ name: `${name}${headDim}x${count}`, dim: count * headDim });
    const [q, k, v, out] = [sized("q", nHeads), sized("k", nKvHeads), sized("v", nKvHeads), sized("heads", nHeads)];
    const project = (to: Buf, name: string): Step => {
      return { op: "linear", out: to, x: h, ...model.linear(`${blk}.${name}`, { inDim: dim, outDim: to.dim }) };
    };
    const oneWay = window === 0; // parts of an image see each other in window layers only
    const same = { out, q, layer, nHeads, nKvHeads, headDim, scale: 1, window, softCap: 0, oneWay };
    // a layer without keys reads the cache of the last layer of its kind that has keys
    const source = nLayers - shared - (window > 0 ? 2 : 1);
    const keysAndValues = (): Step[] => [
      project(k, "attn_k"),
      ...(model.has(`${blk}.attn_v.weight`) ? [project(v, "attn_v")] : []),
      { op: "bareRmsNorm", out: v, x: model.has(`${blk}.attn_v.weight`) ? v : k, run: headDim, eps },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`${blk}.attn_k_norm`, headDim), eps },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
    ];
    const isShared = layer >= nLayers - shared;
    // Some files have keys for these layers, which stay unused
    if (isShared && model.has(`${blk}.attn_k.weight`)) keysAndValues();
    return [
      ...normSteps(model, "rms", { out: h, x, name: `${blk}.attn_norm` }),
      project(q, "attn_q"),
      { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.attn_q_norm`, headDim), eps },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      ...(isShared
        ? [{ op: "sharedAttention", ...same, source } as const]
        : [...keysAndValues(), { op: "attention", ...same, k, v, rope } as const]),
      { op: "linear", out: y, x: out, ...model.linear(`${blk}.attn_output`, { inDim: out.dim, outDim: dim }) },
    ];
  };
}

/** The MLP of a layer, from `x` to `y`, with parallel experts if the layer has some. */
function feedForward(model: Model, layer: number): Step[] {
  const { dim, eps, keys } = model;
  const { x, h, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const ffnDim = readLayers(keys, model).ffnDims[layer]!;
  const dense: Step[] = [
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.ffn_norm` }),
    { op: "gatedMlp", out: y, x: h, ...mlp(model, layer, { ffnDim }), act: "gelu" },
  ];
  if (!model.has(`${blk}.ffn_gate_inp.weight`)) return dense;
  const [routed, mixed] = [
    { name: "routed", dim },
    { name: "mixed", dim },
  ];
  return [
    ...dense,
    ...normSteps(model, "rms", { out: y, x: y, name: `${blk}.post_ffw_norm_1` }),
    { op: "rmsNorm", out: routed, x, w: model.plain(`${blk}.ffn_gate_inp.scale`, { inDim: dim, outDim: 1 }), eps },
    { op: "scale", x: routed, by: 1 / Math.sqrt(dim) },
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.pre_ffw_norm_2` }),
    ...moe(model, layer, { act: "gelu", normalize: true, scale: 1, routed, out: mixed }),
    ...normSteps(model, "rms", { out: mixed, x: mixed, name: `${blk}.post_ffw_norm_2` }),
    { op: "add", out: y, a: y, b: mixed, scale: 1 },
  ];
}

/** The second embedding and each layer's use of its part; undefined if the model has none. */
function perLayerInputs(model: Model): { start: Step[]; block: (layer: number) => Step[] } | undefined {
  const { dim, keys } = model;
  const partDim = keys.count("embedding_length_per_layer_input", { min: 0, max: dim, fallback: 0 });
  if (partDim === 0) return undefined;
  const { x, y } = buffersOf(model);
  const gate = { name: "perLayer.gate", dim: partDim };
  const { start, part } = perLayerParts(model, partDim);
  const block = (layer: number): Step[] => {
    const { steps, buf } = part(layer);
    return [
      { op: "linear", out: gate, x, w: model.matrix(`blk.${layer}.inp_gate`, { inDim: dim, outDim: partDim }) },
      { op: "activate", x: gate, act: "gelu" },
      ...steps,
      { op: "multiply", out: gate, a: gate, b: buf },
      { op: "linear", out: y, x: gate, w: model.matrix(`blk.${layer}.proj`, { inDim: partDim, outDim: dim }) },
      ...normSteps(model, "rms", { out: y, x: y, name: `blk.${layer}.post_norm` }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
    ];
  };
  return { start, block };
}

/** The second embedding, combined with a projection of the first, `x`, and the part for each layer. */
export function perLayerParts(
  model: Model,
  partDim: number,
): { start: Step[]; part: (layer: number) => { steps: Step[]; buf: Buf } } {
  const { dim, nLayers, vocabSize } = model;
  const { x } = buffersOf(model);
  const [all, projected, buf] = [
    { name: "perLayer", dim: partDim * nLayers },
    { name: "perLayer.projected", dim: partDim * nLayers },
    { name: "perLayer.part", dim: partDim },
  ];
  const table = model.matrix("per_layer_token_embd", { inDim: all.dim, outDim: vocabSize });
  const toAll = model.matrix("per_layer_model_proj", { inDim: dim, outDim: all.dim });
  return {
    start: [
      { op: "embed", out: all, table, scale: Math.sqrt(partDim), vectorToken: PADDING_TOKEN },
      { op: "linear", out: projected, x, w: toAll },
      { op: "scale", x: projected, by: 1 / Math.sqrt(dim) },
      { op: "rmsNorm", out: projected, x: projected, w: model.vector("per_layer_proj_norm", partDim), eps: model.eps },
      { op: "add", out: all, a: all, b: projected, scale: 1 },
      { op: "scale", x: all, by: Math.SQRT1_2 },
    ],
    part: (layer) => ({ steps: [{ op: "slice", out: buf, x: all, heads: 1, at: layer * partDim }], buf }),
  };
}

function outputScale(model: Model, layer: number): Step[] {
  const scale = model.values(`blk.${layer}.layer_output_scale`, 1);
  return scale ? [{ op: "scale", x: buffersOf(model).x, by: scale[0]! }] : [];
}
