/**
 * PLaMo: attention and MLP in parallel; PLaMo 2: Mamba layers, and norms after each block; PLaMo 3: windows. Semantics:
 * src/models/plamo.cpp, plamo2.cpp and plamo3.cpp of llama.cpp.
 */
import type { Buf, Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, sequentialBlock } from "./decoder.ts";
import { readLayers, readSsm, readWindows } from "./hparams.ts";
import { buffersOf, plainOrVector, type Model } from "./model.ts";
import { ropeOf, windowRope } from "./rope.ts";
import { sequential } from "./sequential.ts";

export const plamo = (model: Model): Step[] => sequential(model, { rope: "neox", parallel: true });

const AFTER = { attnPostNorm: "post_attention_norm", ffnPostNorm: "post_ffw_norm" };

export function plamo2(model: Model): Step[] {
  const rope = ropeOf(model, { style: "neox" });
  const { heads, kvHeads, ffnDims } = readLayers(model.keys, model);
  return decoder(model, {
    block: (layer) => {
      const sizes = { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]! };
      return sequentialBlock(model, layer, {
        ...AFTER,
        attention:
          sizes.nKvHeads === 0 ? mambaLayer(model, layer) : attention(model, layer, { rope, sizes, bareQkv: true }),
        ffn: feedForward(model, layer, { act: "silu", ffnDim: ffnDims[layer]! }),
      });
    },
  });
}

export function plamo3(model: Model): Step[] {
  const { keys, headDim } = model;
  const rope = ropeOf(model, { style: "neox" });
  const local = windowRope(model, rope);
  const windows = readWindows(keys, model, { window: 0, period: 8 });
  const valueDim = keys.count("attention.value_length", { min: 1, max: headDim, fallback: headDim });
  const { heads, kvHeads, ffnDims } = readLayers(keys, model);
  return sequential(model, {
    ...AFTER,
    rope,
    local,
    windows,
    bareQkv: true,
    perLayer: (layer) => ({ sizes: { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]!, valueDim } }),
    ffn: (layer) => feedForward(model, layer, { act: "silu", ffnDim: ffnDims[layer]! }),
  });
}

/** Minimum width of the time steps' projection. No GGUF key has it. */
const TIME_STEP_DIM_MIN = 64;

/** From `h` to `y`: `ssm_in` computes each head's gate and values; these give B, C and time steps, normed. */
function mambaLayer(model: Model, layer: number): Step[] {
  const { dim, eps } = model;
  const { h, y } = buffersOf(model);
  const { innerDim, stateDim, nHeads, convKernel } = readSsm(model.keys);
  const headDim = innerDim / nHeads;
  const rank = Math.max(TIME_STEP_DIM_MIN, Math.floor(dim / 16));
  const buf = (name: string, width: number): Buf => ({ name: `ssm.${name}`, dim: width });
  const [all, z, values] = [buf("all", 2 * innerDim), buf("z", innerDim), buf("values", innerDim)];
  const [small, low, dt] = [buf("small", rank + 2 * stateDim), buf("dt.low", rank), buf("dt", nHeads)];
  const [b, c] = [buf("b", stateDim), buf("c", stateDim)];
  const blk = `blk.${layer}`;
  const cut = (out: Buf, at: number, name: string): Step[] => [
    { op: "slice", out, x: small, heads: 1, at },
    { op: "rmsNorm", out, x: out, w: plainOrVector(model, `${blk}.ssm_${name}_norm`, out.dim), eps },
  ];
  const perHead = { inDim: 1, outDim: nHeads };
  const weights = {
    dtB: model.plain(`${blk}.ssm_dt.bias`, { inDim: nHeads, outDim: 1 }),
    a: { ...model.plain(`${blk}.ssm_a`, { inDim: nHeads, outDim: 1 }), ...perHead, tensorRows: nHeads },
    d: { ...model.plain(`${blk}.ssm_d`, { inDim: nHeads, outDim: 1 }), ...perHead, tensorRows: nHeads },
  };
  const conv = model.matrix(`${blk}.ssm_conv1d`, { inDim: convKernel, outDim: innerDim });
  const toSmall = model.matrix(`${blk}.ssm_x`, { inDim: innerDim, outDim: small.dim });
  return [
    { op: "linear", out: all, x: h, w: model.matrix(`${blk}.ssm_in`, { inDim: dim, outDim: all.dim }) },
    { op: "slice", out: z, x: all, heads: nHeads, at: 0 },
    { op: "slice", out: values, x: all, heads: nHeads, at: headDim },
    { op: "causalConv", out: values, x: values, w: conv, act: "silu", layer },
    { op: "linear", out: small, x: values, w: toSmall },
    ...cut(b, 0, "b"),
    ...cut(c, stateDim, "c"),
    ...cut(low, 2 * stateDim, "dt"),
    { op: "linear", out: dt, x: low, w: model.matrix(`${blk}.ssm_dt`, { inDim: rank, outDim: nHeads }) },
    { op: "selectiveScan", out: values, x: values, dt, b, c, ...weights, layer, nHeads, headDim, stateDim, nGroups: 1 },
    { op: "multiply", out: values, a: values, b: z, act: "silu" },
    { op: "linear", out: y, x: values, w: model.matrix(`${blk}.ssm_out`, { inDim: innerDim, outDim: dim }) },
  ];
}
