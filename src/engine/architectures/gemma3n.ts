/**
 * Gemma 3n: four streams; each layer computes one and predicts and corrects the others (AltUp, arXiv:2301.13310); a
 * low-rank path parallel to attention (Laurel); a second embedding with a part per layer; sparse gates in the first
 * layers; the last layers reuse the KV caches of earlier ones. Semantics: src/models/gemma3n.cpp of llama.cpp.
 */
import type { Buf, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention } from "./attention.ts";
import { decoder, normSteps } from "./decoder.ts";
import { perLayerParts } from "./gemma4.ts";
import { readWindows } from "./hparams.ts";
import { attnOutput, buffersOf, mlp, qkv, type Model } from "./model.ts";
import { localRope, ropeOf } from "./rope.ts";

/** No GGUF key has these. */
const STREAMS = 4;
const KV_LAYERS = 20;
const SPARSE_LAYERS = 10;
/** Threshold in standard deviations above the mean: one value of twenty is kept. */
const SPARSITY = 1.6448533535003662;
const LOGIT_CAP = 30;
const PART_DIM = 256;
const PART_DIM_MAX = 65_536;

export function gemma3n(model: Model): Step[] {
  const { dim, keys, nLayers, path } = model;
  const { x } = buffersOf(model);
  const shared = keys.count("attention.shared_kv_layers", { min: 0, max: nLayers, fallback: 0 });
  if (shared > 0 && nLayers - shared !== KV_LAYERS) {
    const expected = `${Math.max(0, nLayers - KV_LAYERS)} of ${nLayers} layers`;
    const key = `${keys.arch}.attention.shared_kv_layers`;
    throw new AppError("unsupported", `${path}: '${key}': expected ${expected}, got ${shared}`);
  }
  const partDim = keys.count("embedding_length_per_layer_input", { min: 1, max: PART_DIM_MAX, fallback: PART_DIM });
  const parts = perLayerParts(model, partDim);
  const streams = [x, ...numbered("altup.", STREAMS - 1, dim)];
  const attend = attentionOf(model);
  return decoder(model, {
    embeddingScale: Math.sqrt(dim),
    start: [...parts.start, ...spread(model, streams)],
    logitCap: keys.number("final_logit_softcapping", LOGIT_CAP),
    block: (layer) => [
      ...block(model, layer, { streams, attention: attend(layer), part: parts.part(layer) }),
      ...(layer === nLayers - 1 ? gather(model, streams) : []),
    ],
  });
}

const numbered = (name: string, count: number, dim: number): Buf[] =>
  Array.from({ length: count }, (_, i) => ({ name: `${name}${i + 1}`, dim }));

/** One of the stacked matrices, for a stream after the first. */
function streamMatrix(model: Model, name: string, i: number): Weight {
  const { dim } = model;
  const stack = model.matrix(name, { inDim: dim, outDim: dim, experts: STREAMS - 1 });
  return { ...stack, experts: 1, rowStart: i * dim, tensorRows: (STREAMS - 1) * dim };
}

/** The initial streams: the embedding, and projections of it with the same length. */
function spread(model: Model, [x, ...others]: readonly Buf[]): Step[] {
  return others.flatMap((out, i): Step[] => [
    { op: "linear", out, x: x!, w: streamMatrix(model, "altup_proj", i) },
    { op: "matchLength", x: out, like: x! },
  ]);
}

/** The final mean; the other streams are first projected back to the length of the first. */
function gather(model: Model, [x, ...others]: readonly Buf[]): Step[] {
  const { dim } = model;
  const back = numbered("altup.back", others.length, dim);
  return [
    ...back.flatMap((out, i): Step[] => [
      { op: "linear", out, x: others[i]!, w: streamMatrix(model, "altup_unembd_proj", i) },
      { op: "matchLength", x: out, like: x! },
    ]),
    ...back.map((b): Step => ({ op: "add", out: x!, a: x!, b, scale: 1 })),
    { op: "scale", x: x!, by: 1 / STREAMS },
  ];
}

interface Parts {
  readonly streams: readonly Buf[];
  /** Steps that compute `y` from `h`. */
  readonly attention: readonly Step[];
  /** The layer's part of the second embedding. */
  readonly part: { readonly steps: readonly Step[]; readonly buf: Buf };
}

