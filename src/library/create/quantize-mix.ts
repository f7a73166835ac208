/**
 * Chooses each tensor's block type for a file type such as Q4_K_M: mixes spend more bits on the tensors that errors
 * hurt most. The rules are llama.cpp's (`llama_tensor_get_type_impl`, `tensor_allows_quantization` and
 * `tensor_type_fallback` in llama-quant.cpp, without importance matrix), so the output equals that of `llama-quantize`.
 */
import { AppError } from "../../base/index.ts";
import {
  i32,
  type Metadata,
  type ModelHeader,
  type QuantName,
  quants,
  type TensorInfo,
} from "../../engine/formats/index.ts";

/** File types: `llama_ftype`, and the type of tensors without a rule (`llama_ftype_get_default_type`). */
const FILE_TYPES = {
  F32: { id: 0, base: "f32" },
  F16: { id: 1, base: "f16" },
  BF16: { id: 32, base: "bf16" },
  Q4_0: { id: 2, base: "q4_0" },
  Q4_1: { id: 3, base: "q4_1" },
  Q5_0: { id: 8, base: "q5_0" },
  Q5_1: { id: 9, base: "q5_1" },
  Q8_0: { id: 7, base: "q8_0" },
  Q2_K: { id: 10, base: "q2_K" },
  Q3_K_S: { id: 11, base: "q3_K" },
  Q3_K_M: { id: 12, base: "q3_K" },
  Q3_K_L: { id: 13, base: "q3_K" },
  Q4_K_S: { id: 14, base: "q4_K" },
  Q4_K_M: { id: 15, base: "q4_K" },
  Q5_K_S: { id: 16, base: "q5_K" },
  Q5_K_M: { id: 17, base: "q5_K" },
  Q6_K: { id: 18, base: "q6_K" },
} as const satisfies Record<string, { id: number; base: QuantName }>;

export type FileTypeName = keyof typeof FILE_TYPES;

/** Abbreviations that `llama-quantize` accepts, too. */
const ALIASES: Readonly<Record<string, FileTypeName>> = { Q3_K: "Q3_K_M", Q4_K: "Q4_K_M", Q5_K: "Q5_K_M" };

/** The file type of a name, in any case. Throws `bad_request` with the text that clients expect. */
export function parseFileType(text: string): FileTypeName {
  const name = text.toUpperCase();
  if (Object.hasOwn(FILE_TYPES, name)) return name as FileTypeName; // a key of the table
  const alias = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined;
  if (alias) return alias;
  const supported = Object.keys(FILE_TYPES).join(", ");
  throw new AppError("bad_request", `unsupported quantization type ${name} - supported types are ${supported}`);
}

/** `general.file_type` */
export const fileTypeId = (name: FileTypeName): number => FILE_TYPES[name].id;

/** Facts on a model that the rules use. */
interface Facts {
  readonly fileType: FileTypeName;
  readonly falcon: boolean;
  /** Query heads per key head. */
  readonly sharing: number;
  readonly nExperts: number;
  readonly nLayers: number;
  /** Tensors of the category "value". */
  readonly nValues: number;
  /** The token embedding is also the output matrix. */
  readonly tied: boolean;
  /** 80 layers with shared key heads: models of 70 B, whose value matrices are small. */
  readonly is70B: boolean;
}

/** Running counts per category; llama.cpp uses them as layer numbers. */
interface Counts {
  values: number;
  downs: number;
}

/** Throws `bad_request`, with the text that clients expect, if a tensor is quantized already. */
export function checkUnquantized(tensors: ModelHeader["tensors"]): void {
  for (const { quant } of tensors.values()) {
    if (["f32", "f16", "bf16", i32.name].includes(quant.name)) continue;
    throw new AppError("bad_request", "quantization is only supported for F16, BF16 and F32 models");
  }
}

/**
 * The block type of every tensor.
 * Throws `bad_request` if a tensor is quantized already: lost precision does not come back.
 */
