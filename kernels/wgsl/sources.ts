/**
 * The registry of kernels, dequantizers and shared snippets, and the assembly of a kernel's source. Needs only a
 * browser's features.
 */
import { CACHE_GROUPS, type CacheType } from "./cache.ts";
import { AppError, PLAIN, rowsAtOnce, type SizeName, type SubgroupMatrix, type Tuning } from "../../src/base/index.ts";
import { LOADS16 } from "./loads16.ts";
import { directives, matricesOf, tileOf } from "./tiles.ts";
import activate from "./activate.wgsl" with { type: "text" };
import activation from "./activation.wgsl" with { type: "text" };
import add from "./add.wgsl" with { type: "text" };
import addPosition from "./add_position.wgsl" with { type: "text" };
import addVector from "./add_vector.wgsl" with { type: "text" };
import attend from "./attend.wgsl" with { type: "text" };
import attention from "./attention.wgsl" with { type: "text" };
import attentionChosen from "./attention_chosen.wgsl" with { type: "text" };
import attentionEntries from "./attention_entries.wgsl" with { type: "text" };
import compress from "./compress.wgsl" with { type: "text" };
import lookup from "./lookup.wgsl" with { type: "text" };
import mixParts from "./mix_parts.wgsl" with { type: "text" };
import streamWeights from "./stream_weights.wgsl" with { type: "text" };
import attentionMatrix from "./attention_matrix.wgsl" with { type: "text" };
import attentionReduce from "./attention_reduce.wgsl" with { type: "text" };
import attentionTile from "./attention_tile.wgsl" with { type: "text" };
import bytes from "./bytes.wgsl" with { type: "text" };
import bytes16 from "./bytes16.wgsl" with { type: "text" };
import cacheF16 from "./cache_f16.wgsl" with { type: "text" };
import cacheF32 from "./cache_f32.wgsl" with { type: "text" };
import cacheQ4 from "./cache_q4.wgsl" with { type: "text" };
import cacheQ8 from "./cache_q8.wgsl" with { type: "text" };
import cacheScales from "./cache_scales.wgsl" with { type: "text" };
import choosePositions from "./choose_positions.wgsl" with { type: "text" };
import clampValues from "./clamp.wgsl" with { type: "text" };
import joinParts from "./join.wgsl" with { type: "text" };
import keepRemembering from "./keep_remembering.wgsl" with { type: "text" };
import keepLargest from "./keep_largest.wgsl" with { type: "text" };
import matchLength from "./match_length.wgsl" with { type: "text" };
import multiply from "./multiply.wgsl" with { type: "text" };
import multiplyVector from "./multiply_vector.wgsl" with { type: "text" };
import slice from "./slice.wgsl" with { type: "text" };
import causalConv from "./causal_conv.wgsl" with { type: "text" };
import centeredConv from "./centered_conv.wgsl" with { type: "text" };
import deltaRule from "./delta_rule.wgsl" with { type: "text" };
import previousRow from "./previous_row.wgsl" with { type: "text" };
import wkv from "./wkv.wgsl" with { type: "text" };
import embed from "./embed.wgsl" with { type: "text" };
import gemv from "./gemv.wgsl" with { type: "text" };
import gatedLinear from "./gated_linear.wgsl" with { type: "text" };
import give from "./give.wgsl" with { type: "text" };
import keepBest from "./keep_best.wgsl" with { type: "text" };
import linear3 from "./linear_3.wgsl" with { type: "text" };
import rotate from "./rotate.wgsl" with { type: "text" };
import rotateHeads from "./rotate_heads.wgsl" with { type: "text" };
import rotation from "./rotation.wgsl" with { type: "text" };
import ropeAttention from "./rope_attention.wgsl" with { type: "text" };
import ropeStore from "./rope_store.wgsl" with { type: "text" };
import gate from "./gate.wgsl" with { type: "text" };
import headTransposed from "./head_transposed.wgsl" with { type: "text" };
import heads from "./heads.wgsl" with { type: "text" };
import readKeys from "./keys.wgsl" with { type: "text" };
import lanes from "./lanes.wgsl" with { type: "text" };
import layerNorm from "./layer_norm.wgsl" with { type: "text" };
import linear from "./linear.wgsl" with { type: "text" };
import matmul from "./matmul.wgsl" with { type: "text" };
import moeDown from "./moe_down.wgsl" with { type: "text" };
import moeGated from "./moe_gated.wgsl" with { type: "text" };
import moeGroup from "./moe_group.wgsl" with { type: "text" };
import moeLinear from "./moe_linear.wgsl" with { type: "text" };
import moeMatmul from "./moe_matmul.wgsl" with { type: "text" };
import moeRoute from "./moe_route.wgsl" with { type: "text" };
import moeWeigh from "./moe_weigh.wgsl" with { type: "text" };
import moeSum from "./moe_sum.wgsl" with { type: "text" };
import narrow from "./narrow.wgsl" with { type: "text" };
import wide from "./wide.wgsl" with { type: "text" };
import norm from "./norm.wgsl" with { type: "text" };
import positionScale from "./position_scale.wgsl" with { type: "text" };
import partial16 from "./partial_16.wgsl" with { type: "text" };
import partialPlain from "./partial_plain.wgsl" with { type: "text" };
import product from "./product.wgsl" with { type: "text" };
import products from "./products.wgsl" with { type: "text" };
import row from "./row.wgsl" with { type: "text" };
import runsFloat from "./runs_float.wgsl" with { type: "text" };
import runsPacked from "./runs_packed.wgsl" with { type: "text" };
import reach from "./reach.wgsl" with { type: "text" };
import rmsNorm from "./rms_norm.wgsl" with { type: "text" };
import rope from "./rope.wgsl" with { type: "text" };
import scorePositions from "./score_positions.wgsl" with { type: "text" };
import scale from "./scale.wgsl" with { type: "text" };
import maskTokens from "./mask_tokens.wgsl" with { type: "text" };
import selectiveScan from "./selective_scan.wgsl" with { type: "text" };
import softCap from "./soft_cap.wgsl" with { type: "text" };
import softplus from "./softplus.wgsl" with { type: "text" };
import share from "./share.wgsl" with { type: "text" };
import splits from "./splits.wgsl" with { type: "text" };
import storeKv from "./store_kv.wgsl" with { type: "text" };
import sumShared from "./sum_shared.wgsl" with { type: "text" };
import sumSubgroups from "./sum_subgroups.wgsl" with { type: "text" };
import toHalves from "./to_halves.wgsl" with { type: "text" };
import takeRows from "./take_rows.wgsl" with { type: "text" };
import topOfLists from "./top_of_lists.wgsl" with { type: "text" };
import topOfLogits from "./top_of_logits.wgsl" with { type: "text" };
import shiftKeys from "./shift_keys.wgsl" with { type: "text" };
import turn from "./turn.wgsl" with { type: "text" };
import turned from "./turned.wgsl" with { type: "text" };
import unnormed from "./unnormed.wgsl" with { type: "text" };
import unrotated from "./unrotated.wgsl" with { type: "text" };
import unshared from "./unshared.wgsl" with { type: "text" };
import bf16 from "./quant/bf16.wgsl" with { type: "text" };
import f16 from "./quant/f16.wgsl" with { type: "text" };
import f32 from "./quant/f32.wgsl" with { type: "text" };
import iq1_m from "./quant/iq1_m.wgsl" with { type: "text" };
import iq1_s from "./quant/iq1_s.wgsl" with { type: "text" };
import iq2_s from "./quant/iq2_s.wgsl" with { type: "text" };
import iq2_xs from "./quant/iq2_xs.wgsl" with { type: "text" };
import iq2_xxs from "./quant/iq2_xxs.wgsl" with { type: "text" };
import iq3_s from "./quant/iq3_s.wgsl" with { type: "text" };
import iq3_xxs from "./quant/iq3_xxs.wgsl" with { type: "text" };
import iq4_nl from "./quant/iq4_nl.wgsl" with { type: "text" };
import iq4_xs from "./quant/iq4_xs.wgsl" with { type: "text" };
import mxfp4 from "./quant/mxfp4.wgsl" with { type: "text" };
import nvfp4 from "./quant/nvfp4.wgsl" with { type: "text" };
import q1_0 from "./quant/q1_0.wgsl" with { type: "text" };
import q2_0 from "./quant/q2_0.wgsl" with { type: "text" };
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