function block(model: Model, layer: number, { streams, attention: attend, part }: Parts): Step[] {
  const { dim } = model;
  const { h, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const [active, laurel] = [
    { name: "altup.active", dim },
    { name: "laurel", dim },
  ];
  const predicted = numbered("altup.predicted", STREAMS, dim);
  const add = (out: Buf, a: Buf, b: Buf): Step => ({ op: "add", out, a, b, scale: 1 });
  const norm = (out: Buf, from: Buf, name: string): Step[] =>
    normSteps(model, "rms", { out, x: from, name: `${blk}.${name}` });
  return [
    ...predict(model, layer, { streams, predicted }),
    ...norm(h, predicted[0]!, "attn_norm"),
    ...lowRankPath(model, layer, laurel),
    ...attend,
    ...norm(y, y, "post_attention_norm"),
    add(active, y, predicted[0]!),
    add(active, active, laurel),
    { op: "scale", x: active, by: Math.SQRT1_2 },
    ...norm(h, active, "ffn_norm"),
    ...feedForward(model, layer),
    ...norm(y, y, "post_ffw_norm"),
    add(active, active, y),
    ...correct(model, layer, { streams, predicted, active }),
    ...perLayer(model, layer, { streams, part }),
  ];
}

/** out = h + norm(right · left · h) */
function lowRankPath(model: Model, layer: number, out: Buf): Step[] {
  const { dim } = model;
  const { h } = buffersOf(model);
  const blk = `blk.${layer}`;
  const low = { name: "laurel.low", dim: model.rows(`${blk}.laurel_l`) ?? 0 };
  return [
    { op: "linear", out: low, x: h, ...model.linear(`${blk}.laurel_l`, { inDim: dim, outDim: low.dim }) },
    { op: "linear", out, x: low, ...model.linear(`${blk}.laurel_r`, { inDim: low.dim, outDim: dim }) },
    ...normSteps(model, "rms", { out, x: out, name: `${blk}.laurel_post_norm` }),
    { op: "add", out, a: out, b: h, scale: 1 },
  ];
}

/** Steps that compute `y` from `h`. */
function feedForward(model: Model, layer: number): Step[] {
  const { ffnDim } = model;
  const { h, y } = buffersOf(model);
  const { gate, up, down } = mlp(model, layer);
  if (layer >= SPARSE_LAYERS) return [{ op: "gatedMlp", out: y, x: h, gate, up, down, act: "gelu" }];
  const [gated, inner] = [
    { name: "mlp.gate", dim: ffnDim },
    { name: "mlp.up", dim: ffnDim },
  ];
  return [
    { op: "linear", out: gated, x: h, w: gate },
    { op: "linear", out: inner, x: h, w: up },
    { op: "keepLargest", x: gated, factor: SPARSITY },
    { op: "multiply", out: inner, a: inner, b: gated, act: "gelu" },
    { op: "linear", out: y, x: inner, w: down },
  ];
}

/** The modalities of a stream: tanh(router · norm(x) / dim), (STREAMS). */
function modalities(model: Model, layer: number, { x, out }: { x: Buf; out: Buf }): Step[] {
  const { dim } = model;
  const { h } = buffersOf(model);
  const w = model.matrix(`blk.${layer}.altup_router`, { inDim: dim, outDim: STREAMS });
  return [
    ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.altup_router_norm` }),
    { op: "scale", x: h, by: 1 / dim },
    { op: "linear", out, x: h, w },
    { op: "activate", x: out, act: "tanh" },
  ];
}

interface Streams {
  readonly streams: readonly Buf[];
  readonly predicted: readonly Buf[];
}

/** predicted_i = x_i + Σ_j c_ij · x_j */
function predict(model: Model, layer: number, { streams, predicted }: Streams): Step[] {
  const said = { name: "altup.said", dim: STREAMS };
  const all = { name: "altup.coefficients", dim: STREAMS ** 2 };
  const [own, term] = [
    { name: "altup.own", dim: 1 },
    { name: "altup.term", dim: model.dim },
  ];
  const name = `blk.${layer}.altup_predict_coef`;
  const mix = predicted.flatMap((out, i) =>
    streams.flatMap((x, j): Step[] => [
      { op: "slice", out: own, x: all, heads: 1, at: STREAMS * i + j },
      { op: "multiply", out: term, a: x, b: own },
      { op: "add", out, a: j === 0 ? streams[i]! : out, b: term, scale: 1 },
    ]),
  );
  return [
    ...modalities(model, layer, { x: streams[0]!, out: said }),
    { op: "linear", out: all, x: said, ...model.linear(name, { inDim: STREAMS, outDim: all.dim }) },
    ...mix,
  ];
}

/** x_i = predicted_i + (1 + c_i) · (active − predicted_0) */
function correct(model: Model, layer: number, { streams, predicted, active }: Streams & { active: Buf }): Step[] {
  const said = { name: "altup.said", dim: STREAMS };
  const all = { name: "altup.corrections", dim: STREAMS };
  const [own, term, news] = [
    { name: "altup.own", dim: 1 },
    { name: "altup.term", dim: model.dim },
    { name: "altup.news", dim: model.dim },
  ];
  const name = `blk.${layer}.altup_correct_coef`;
  return [
    ...modalities(model, layer, { x: active, out: said }),
    { op: "linear", out: all, x: said, ...model.linear(name, { inDim: STREAMS, outDim: STREAMS }) },
    { op: "add", out: news, a: active, b: predicted[0]!, scale: -1 },
    ...streams.flatMap((out, i): Step[] => [
      { op: "slice", out: own, x: all, heads: 1, at: i },
      { op: "multiply", out: term, a: news, b: own },
      { op: "add", out: term, a: term, b: news, scale: 1 },
      { op: "add", out, a: predicted[i]!, b: term, scale: 1 },
    ]),
  ];
}

/** Adds the layer's part of the second embedding to all streams except the first, gated by the first. */
function perLayer(model: Model, layer: number, { streams, part }: Pick<Parts, "streams" | "part">): Step[] {
  const { dim } = model;
  const { h, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const gate = { name: "perLayer.gate", dim: part.buf.dim };
  return [
    { op: "slice", out: h, x: streams[0]!, heads: 1, at: 0 },
    { op: "multiplyVector", x: h, w: model.vector(`${blk}.altup_correct_scale`, dim) },
    { op: "linear", out: gate, x: h, ...model.linear(`${blk}.inp_gate`, { inDim: dim, outDim: gate.dim }) },
    ...part.steps,
    { op: "multiply", out: gate, a: part.buf, b: gate, act: "gelu" },
    { op: "linear", out: y, x: gate, ...model.linear(`${blk}.proj`, { inDim: gate.dim, outDim: dim }) },
    ...normSteps(model, "rms", { out: y, x: y, name: `${blk}.post_norm` }),
    ...streams.slice(1).map((x): Step => ({ op: "add", out: x, a: x, b: y, scale: 1 })),
  ];
}

/** From `h` to `y`; layers after the first twenty use the KV cache of the last earlier layer of their kind. */
function attentionOf(model: Model): (layer: number) => Step[] {
  const { keys, eps, headDim, nHeads, nKvHeads } = model;
  const { h, q, v, heads, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox", factors: false });
  const local = localRope(model, rope, { base: keys.number("rope.freq_base_swa", 10_000) });
  const windows = readWindows(keys, model, { window: 0, period: 5 });
  return (layer) => {
    const window = windows[layer]!;
    const turn = window > 0 ? local : rope;
    if (layer < KV_LAYERS) {
      const queries: Step[] = [{ op: "bareRmsNorm", out: v, x: v, run: headDim, eps }];
      return attention(model, layer, { rope: turn, window, scale: 1, queries });
    }
    const blk = `blk.${layer}`;
    const w = qkv(model, layer); // reads keys and values, which stay unused, for the QK-norm weights
    if (model.has(`${blk}.attn_k_norm.weight`)) model.vector(`${blk}.attn_k_norm`, headDim);
    const shape = { nHeads, nKvHeads, headDim, scale: 1, window, softCap: 0 };
    return [
      { op: "linear", out: q, x: h, ...w.q },
      { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.attn_q_norm`, headDim), eps },
      { op: "rope", x: q, heads: nHeads, headDim, rope: turn },
      { op: "sharedAttention", out: heads, q, layer, source: KV_LAYERS - (window > 0 ? 2 : 1), ...shape },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
    ];
  };
}
