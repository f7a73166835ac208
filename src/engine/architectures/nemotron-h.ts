/**
 * Nemotron-H, dense or with experts: each layer is a single block: Mamba 2, attention without RoPE, or an MLP without a
 * gate. Experts may work on a narrower stream. Semantics: src/models/nemotron-h.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, normSteps } from "./decoder.ts";
import { routingOf } from "./experts.ts";
import { expertFfnDim, readLayers, sharedFfnDim } from "./hparams.ts";
import { mamba2Block } from "./mamba.ts";
import { buffersOf, plainMlp, type Model } from "./model.ts";

export function nemotronH(model: Model): Step[] {
  const { nHeads, headDim, keys, nExperts } = model;
  const { x, h, y } = buffersOf(model);
  const { kvHeads, ffnDims } = readLayers(keys, model);
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(headDim);
  const block = (layer: number): Step[] => {
    const [nKvHeads, ffnDim] = [kvHeads[layer]!, ffnDims[layer]!];
    if (ffnDim === 0 && nKvHeads === 0) return mamba2Block(model, layer, { x: h, out: y });
    if (ffnDim === 0) return attention(model, layer, { rope: undefined, scale, sizes: { nHeads, nKvHeads } });
    if (nExperts > 0) return mixture(model, layer);
    return [{ op: "mlp", out: y, x: h, ...plainMlp(model, layer, { ffnDim }), act: "relu_sqr" }];
  };
  return decoder(model, {
    block: (layer) => [
      ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.attn_norm` }),
      ...block(layer),
      { op: "add", out: x, a: x, b: y, scale: 1 },
    ],
  });
}

/** Experts of h to y, with a shared expert. */
function mixture(model: Model, layer: number): Step[] {
  const { dim, nExperts, nExpertsUsed: nUsed, keys } = model;
  const { h, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const latentDim = keys.count("moe_latent_size", { min: 0, max: dim, fallback: 0 }) || dim;
  const narrow = model.has(`${blk}.ffn_latent_down.weight`);
  const [inner, summed] = narrow
    ? [
        { name: "latent", dim: latentDim },
        { name: "latent.sum", dim: latentDim },
      ]
    : [h, y];
  const shared = { name: "shared", dim };
  const ffnDim = expertFfnDim(keys, model);
  const routing = routingOf(model, "sigmoid");
  const selectB = model.bias(`${blk}.exp_probs_b`, nExperts);
  const sizes = { inDim: inner.dim, outDim: ffnDim, experts: nExperts };
  const moe: Step = {
    op: "moe",
    out: summed,
    x: inner,
    ...(narrow && { routed: h }),
    router: model.matrix(`${blk}.ffn_gate_inp`, { inDim: dim, outDim: nExperts }),
    up: model.matrix(`${blk}.ffn_up_exps`, sizes),
    down: model.matrix(`${blk}.ffn_down_exps`, { ...sizes, inDim: ffnDim, outDim: inner.dim }),
    ...(routing && { routing }),
    ...(selectB && { selectB }),
    act: "relu_sqr",
    nUsed,
    normalize: keys.flag("expert_weights_norm", false),
    scale: keys.number("expert_weights_scale", 0) || 1,
  };
  const down = (): Step => {
    return {
      op: "linear",
      out: inner,
      x: h,
      w: model.matrix(`${blk}.ffn_latent_down`, { inDim: dim, outDim: inner.dim }),
    };
  };
  const up = (): Step => {
    return {
      op: "linear",
      out: y,
      x: summed,
      w: model.matrix(`${blk}.ffn_latent_up`, { inDim: inner.dim, outDim: dim }),
    };
  };
  const beside = plainMlp(model, layer, { ffnDim: sharedFfnDim(keys), shared: true });
  return [
    ...(narrow ? [down()] : []),
    moe,
    ...(narrow ? [up()] : []),
    { op: "mlp", out: shared, x: h, ...beside, act: "relu_sqr" },
    { op: "add", out: y, a: y, b: shared, scale: 1 },
  ];
}