/** `attention_matrix` for heads of up to `dim` values. */
const matrixAttention = (dim: number, slice: number): string =>
  attentionMatrix
    .replace("const DIM: u32 = 128u;", `const DIM: u32 = ${dim}u;`)
    .replace("const SLICE: u32 = 64u;", `const SLICE: u32 = ${slice}u;`);

/** Kernels by file name; some have several forms: with twice as many matrices to compile, and by sizes of heads. */
export const KERNELS = {
  activate,
  add,
  add_position: addPosition,
  add_vector: addVector,
  attention,
  attention_chosen: attentionChosen,
  attention_chosen_wide: attentionChosen.replace("//#splice narrow", wide),
  attention_entries: attentionEntries,
  attention_entries_wide: attentionEntries.replace("//#splice narrow", wide),
  attention_matrix_64: matrixAttention(64, 64),
  attention_matrix_128: matrixAttention(128, 64),
  attention_matrix_256: matrixAttention(256, 32),
  attention_reduce: attentionReduce,
  attention_tile: attentionTile,
  attention_wide: attention.replace("//#splice narrow", wide),
  choose_positions: choosePositions,
  clamp: clampValues,
  causal_conv: causalConv,
  centered_conv: centeredConv,
  compress,
  delta_rule: deltaRule,
  embed,
  gate,
  gated_linear: gatedLinear,
  give,
  head_transposed: headTransposed,
  join: joinParts,
  keep_largest: keepLargest,
  keep_remembering: keepRemembering,
  layer_norm: layerNorm,
  lookup,
  linear,
  linear_3: linear3,
  match_length: matchLength,
  matmul,
  mix_parts: mixParts,
  moe_down: moeDown,
  moe_gated: moeGated,
  moe_gated_shared: moeGated.replace("//#splice unshared", share),
  moe_group: moeGroup,
  moe_linear: moeLinear,
  moe_matmul: moeMatmul,
  moe_route: moeRoute,
  moe_sum: moeSum,
  moe_weigh: moeWeigh,
  multiply,
  multiply_vector: multiplyVector,
  position_scale: positionScale,
  previous_row: previousRow,
  rms_norm: rmsNorm,
  rope,
  rope_attention: ropeAttention,
  rope_store: ropeStore,
  rotate_heads: rotateHeads,
  scale,
  score_positions: scorePositions,
  selective_scan: selectiveScan,
  mask_tokens: maskTokens,
  slice,
  soft_cap: softCap,
  store_kv: storeKv,
  stream_weights: streamWeights,
  take_rows: takeRows,
  to_halves: toHalves,
  top_of_lists: topOfLists,
  top_of_logits: topOfLogits,
  shift_keys: shiftKeys,
  wkv,
} as const satisfies Record<string, string>;
export type KernelName = keyof typeof KERNELS;

