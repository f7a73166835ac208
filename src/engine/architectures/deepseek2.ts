/**
 * DeepSeek 2 and 3, GLM-4.7 Flash and others with multi-head latent attention: the cache holds one compressed vector
 * and one rotated key per position; the matrices that unpack it are applied to queries and outputs instead (absorbed
 * form). Old files fuse these matrices, new ones do not. Semantics: src/models/deepseek2.cpp of llama.cpp.
 */
import type { Activation, Buf, RopeScaling, Routing, Step } from "../program/step.ts";
import { attention, resultGate, type Choice } from "./attention.ts";
import { decoder, denseThenExperts, feedForward, sequentialBlock } from "./decoder.ts";
import { routingOf } from "./experts.ts";
import { HEAD_DIM_MAX } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

const RANK_MAX = 65_536;
/** Vocabulary and layers of GLM-4.7 Flash, whose first files lack the routing score. */
const GLM_FLASH = { vocabSize: 154_880, layers: [47, 48] };

interface Variant {
  /** Score of experts if the file does not name one. */
  readonly score?: Routing["score"];
  /** Chooses the positions that layers attend to, with queries and keys that rotate as in attention. */
  readonly chooser?: (rope: RopeScaling) => Chooser;
}

/** A layer's choice, from `h` and the compressed query vector. */
export type Chooser = (layer: number, narrow: Buf) => Choice;

export function deepseek2(model: Model, frame = decoder, variant: Variant = {}): Step[] {
  const { score = "softmax", chooser } = variant;
  const { nLayers, vocabSize } = model;
  const { keyDim } = latentSizes(model);
  const rope = latentRope({ ...model, headDim: keyDim });
  const scale = latentScale(model, rope.attnFactor, rope.freqScale) ** 2 / Math.sqrt(keyDim);
  const choose = chooser?.(rope);
  const attend = latentAttention(model, { rope, rotaryDim: rope.rotaryDim, scale, ...(choose && { choose }) });
  const isFlash = vocabSize === GLM_FLASH.vocabSize && GLM_FLASH.layers.includes(nLayers);
  const ffn = denseThenExperts(model, { act: "silu", routing: routingOf(model, isFlash ? "sigmoid" : score) });
  return frame(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: attend(layer),
        ffn: ffn(layer),
      }),
  });
}

/** DeepSeek-OCR's text model: plain attention, and experts. */
export function deepseek2Ocr(model: Model): Step[] {
  const rope = ropeOf(model, { style: "neox" });
  const ffn = denseThenExperts(model, { act: "silu" });
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: attention(model, layer, { rope }),
        ffn: ffn(layer),
      }),
  });
}

/** MiniCPM 3: Llama with compressed keys and values and RoPE on halves; embeddings, residuals and logits are scaled. */
export function minicpm3(model: Model): Step[] {
  const { dim, nLayers, headDim } = model;
  const rope = ropeOf(model, { style: "neox" });
  const attend = latentAttention(model, { rope, rotaryDim: rope.rotaryDim, scale: 1 / Math.sqrt(headDim) });
  return decoder(model, {
    embeddingScale: MINICPM.embeddingScale,
    logitScale: MINICPM.baseDim / dim,
    block: (layer) =>
      sequentialBlock(model, layer, {
        residualScale: MINICPM.depthScale / Math.sqrt(nLayers),
        attention: attend(layer),
        ffn: feedForward(model, layer, { act: "silu" }),
      }),
  });
}

/** PLM: compressed keys and values, and an MLP of squared ReLU without a gate. */
export function plm(model: Model): Step[] {
  const { keyDim } = latentSizes(model);
  const rope = ropeOf({ ...model, headDim: keyDim }, { style: "norm" });
  const attend = latentAttention(model, { rope, rotaryDim: rope.rotaryDim, scale: 1 / Math.sqrt(keyDim) });
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: attend(layer),
        ffn: feedForward(model, layer, { act: "relu_sqr" }),
      }),
  });
}

/** No GGUF key has these. */
const MINICPM = { embeddingScale: 12, depthScale: 1.4, baseDim: 256 };

