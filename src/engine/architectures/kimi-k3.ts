/**
 * Kimi K3: Kimi Linear with gated heads, softly limited MLPs, experts in a narrower space, and a residual stream that
 * restarts every few layers: its value is kept, and blocks read a softmax-weighted mean of the stream and all kept
 * values. Semantics: src/models/kimi-k3.cpp of llama.cpp.
 */
import type { Buf, GateLimit, Step } from "../program/step.ts";
import { feedForward, moe, normSteps, sharedExpert } from "./decoder.ts";
import { latentAttention, latentSizes } from "./deepseek2.ts";
import { routingOf } from "./experts.ts";
import { readLayers } from "./hparams.ts";
import { deltaAttention, unturnedDim } from "./kimi-linear.ts";
import { buffersOf, embedding, output, type Model } from "./model.ts";

const WIDTH_MAX = 65_536;

export function kimiK3(model: Model): Step[] {
  const { keys, nLayers } = model;
  const { x, h, y, last, logits } = buffersOf(model);
  const { kvHeads } = readLayers(keys, model);
  const bound = keys.number("kda.gate_lower_bound", -Infinity);
  const every = keys.count("attn_res.block_size", { min: 0, max: nLayers, fallback: 0 });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 });
  const limit: GateLimit = {
    gate: keys.number("activation.situ_beta"),
    up: Math.max(0, keys.number("activation.situ_linear_beta")),
    soft: true,
  };
  const attend = gatedLatentAttention(model);
  const kept: Buf[] = [];
  const layers = Array.from({ length: nLayers }, (_, layer): Step[] => {
    const blk = `blk.${layer}`;
    const read = (kind: "attn" | "ffn"): Step[] => {
      const mixed = mix(model, { stream: x, kept: [...kept], score: `${blk}.${kind}_res_score` });
      return [...mixed.steps, ...normSteps(model, "rms", { out: h, x: mixed.out, name: `${blk}.${kind}_norm` })];
    };
    const attention =
      kvHeads[layer] === 0
        ? deltaAttention(model, layer, isFinite(bound) ? { bound, negative: true } : {})
        : attend(layer);
    const before = [...read("attn"), ...attention];
    const begins = every > 0 && layer % every === 0;
    if (begins) kept.push({ name: `kept.${kept.length}`, dim: x.dim });
    const join: Step[] = begins
      ? [
          { op: "slice", out: kept.at(-1)!, x, heads: 1, at: 0 },
          { op: "slice", out: x, x: y, heads: 1, at: 0 },
        ]
      : [{ op: "add", out: x, a: x, b: y, scale: 1 }];
    const ffn =
      layer < leading ? feedForward(model, layer, { act: "silu", limit }) : narrowExperts(model, layer, limit);
    return [...before, ...join, ...read("ffn"), ...ffn, { op: "add", out: x, a: x, b: y, scale: 1 }];
  }).flat();
  const final = mix(model, { stream: x, kept, score: "output_res_score" });
  return [
    { op: "embed", out: x, table: embedding(model), scale: 1 },
    ...layers,
    ...final.steps,
    { op: "takeRows", out: last, x: final.out },
    ...normSteps(model, "rms", { out: last, x: last, name: "output_norm" }),
    { op: "linear", out: logits, x: last, ...output(model) },
  ];
}

/** Latent attention without RoPE. */
function gatedLatentAttention(model: Model): (layer: number) => Step[] {
  const { keyDim } = latentSizes(model);
  const rotaryDim = unturnedDim(model);
  const options = { rope: undefined, rotaryDim, scale: 1 / Math.sqrt(keyDim) };
  const [gated, plain] = [latentAttention(model, { ...options, gate: "sigmoid" }), latentAttention(model, options)];
  return (layer) => (model.has(`blk.${layer}.attn_gate.weight`) ? gated(layer) : plain(layer));
}

interface Mixed {
  readonly stream: Buf;
  readonly kept: readonly Buf[];
  /** Name of the vector whose products with the normed sources are their scores. */
  readonly score: string;
}

/**
 * The mean of the stream and the kept values, weighted by the softmax of their scores, computed source by source: with
 * m the mean so far and l the logarithm of its weights' sum, m += sigmoid(s − l) · (source − m), l += softplus(s − l).
 */
function mix(model: Model, { stream, kept, score }: Mixed): { steps: Step[]; out: Buf } {
  const { dim, eps } = model;
  const isScored = kept.length > 0 || model.has(`${score}.weight`); // the first layer has only the scores of the stream
  const w = isScored ? model.vector(score, dim) : undefined;
  if (!w || kept.length === 0) return { steps: [], out: stream };
  const buf = (name: string, width: number): Buf => ({ name: `mix.${name}`, dim: width });
  const [mean, normed, apart] = [buf("mean", dim), buf("normed", dim), buf("apart", dim)];
  const [total, own] = [buf("total", 1), buf("own", 1)];
  const scored = (source: Buf, out: Buf): Step[] => [
    { op: "bareRmsNorm", out: normed, x: source, run: dim, eps },
    { op: "linear", out, x: normed, w },
  ];
  const steps: Step[] = [
    ...scored(stream, total),
    { op: "slice", out: mean, x: stream, heads: 1, at: 0 },
    ...kept.flatMap((source): Step[] => [
      ...scored(source, own),
      { op: "add", out: own, a: own, b: total, scale: -1 },
      { op: "add", out: apart, a: source, b: mean, scale: -1 },
      { op: "multiply", out: apart, a: apart, b: own, act: "sigmoid" },
      { op: "add", out: mean, a: mean, b: apart, scale: 1 },
      { op: "activate", x: own, act: "softplus" },
      { op: "add", out: total, a: total, b: own, scale: 1 },
    ]),
  ];
  return { steps, out: mean };
}

/** Experts in a narrower space, if the file has one; `h` chooses them, and the shared expert reads `h` itself. */
function narrowExperts(model: Model, layer: number, limit: GateLimit): Step[] {
  const { dim, keys } = model;
  const { h, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const latentDim = keys.count("expert_latent_length", { min: 0, max: WIDTH_MAX, fallback: 0 });
  const normalize = keys.flag("expert_weights_norm", false);
  const chosen = { act: "silu", normalize, routing: routingOf(model), limit, sharedDim: 0 } as const;
  const shared = sharedExpert(model, layer, { act: "silu", sharedLimit: limit });
  if (latentDim === 0) return [...moe(model, layer, chosen), ...shared];
  const [narrow, sum] = [
    { name: "routed", dim: latentDim },
    { name: "routed.sum", dim: latentDim },
  ];
  return [
    { op: "linear", out: narrow, x: h, w: model.matrix(`${blk}.ffn_routed_down`, { inDim: dim, outDim: latentDim }) },
    ...moe(model, layer, { ...chosen, from: narrow, routed: h, out: sum }),
    ...(model.has(`${blk}.ffn_routed_norm.weight`)
      ? normSteps(model, "rms", { out: sum, x: sum, name: `${blk}.ffn_routed_norm` })
      : []),
    { op: "linear", out: y, x: sum, w: model.matrix(`${blk}.ffn_routed_up`, { inDim: latentDim, outDim: dim }) },
    ...shared,
  ];
}