/** Unpackers of eight weights of a block type: `fn dequant8(block: u32, at: u32) -> Eight`, by ggml's type name. */
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
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4,
  tq1_0,
  tq2_0,
  q1_0,
  q2_0,
};

/** Block types of a multiple of 16 bytes, whose `unit_at` reads a matrix as vectors. */
const ALIGNED = new Set(["q4_K", "q5_K"]);

/** Formats of the KV cache. */
const inGroupsOf = (count: number): string =>
  cacheQ8.replace(/^(const GROUP: u32 = )\d+u;/m, `$1${count}u;`) + cacheScales + rotation;
const CACHES: Readonly<Record<CacheType, string>> = {
  f32: cacheF32 + unrotated,
  f16: cacheF16 + unrotated,
  q8_0: inGroupsOf(CACHE_GROUPS.q8_0),
  "q8_0/16": inGroupsOf(CACHE_GROUPS["q8_0/16"]),
  "q8_0/8": inGroupsOf(CACHE_GROUPS["q8_0/8"]),
  q4_0: cacheQ4 + cacheScales + rotation,
};

/** Snippets that are the same for every matrix and device. */
const SHARED: Readonly<Record<string, string>> = {
  activation,
  attend,
  best: keepBest,
  gemv,
  heads: `${readKeys}\n${heads}`,
  keys: readKeys,
  narrow,
  reach,
  lanes,
  norm,
  products,
  rotate,
  rotation,
  row,
  softplus,
  splits,
  turn,
  turned,
  unnormed,
  unshared,
};

/** `//#splice product 2` is the snippet for the second matrix of a kernel: all its names end in `_2`. */
const SPLICE = /^\/\/#splice ([a-z]+)(?: (\d))?$/gm;

/** A constant of a snippet that is a field of `Tuning`. */
const TUNED = /^const (\w+): u32 = \d+u; \/\/ tuned: (threads|columns|tileRows|tileColumns)$/gm;
/** Rows of x per workgroup, in the kernels for few rows that take several at once. */
const ROWS = /^const ROWS: u32 = \d+u; \/\/ tuned: rows$/m;
/** The type of a tile's weights. */
const STORED = "alias Stored = vec4<f32>;";

/** Optional features of a device that kernels have variants for, and the chosen tuning. */
export interface Variant {
  /** `subgroups` and `subgroup_id`. */
  readonly subgroups: boolean;
  /** Default: `PLAIN`. */
  readonly tuning?: Tuning;
  /** Rows that a workgroup for few rows takes at once, at most `rowsAtOnce` of the tuning, which is the default. */
  readonly rows?: number | undefined;
  /** For tunings with `matrix`. */
  readonly matrix?: SubgroupMatrix | undefined;
}