interface LatentOptions {
  /** undefined: no RoPE */
  readonly rope: RopeScaling | undefined;
  /** Size of the rotated part of each head, and of the uncompressed key that all heads share. */
  readonly rotaryDim: number;
  readonly scale: number;
  /** Gates each head's output by act(`attn_gate` · h). */
  readonly gate?: Activation;
  /** Each head has a score that takes part in the softmax without a value; default false. */
  readonly sinks?: boolean;
  /** Chooses the positions that a layer attends to; default: all. */
  readonly choose?: Chooser;
}

/** Head sizes before and after compression; new files have separate keys for them. */
export function latentSizes({ keys, headDim }: Model): { keyDim: number; valueDim: number } {
  const count = (key: string, fallback: number): number =>
    keys.count(key, { min: 0, max: HEAD_DIM_MAX, fallback }) || fallback;
  return {
    keyDim: count("attention.key_length_mla", headDim),
    valueDim: count("attention.value_length_mla", count("attention.value_length", headDim)),
  };
}

/** Steps that compute `y` from `h`. */
export function latentAttention(model: Model, options: LatentOptions): (layer: number) => Step[] {
  const { rope, rotaryDim, scale } = options;
  const { keys, dim, nHeads, eps } = model;
  const { keyDim, valueDim } = latentSizes(model);
  const rank = keys.count("attention.kv_lora_rank", { min: 1, max: RANK_MAX });
  const plainDim = keyDim - rotaryDim;
  const latentDim = rotaryDim + rank;
  const { h, y } = buffersOf(model);
  const buf = (name: string, width: number) => ({ name: `mla.${name}`, dim: width });
  const q = buf("q", nHeads * keyDim);
  const [qPlain, qTurned] = [buf("q.plain", nHeads * plainDim), buf("q.turned", nHeads * rotaryDim)];
  const [absorbed, query] = [buf("q.absorbed", nHeads * rank), buf("query", nHeads * latentDim)];
  const [both, latent, turned, key] = [
    buf("kv", rank + rotaryDim),
    buf("latent", rank),
    buf("turned", rotaryDim),
    buf("key", latentDim),
  ];
  const [mixed, heads] = [buf("mixed", nHeads * rank), buf("heads", nHeads * valueDim)];
  const temperature = keys.number("attention.temperature_scale", 0);
  const floorScale = keys.number("attention.temperature_length", 0) || (rope?.ctxLenOrig ?? model.ctxLen);
  const turn = (x: Buf, heads: number): Step[] => (rope ? [{ op: "rope", x, heads, headDim: rotaryDim, rope }] : []);
  return (layer) => {
    const blk = `blk.${layer}`;
    const toBoth = model.linear(`${blk}.attn_kv_a_mqa`, { inDim: dim, outDim: both.dim });
    const choice = options.choose?.(layer, narrowQuery(model, layer));
    const { keyW, valueW, transposed } = unpacking(model, layer, { rank, plainDim, valueDim });
    return [
      ...queries(model, layer, q),
      ...(choice?.steps ?? []),
      { op: "slice", out: qPlain, x: q, heads: nHeads, at: 0 },
      { op: "slice", out: qTurned, x: q, heads: nHeads, at: plainDim },
      ...turn(qTurned, nHeads),
      { op: "headLinear", out: absorbed, x: qPlain, w: keyW, transposed },
      { op: "join", out: query, a: qTurned, b: absorbed, heads: nHeads },
      ...(temperature === 0
        ? []
        : [{ op: "positionScale", x: query, coef: temperature, floorScale, offset: 0 } as const]),
      { op: "linear", out: both, x: h, ...toBoth },
      { op: "slice", out: latent, x: both, heads: 1, at: 0 },
      { op: "slice", out: turned, x: both, heads: 1, at: rank },
      { op: "rmsNorm", out: latent, x: latent, w: model.vector(`${blk}.attn_kv_a_norm`, rank), eps },
      ...turn(turned, 1),
      { op: "join", out: key, a: turned, b: latent, heads: 1 },
      {
        op: "latentAttention",
        out: mixed,
        q: query,
        k: key,
        layer,
        nHeads,
        headDim: latentDim,
        valueDim: rank,
        scale,
        rope,
        ...(options.sinks && { sinks: model.vector(`${blk}.attn_sinks`, nHeads) }),
        ...(choice && { chosen: choice.chosen, chosenBlock: choice.chosenBlock }),
      },
      { op: "headLinear", out: heads, x: mixed, w: valueW, transposed: false },
      ...(options.gate ? resultGate(model, layer, { heads, nHeads, from: h, act: options.gate }) : []),
      { op: "linear", out: y, x: heads, ...model.linear(`${blk}.attn_output`, { inDim: heads.dim, outDim: dim }) },
    ];
  };
}

