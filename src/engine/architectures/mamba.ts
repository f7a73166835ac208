/**
 * Mamba 1 and 2, and their blocks for hybrid models. Semantics: src/models/mamba-base.cpp, mamba.cpp and mamba2.cpp of
 * llama.cpp.
 */
import type { Buf, Step } from "../program/step.ts";
import { decoder, normSteps } from "./decoder.ts";
import { readSsm } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";

export const mamba = (model: Model): Step[] => pure(model, mamba1Block);

export const mamba2 = (model: Model): Step[] => pure(model, mamba2Block);

function pure(model: Model, block: typeof mamba2Block): Step[] {
  const { x, h, y } = buffersOf(model);
  return decoder(model, {
    block: (layer) => [
      ...normSteps(model, "rms", { out: h, x, name: `blk.${layer}.attn_norm` }),
      ...block(model, layer, { x: h, out: y }),
      { op: "add", out: x, a: x, b: y, scale: 1 },
    ],
  });
}

interface InOut {
  readonly x: Buf;
  readonly out: Buf;
}

/** The convolution of a layer's values, with a bias if the file has one. */
function conv(model: Model, layer: number, { buf, taps }: { buf: Buf; taps: number }): Step {
  const name = `blk.${layer}.ssm_conv1d`;
  const b = model.bias(name, buf.dim);
  const w = model.matrix(name, { inDim: taps, outDim: buf.dim });
  return { op: "causalConv", out: buf, x: buf, w, ...(b && { b }), act: "silu", layer };
}

/** A layer of Mamba 2: `ssm_in` computes gate, values, B and C, and the heads' time steps. */
export function mamba2Block(model: Model, layer: number, { x, out }: InOut): Step[] {
  const { dim, eps, keys } = model;
  const { innerDim, stateDim, nGroups, nHeads, convKernel } = readSsm(keys);
  const groups = nGroups * stateDim;
  const all = { name: "ssm.all", dim: 2 * innerDim + 2 * groups + nHeads };
  const [z, mixed, dt] = [
    { name: "ssm.z", dim: innerDim },
    { name: "ssm.mixed", dim: innerDim + 2 * groups },
    { name: "ssm.dt", dim: nHeads },
  ];
  const [values, b, c] = [
    { name: "ssm.values", dim: innerDim },
    { name: "ssm.b", dim: groups },
    { name: "ssm.c", dim: groups },
  ];
  const blk = `blk.${layer}`;
  const perHead = { inDim: 1, outDim: nHeads };
  const [a, d] = [model.plain(`${blk}.ssm_a`, perHead), model.plain(`${blk}.ssm_d`, perHead)];
  const dtB = model.plain(`${blk}.ssm_dt.bias`, { inDim: nHeads, outDim: 1 });
  const sizes = { layer, nHeads, headDim: innerDim / nHeads, stateDim, nGroups };
  const norm = { inDim: innerDim / nGroups, outDim: nGroups };
  return [
    { op: "linear", out: all, x, ...model.linear(`${blk}.ssm_in`, { inDim: dim, outDim: all.dim }) },
    { op: "slice", out: z, x: all, heads: 1, at: 0 },
    { op: "slice", out: mixed, x: all, heads: 1, at: innerDim },
    { op: "slice", out: dt, x: all, heads: 1, at: innerDim + mixed.dim },
    conv(model, layer, { buf: mixed, taps: convKernel }),
    { op: "slice", out: values, x: mixed, heads: 1, at: 0 },
    { op: "slice", out: b, x: mixed, heads: 1, at: innerDim },
    { op: "slice", out: c, x: mixed, heads: 1, at: innerDim + groups },
    { op: "selectiveScan", out: values, x: values, dt, dtB, b, c, a, d, ...sizes },
    { op: "multiply", out: values, a: values, b: z, act: "silu" },
    ...(model.has(`${blk}.ssm_norm.weight`)
      ? [{ op: "rmsNorm", out: values, x: values, w: model.matrix(`${blk}.ssm_norm`, norm), eps } as const]
      : []),
    { op: "linear", out, x: values, ...model.linear(`${blk}.ssm_out`, { inDim: innerDim, outDim: dim }) },
  ];
}

/** A layer of Mamba 1: every value is a head; time steps, B and C are computed from the convolved values. */
export function mamba1Block(model: Model, layer: number, { x, out }: InOut): Step[] {
  const { dim, eps, keys } = model;
  const { innerDim, stateDim, nHeads: rank, convKernel } = readSsm(keys);
  const blk = `blk.${layer}`;
  const all = { name: "ssm.all", dim: 2 * innerDim };
  const [values, z, dt] = ["ssm.values", "ssm.z", "ssm.dt"].map((name) => ({ name, dim: innerDim })) as [Buf, Buf, Buf];
  const small = { name: "ssm.small", dim: rank + 2 * stateDim };
  const parts: readonly (readonly [Buf, number, string])[] = [
    [{ name: "ssm.dt.low", dim: rank }, 0, "dt"],
    [{ name: "ssm.b", dim: stateDim }, rank, "b"],
    [{ name: "ssm.c", dim: stateDim }, rank + stateDim, "c"],
  ];
  const [low, b, c] = parts.map(([buf]) => buf) as [Buf, Buf, Buf]; // one per part
  const bare = keys.flag("ssm.dt_b_c_rms", false);
  const cut = parts.flatMap(([buf, at, name]): Step[] => {
    const slice: Step = { op: "slice", out: buf, x: small, heads: 1, at };
    if (model.has(`${blk}.ssm_${name}_norm.weight`))
      return [slice, { op: "rmsNorm", out: buf, x: buf, w: model.vector(`${blk}.ssm_${name}_norm`, buf.dim), eps }];
    return bare ? [slice, { op: "bareRmsNorm", out: buf, x: buf, run: buf.dim, eps }] : [slice];
  });
  const weights = {
    dtB: model.plain(`${blk}.ssm_dt.bias`, { inDim: innerDim, outDim: 1 }),
    a: model.plain(`${blk}.ssm_a`, { inDim: stateDim, outDim: innerDim }),
    d: model.plain(`${blk}.ssm_d`, { inDim: innerDim, outDim: 1 }),
  };
  const sizes = { layer, nHeads: innerDim, headDim: 1, stateDim, nGroups: 1 };
  return [
    { op: "linear", out: all, x, ...model.linear(`${blk}.ssm_in`, { inDim: dim, outDim: all.dim }) },
    { op: "slice", out: values, x: all, heads: 1, at: 0 },
    { op: "slice", out: z, x: all, heads: 1, at: innerDim },
    conv(model, layer, { buf: values, taps: convKernel }),
    { op: "linear", out: small, x: values, w: model.matrix(`${blk}.ssm_x`, { inDim: innerDim, outDim: small.dim }) },
    ...cut,
    { op: "linear", out: dt, x: low, w: model.matrix(`${blk}.ssm_dt`, { inDim: rank, outDim: innerDim }) },
    { op: "selectiveScan", out: values, x: values, dt, b, c, ...weights, ...sizes },
    { op: "multiply", out: values, a: values, b: z, act: "silu" },
    { op: "linear", out, x: values, ...model.linear(`${blk}.ssm_out`, { inDim: innerDim, outDim: dim }) },
  ];
}