export function chooseTypes(model: Pick<ModelHeader, "metadata" | "tensors">, fileType: FileTypeName) {
  checkUnquantized(model.tensors);
  const facts = factsOf(model, fileType);
  const counts: Counts = { values: 0, downs: 0 };
  const types = new Map<string, QuantName>();
  for (const tensor of [...model.tensors.values()].sort(byLayer)) types.set(tensor.name, typeOf(tensor, facts, counts));
  return types;
}

function typeOf(tensor: TensorInfo, facts: Facts, counts: Counts): QuantName {
  const { base } = FILE_TYPES[facts.fileType];
  if (tensor.quant === i32) return "f32"; // a table is copied: its numbers are as wide
  if (!isQuantizable(tensor)) return tensor.quant.name as QuantName; // one of three float types: checked above
  if (quants[base].blockLen === 1) return base;
  return fitRows(tensor, mixed(tensor, facts, counts));
}

/** `weight_name_comparer`, llama-model-loader.h: tensors outside layers first. */
function byLayer(a: TensorInfo, b: TensorInfo): number {
  return (layerOf(a.name) ?? -1) - (layerOf(b.name) ?? -1) || (a.name < b.name ? -1 : 1);
}

function layerOf(name: string): number | undefined {
  const layer = /^blk\.(\d+)\./.exec(name);
  return layer ? Number(layer[1]) : undefined;
}

function factsOf({ metadata, tensors }: Pick<ModelHeader, "metadata" | "tensors">, fileType: FileTypeName): Facts {
  const arch = metadata.get("general.architecture");
  const number = (key: string, fallback: number): number => firstNumber(metadata, `${String(arch)}.${key}`, fallback);
  const nHeads = number("attention.head_count", 0);
  const nKvHeads = number("attention.head_count_kv", nHeads);
  const nLayers = number("block_count", 0);
  return {
    fileType,
    falcon: arch === "falcon",
    sharing: nKvHeads > 0 ? Math.floor(nHeads / nKvHeads) : 0,
    nExperts: number("expert_count", 0),
    nLayers,
    nValues: [...tensors.keys()].filter(isValue).length,
    tied: !tensors.has("output.weight"),
    is70B: nLayers === 80 && (arch === "qwen2" || arch === "deci" || (arch === "llama" && nHeads !== nKvHeads)),
  };
}

/** A number, or the first of an array with one per layer. */
function firstNumber(metadata: Metadata, key: string, fallback: number): number {
  const value = metadata.get(key);
  const first = ArrayBuffer.isView(value) ? value[0] : value;
  return typeof first === "number" ? first : fallback;
}

/** Parts of names whose tensors keep their type: small, or needed as floats. */
const KEPT = [
  "_norm.weight",
  "ffn_gate_inp.weight",
  "ffn_gate_tid2eid.weight",
  "altup",
  "laurel",
  "per_layer_model_proj",
  "ssm_conv1d",
  "shortconv.conv.weight",
  "indexer.k_proj.weight",
  "indexer.q_proj.weight",
  "time_mix_first.weight",
  "time_mix_lerp_fused.weight",
  "attn_rel_b.weight",
  ".position_embd",
  "sam.pos_embd",
  "sam.neck.",
  "sam.net_",
  ".rel_pos",
  ".patch_embd",
  ".patch_merger",
  "a.rvq.codebook",
  "mm.a.code_embd",
] as const;
const KEPT_RWKV = /time_mix_(w[0-2]|v[0-2]|a[0-2]|g[12]|decay_w[12])\.weight/;

function isQuantizable({ name, shape }: TensorInfo): boolean {
  if (shape.findLastIndex((size) => size > 1) < 1) return false; // vectors
  if (!name.endsWith("weight") || name === "position_embd.weight" || name === "token_types.weight") return false;
  return !KEPT.some((part) => name.includes(part)) && !KEPT_RWKV.test(name);
}

const isValue = (name: string): boolean => /attn_(v|qkv|kv_b)\.weight/.test(name) && name !== "output.weight";