/** Width of the compressed query vector; 0: queries are computed from `h`. */
export const queryRank = (model: Model, layer: number): number => model.rows(`blk.${layer}.attn_q_a`) ?? 0;

export const narrowQuery = (model: Model, layer: number): Buf => ({
  name: "mla.q.narrow",
  dim: queryRank(model, layer),
});

/** Computes queries from `h`, through a compressed vector if the file has one. */
export function queries(model: Model, layer: number, q: Buf): Step[] {
  const { dim, eps } = model;
  const { h } = buffersOf(model);
  const blk = `blk.${layer}`;
  if (!model.has(`${blk}.attn_q_a.weight`)) {
    return [{ op: "linear", out: q, x: h, ...model.linear(`${blk}.attn_q`, { inDim: dim, outDim: q.dim }) }];
  }
  const narrow = narrowQuery(model, layer);
  return [
    { op: "linear", out: narrow, x: h, ...model.linear(`${blk}.attn_q_a`, { inDim: dim, outDim: narrow.dim }) },
    { op: "rmsNorm", out: narrow, x: narrow, w: model.vector(`${blk}.attn_q_a_norm`, narrow.dim), eps },
    { op: "linear", out: q, x: narrow, ...model.linear(`${blk}.attn_q_b`, { inDim: narrow.dim, outDim: q.dim }) },
  ];
}

/** Each head's matrices that turn the compressed vector into keys and values. */
function unpacking(
  model: Model,
  layer: number,
  { rank, plainDim, valueDim }: { rank: number; plainDim: number; valueDim: number },
) {
  const { nHeads: experts } = model;
  const blk = `blk.${layer}`;
  if (!model.has(`${blk}.attn_kv_b.weight`)) {
    return {
      keyW: model.matrix(`${blk}.attn_k_b`, { inDim: plainDim, outDim: rank, experts }),
      valueW: model.matrix(`${blk}.attn_v_b`, { inDim: rank, outDim: valueDim, experts }),
      transposed: false,
    };
  }
  const rows = plainDim + valueDim; // per head: the key's, then the value's
  const fused = model.matrix(`${blk}.attn_kv_b`, { inDim: rank, outDim: experts * rows });
  const part = { ...fused, experts, tensorRows: rows };
  return {
    keyW: { ...part, outDim: plainDim },
    valueW: { ...part, outDim: valueDim, rowStart: plainDim },
    transposed: true,
  };
}

/** Uses YaRN without its own magnitude if the file has one for all dimensions: that scales scores instead. */
function latentRope(model: Model): RopeScaling {
  const rope = ropeOf(model, { style: "norm" });
  const hasOwn = model.keys.number("rope.scaling.yarn_log_multiplier", 0) !== 0;
  if (!hasOwn || rope.extFactor === 0 || rope.freqScale >= 1) return rope;
  return { ...rope, attnFactor: rope.attnFactor / (1 + 0.1 * Math.log(1 / rope.freqScale)) };
}

/** The magnitude that scales scores, once for queries and once for keys. The file has a tenth of its factor. */
function latentScale({ keys }: Model, attnFactor: number, freqScale: number): number {
  const stretch = Math.log(1 / freqScale);
  const logMul = keys.number("rope.scaling.yarn_log_multiplier", 0) * 10;
  return attnFactor * (1 + 0.1 * stretch) * (1 + 0.1 * logMul * stretch);
}