/** Returns whether a kernel's source depends on the number of rows that it takes at once. */
export const takesRows = (kernel: KernelName): boolean => ROWS.test(KERNELS[kernel]);

/**
 * A kernel's source with its snippets in place.
 * @param quants block types of its matrices, in order, or the format of its cache. Throws `unsupported` if a type has
 * no
 *   unpacker
 */
export function kernelSource(kernel: KernelName, quants: readonly string[], variant: Variant): string {
  const { subgroups, tuning = PLAIN, rows = rowsAtOnce(tuning), matrix } = variant;
  const features = new Set<string>();
  const loads = tuning.loads16 || tuning.packed ? multiplied(kernel).filter((i) => LOADS16[quants[i]!]) : [];
  const spliced = KERNELS[kernel].replace(SPLICE, (_, what: string, number: string | undefined) => {
    const shared = SHARED[what];
    if (shared) return shared;
    if (what === "cache") return CACHES[quants[0] as CacheType]; // set by lowering
    if (what === "tile" || what === "matrices") {
      const snippet = what === "tile" ? tileOf(tuning, quants[0], matrix) : matricesOf(matrix);
      for (const feature of snippet.features) features.add(feature);
      return snippet.source;
    }
    if (what === "sum") {
      if (subgroups) features.add("subgroups");
      return subgroups ? sumSubgroups : sumShared;
    }
    const index = Number(number ?? 1) - 1;
    const snippets = matrixSnippets(quants[index], loads.includes(index) ? { packed: tuning.packed } : undefined);
    const snippet = what === "product" ? snippets.product : snippets.unpacking;
    return number === undefined
      ? snippet
      : numbered(snippet, { number, names: namesOf(`${snippets.unpacking}\n${snippets.product}`) });
  });
  const aligned = loads.filter((i) => ALIGNED.has(quants[i]!));
  const bound = aligned.reduce((text, index) => text.replace(bindingOf(index), "$1vec4<u32>>;"), spliced);
  const sized = bound.replace(TUNED, (_, name: string, field: SizeName) => `const ${name}: u32 = ${tuning[field]}u;`);
  const withRows = sized.replace(ROWS, `const ROWS: u32 = ${rows}u;`);
  const halved = tuning.f16 ? withRows.replace(STORED, "alias Stored = vec4<f16>;") : withRows;
  if (halved !== withRows) features.add("f16");
  return `${directives(features)}${halved}`;
}

/** The indices of the matrices that a kernel multiplies by few rows. Lowering gives each a type. */
const multiplied = (kernel: KernelName): number[] =>
  [...KERNELS[kernel].matchAll(SPLICE)].flatMap(([, what, number]) =>
    what === "product" ? Number(number ?? 1) - 1 : [],
  );

/** The binding of a matrix as words. */
const bindingOf = (index: number): RegExp => new RegExp(`(\\bw${index === 0 ? "" : `_${index + 1}`}: ?array<)u32>;`);

/**
 * The snippets for a matrix's block type: unpacking, and products with few rows.
 * @param by16 set if weights are read 16 bytes at a time
 */
function matrixSnippets(
  quant: string | undefined,
  by16: { readonly packed: boolean } | undefined,
): { unpacking: string; product: string } {
  const unpacker = dequantizer(quant);
  const unpacking = `${bytes}\n${unpacker}`;
  if (!by16) return { unpacking, product: `${product}\n${partialPlain}` };
  const runs = [product, LOADS16[quant!]!, by16.packed ? runsPacked : runsFloat, partial16].join("\n");
  if (!ALIGNED.has(quant!)) return { unpacking, product: runs };
  const sizes = unpacker.match(/^const BLOCK_\w+: u32 = .*$/gm)!.join("\n"); // every block type has both
  return { unpacking: `${bytes16}\n${sizes}`, product: runs };
}

function dequantizer(quant: string | undefined): string {
  const found = quant === undefined ? undefined : DEQUANTIZERS[quant];
  if (found) return found;
  const known = Object.keys(DEQUANTIZERS).join(", ");
  throw new AppError("unsupported", `block type ${quant}: the GPU kernels read ${known}`);
}

/** Declared names of a snippet, and the name of its matrix. */
const namesOf = (snippet: string): string[] => [
  "w",
  ...[...snippet.matchAll(/^(?:fn|const|struct) (\w+)/gm)].map(([, name]) => name!), // the group is not optional
];

function numbered(snippet: string, { number, names }: { number: string; names: readonly string[] }): string {
  // `w` is also a component of vectors: those follow a dot.
  return snippet.replace(new RegExp(`(?<!\\.)\\b(${names.join("|")})\\b`, "g"), `$1_${number}`);
}
