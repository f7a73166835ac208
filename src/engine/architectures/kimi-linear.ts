/**
 * Kimi Linear: layers without key heads are Kimi Delta Attention, a gated delta rule with a decay per key channel
 * (arXiv:2510.26692); the others are latent attention without RoPE. Semantics: src/models/kimi-linear.cpp of llama.cpp,
 * and bailingmoe3.cpp.
 */
import type { Buf, GateLimit, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { decoder, denseThenExperts, feedForward, moe, sequentialBlock } from "./decoder.ts";
import { latentAttention, latentSizes } from "./deepseek2.ts";
import { LIMIT_MIN, routingOf } from "./experts.ts";
import { CONV_KERNEL_MAX, HEAD_DIM_MAX, readLayers } from "./hparams.ts";
import { buffersOf, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function kimiLinear(model: Model): Step[] {
  const { kvHeads } = readLayers(model.keys, model);
  const { keyDim } = latentSizes(model);
  const rotaryDim = unturnedDim(model);
  const attend = latentAttention(model, { rope: undefined, rotaryDim, scale: 1 / Math.sqrt(keyDim) });
  const ffn = denseThenExperts(model, { act: "silu", normalize: true, routing: routingOf(model) });
  return decoder(model, {
    block: (layer) =>
      sequentialBlock(model, layer, {
        attention: kvHeads[layer] === 0 ? deltaAttention(model, layer) : attend(layer),
        ffn: ffn(layer),
      }),
  });
}

/**
 * Width of the part of keys that RoPE rotates in other families with latent attention. No RoPE is used here, but files
 * have its width.
 */
export function unturnedDim(model: Model): number {
  const { keys } = model;
  const dim = keys.count("rope.dimension_count", { min: 1, max: latentSizes(model).keyDim });
  for (const [key] of keys.unread(["rope."])) keys.find(key);
  return dim;
}

/** Ling 3: Kimi Linear with bounded decays, RoPE, gated heads, and limited gates. */
export function bailingmoe3(model: Model): Step[] {
  const { keys, nLayers, path } = model;
  const { kvHeads } = readLayers(keys, model);
  const { keyDim } = latentSizes(model);
  const rope = ropeOf({ ...model, headDim: keyDim }, { style: "norm", factors: false });
  const bound = keys.number("kda.gate_lower_bound");
  if (bound >= 0 || !keys.flag("kda.safe_gate", true)) {
    const what = "expected decays with a bound below 0";
    throw new AppError("unsupported", `${path}: '${keys.arch}.kda.gate_lower_bound': ${what}, got ${bound}`);
  }
  const scale = 1 / Math.sqrt(keyDim);
  const attend = latentAttention(model, { rope, rotaryDim: rope.rotaryDim, scale, gate: "sigmoid" });
  const leading = keys.count("leading_dense_block_count", { min: 0, max: nLayers });
  const routing = routingOf(model);
  const normalize = keys.flag("expert_weights_norm", false);
  const limitsOf = (key: string): (GateLimit | undefined)[] =>
    keys.numbers(key, 0, nLayers).map((limit) => (limit > LIMIT_MIN ? { gate: limit, up: limit } : undefined));
  const [limits, sharedLimits] = [limitsOf("swiglu_clamp_exp"), limitsOf("swiglu_clamp_shexp")];
  return decoder(model, {
    block: (layer) => {
      const [limit, sharedLimit] = [limits[layer], sharedLimits[layer]];
      return sequentialBlock(model, layer, {
        attention: kvHeads[layer] === 0 ? deltaAttention(model, layer, { bound }) : attend(layer),
        ffn:
          layer < leading
            ? feedForward(model, layer, { act: "silu", limit: sharedLimit })
            : moe(model, layer, { act: "silu", normalize, limit, sharedLimit, routing }),
      });
    },
  });
}

interface Bounded {
  /** Bound of decays: `bound` times the sigmoid of `ssm_a` times their inputs. */
  readonly bound?: number;
  /** True if the file's `ssm_a` is negative, as for decays without a bound. */
  readonly negative?: boolean;
}

/** Computes `y` from `h`. Decays and gate are each one projection of the input, or two through a narrow vector. */
export function deltaAttention(model: Model, layer: number, { bound, negative }: Bounded = {}): Step[] {
  const { eps, keys, nHeads } = model;
  const { h, y } = buffersOf(model);
  const headDim = keys.count("kda.head_dim", { min: 1, max: HEAD_DIM_MAX });
  const taps = keys.count("ssm.conv_kernel", { min: 2, max: CONV_KERNEL_MAX });
  const width = nHeads * headDim;
  const buf = (name: string, size = width): Buf => ({ name: `kda.${name}`, dim: size });
  const [q, k, v, alpha, gate, out] = ["q", "k", "v", "alpha", "gate", "out"].map((name) => buf(name)) as Bufs;
  const [low, beta] = [buf("low", headDim), buf("beta", nHeads)];
  const blk = `blk.${layer}`;
  const project = (to: Buf, from: Buf, name: string): Step => {
    return { op: "linear", out: to, x: from, w: model.matrix(`${blk}.${name}`, { inDim: from.dim, outDim: to.dim }) };
  };
  const narrowed = (to: Buf, name: string): Step[] => {
    const whole = [`ssm_${name}`, ...(bound === undefined ? [] : [`ssm_${name}_a`])];
    const isNarrowed = model.has(`${blk}.ssm_${name}_b.weight`);
    const found = isNarrowed ? undefined : whole.find((each) => model.rows(`${blk}.${each}`) === to.dim);
    if (found !== undefined) return [project(to, h, found)];
    return [project(low, h, `ssm_${name}_a`), project(to, low, `ssm_${name}_b`)];
  };
  const projections = qkv(model, layer, { qDim: width, kDim: width, vDim: width, bare: true });
  const mixed = (to: Buf, name: keyof typeof projections): Step[] => {
    const w = convolution(model, `${blk}.ssm_conv1d_${name}`, { taps, width });
    return [
      { op: "linear", out: to, x: h, ...projections[name] },
      { op: "causalConv", out: to, x: to, w, act: "silu", layer },
    ];
  };
  const isVector = model.dims(`${blk}.ssm_a`)?.length === 1;
  const a = model.plain(`${blk}.ssm_a`, isVector ? { inDim: nHeads, outDim: 1 } : { inDim: 1, outDim: nHeads });
  const weights = {
    a: { ...a, inDim: nHeads, outDim: 1, tensorRows: 1 },
    dt: model.plain(`${blk}.ssm_dt.bias`, { inDim: width, outDim: 1 }),
  };
  const rule = { layer, nHeads, nKeyHeads: nHeads, headDim, heads: "repeat", scale: 1 / Math.sqrt(headDim) } as const;
  const limited = bound === undefined ? {} : { bound };
  return [
    ...mixed(q, "q"),
    ...mixed(k, "k"),
    ...mixed(v, "v"),
    { op: "l2Norm", out: q, x: q, run: headDim, eps },
    { op: "l2Norm", out: k, x: k, run: headDim, eps },
    ...narrowed(alpha, "f"),
    ...(negative ? negated(alpha, weights.dt) : []),
    project(beta, h, "ssm_beta"),
    { op: "deltaRule", out, q, k, v, alpha, beta, ...weights, ...rule, ...limited },
    ...narrowed(gate, "g"),
    { op: "rmsNorm", out, x: out, w: model.vector(`${blk}.ssm_norm`, headDim), eps },
    { op: "multiply", out, a: out, b: gate, act: "sigmoid" },
    project(y, out, "attn_output"),
  ];
}

/** Computes x = −(x + w), as −(x + w) = −x − w. */
const negated = (x: Buf, w: Weight): Step[] => [
  { op: "addVector", x, w },
  { op: "addVector", x, w },
  { op: "scale", x, by: -1 },
];

type Bufs = [Buf, Buf, Buf, Buf, Buf, Buf];

/** A weight per channel and tap, in a tensor of three dimensions. */
function convolution(model: Model, name: string, { taps, width }: { taps: number; width: number }): Weight {
  const stacked = model.matrix(name, { inDim: taps, outDim: 1, experts: width });
  return { ...stacked, outDim: width, tensorRows: width, experts: 1 };
}