function mixed({ name, shape }: TensorInfo, facts: Facts, counts: Counts): QuantName {
  const { base } = FILE_TYPES[facts.fileType];
  const isEmbedding = name === "token_embd.weight" || name === "per_layer_token_embd.weight";
  if (name === "output.weight" || (isEmbedding && facts.tied)) {
    if (facts.falcon || shape[0]! % quants[base].blockLen !== 0) return "q8_0"; // every tensor has a dimension
    return base === "q8_0" ? base : "q6_K";
  }
  if (isEmbedding) return base;
  if (isValue(name)) return valueType(base, facts, counts.values++);
  if (name.includes("attn_k.weight")) return facts.nExperts === 8 ? "q8_0" : base;
  if (name.includes("attn_q.weight")) return base;
  if (name.includes("attn_output.weight")) return attentionOutputType(base, facts);
  if (name.includes("ffn_up") || name.includes("ffn_gate")) return base;
  if (!name.includes("ffn_down")) return base;
  const seen = counts.downs++;
  return downType(base, facts, facts.nExperts > 1 ? (layerOf(name) ?? seen) : seen);
}

/** True for every third layer, and the first and last eighth. */
function moreBits(layer: number, nLayers: number): boolean {
  const eighth = Math.floor(nLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * nLayers) / 8) || (layer - eighth) % 3 === 2;
}

function valueType(base: QuantName, facts: Facts, index: number): QuantName {
  if (facts.nExperts === 8) return "q8_0";
  const type = valueMix(base, facts, index);
  return facts.is70B && (type === "q3_K" || type === "q4_K") ? "q5_K" : type;
}

function valueMix(base: QuantName, { fileType, sharing, nValues }: Facts, index: number): QuantName {
  switch (fileType) {
    case "Q2_K":
      return sharing >= 4 ? "q4_K" : "q3_K";
    case "Q3_K_M":
      return index < 2 ? "q5_K" : "q4_K";
    case "Q3_K_L":
      return "q5_K";
    case "Q4_K_S":
      return index < 4 ? "q5_K" : base;
    case "Q4_K_M":
    case "Q5_K_M":
      return moreBits(index, nValues) ? "q6_K" : base;
    default:
      return base;
  }
}

function downType(base: QuantName, { fileType, falcon, nLayers }: Facts, layer: number): QuantName {
  const more = moreBits(layer, nLayers);
  const first16th = layer < Math.floor(nLayers / 16);
  switch (fileType) {
    case "Q2_K":
      return "q3_K";
    case "Q3_K_M":
      return first16th ? "q5_K" : !falcon || more ? "q4_K" : base;
    case "Q3_K_L":
      return falcon ? "q4_K" : "q5_K";
    case "Q4_K_S":
      return !falcon && layer < Math.floor(nLayers / 8) ? "q5_K" : base;
    case "Q4_K_M":
      if (falcon) return first16th ? "q6_K" : more ? "q5_K" : base;
      return more ? "q6_K" : base;
    case "Q5_K_M":
      return more ? "q6_K" : base;
    default:
      return base;
  }
}

function attentionOutputType(base: QuantName, { fileType, falcon, nExperts }: Facts): QuantName {
  if (falcon) return fileType === "Q3_K_L" ? "q4_K" : base;
  if (nExperts === 8) return ["Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M"].includes(fileType) ? "q5_K" : base;
  switch (fileType) {
    case "Q2_K":
      return "q3_K";
    case "Q3_K_M":
      return "q4_K";
    case "Q3_K_L":
      return "q5_K";
    default:
      return base;
  }
}

/**
 * Types with blocks of 32 weights and similar size, for rows that are not a multiple of 256 (`tensor_type_fallback`).
 */
const FALLBACKS: Readonly<Partial<Record<QuantName, QuantName>>> = {
  q2_K: "q4_0",
  q3_K: "q4_0",
  q4_K: "q5_0",
  q5_K: "q5_1",
  q6_K: "q8_0",
};

function fitRows({ shape }: TensorInfo, type: QuantName): QuantName {
  const fits = (candidate: QuantName): boolean => shape[0]! % quants[candidate].blockLen === 0;
  if (fits(type)) return type;
  const fallback = FALLBACKS[type];
  return fallback && fits(fallback) ? fallback : "f16";
}
