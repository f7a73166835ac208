/**
 * The registry of kernels, of dequantizers, and of the snippets that several kernels share; and how a kernel's whole
 * source is put together. Nothing here needs more than a browser has.
 */
import { AppError } from "../../src/base/errors.ts";
import activate from "./activate.wgsl" with { type: "text" };
import activation from "./activation.wgsl" with { type: "text" };
import add from "./add.wgsl" with { type: "text" };
import addPosition from "./add_position.wgsl" with { type: "text" };
import addVector from "./add_vector.wgsl" with { type: "text" };
import attention from "./attention.wgsl" with { type: "text" };
import bidirectionalAttention from "./bidirectional_attention.wgsl" with { type: "text" };
import bytes from "./bytes.wgsl" with { type: "text" };
import embed from "./embed.wgsl" with { type: "text" };
import gate from "./gate.wgsl" with { type: "text" };
import layerNorm from "./layer_norm.wgsl" with { type: "text" };
import linear from "./linear.wgsl" with { type: "text" };
import matmul from "./matmul.wgsl" with { type: "text" };
import moeLinear from "./moe_linear.wgsl" with { type: "text" };
import moeRoute from "./moe_route.wgsl" with { type: "text" };
import moeSum from "./moe_sum.wgsl" with { type: "text" };
import positionScale from "./position_scale.wgsl" with { type: "text" };
import product from "./product.wgsl" with { type: "text" };
import rmsNorm from "./rms_norm.wgsl" with { type: "text" };
import rope from "./rope.wgsl" with { type: "text" };
import scale from "./scale.wgsl" with { type: "text" };
import softCap from "./soft_cap.wgsl" with { type: "text" };
import storeKv from "./store_kv.wgsl" with { type: "text" };
import takeRows from "./take_rows.wgsl" with { type: "text" };
import turnKeys from "./turn_keys.wgsl" with { type: "text" };
import bf16 from "./quant/bf16.wgsl" with { type: "text" };
import f16 from "./quant/f16.wgsl" with { type: "text" };
import f32 from "./quant/f32.wgsl" with { type: "text" };
import iq4_nl from "./quant/iq4_nl.wgsl" with { type: "text" };
import iq4_xs from "./quant/iq4_xs.wgsl" with { type: "text" };
import mxfp4 from "./quant/mxfp4.wgsl" with { type: "text" };
import q2_K from "./quant/q2_K.wgsl" with { type: "text" };
import q3_K from "./quant/q3_K.wgsl" with { type: "text" };
import q4_0 from "./quant/q4_0.wgsl" with { type: "text" };
import q4_1 from "./quant/q4_1.wgsl" with { type: "text" };
import q4_K from "./quant/q4_K.wgsl" with { type: "text" };
import q5_0 from "./quant/q5_0.wgsl" with { type: "text" };
import q5_1 from "./quant/q5_1.wgsl" with { type: "text" };
import q5_K from "./quant/q5_K.wgsl" with { type: "text" };
import q6_K from "./quant/q6_K.wgsl" with { type: "text" };
import q8_0 from "./quant/q8_0.wgsl" with { type: "text" };
import tq1_0 from "./quant/tq1_0.wgsl" with { type: "text" };
import tq2_0 from "./quant/tq2_0.wgsl" with { type: "text" };

/** Kernels by the name of their file. */
export const KERNELS = {
  activate,
  add,
  add_position: addPosition,
  add_vector: addVector,
  attention,
  bidirectional_attention: bidirectionalAttention,
  embed,
  gate,
  layer_norm: layerNorm,
  linear,
  matmul,
  moe_linear: moeLinear,
  moe_route: moeRoute,
  moe_sum: moeSum,
  position_scale: positionScale,
  rms_norm: rmsNorm,
  rope,
  scale,
  soft_cap: softCap,
  store_kv: storeKv,
  take_rows: takeRows,
  turn_keys: turnKeys,
} as const satisfies Record<string, string>;
export type KernelName = keyof typeof KERNELS;

/** What unpacks eight weights of a block type: `fn dequant8(block: u32, at: u32) -> Eight`, by ggml's type name. */
export const DEQUANTIZERS: Readonly<Record<string, string>> = {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_K,
  q3_K,
  q4_K,
  q5_K,
  q6_K,
  iq4_nl,
  iq4_xs,
  mxfp4,
  tq1_0,
  tq2_0,
};

const SPLICE = /^\/\/#splice (\w+)$/gm;

/**
 * A kernel's source with its snippets in place.
 * @param quant the block type of its matrix, for kernels that have one. Throws `unsupported` where nothing unpacks it
 */
export function kernelSource(kernel: KernelName, quant?: string): string {
  return KERNELS[kernel].replace(SPLICE, (_, what: string) => {
    if (what === "activation") return activation;
    if (what === "product") return product;
    const dequantizer = quant === undefined ? undefined : DEQUANTIZERS[quant];
    if (dequantizer) return `${bytes}\n${dequantizer}`;
    const known = Object.keys(DEQUANTIZERS).join(", ");
    throw new AppError("unsupported", `block type ${quant}: the GPU kernels read ${known}`);
  });
}
