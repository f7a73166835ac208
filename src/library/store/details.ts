/**
 * Facts from a GGUF file in the words of model lists: family, size label, quantization label, lengths. Labels:
 * `general.file_type` is llama.cpp's `llama_ftype`.
 */
import type { Gguf } from "../../engine/formats/index.ts";
import { isFileFormat } from "./formats.ts";

export interface GgufDetails {
  /** `gguf`, or the format of the files that the GGUF describes. */
  readonly format: string;
  readonly family: string;
  readonly parameterCount: number;
  /** `1.2B`, `5.8M`, `412K`. */
  readonly parameterSize: string;
  /** `Q4_K_M`, `F16`; `unknown` if the file does not say. */
  readonly fileType: string;
  readonly ctxLen: number | undefined;
  readonly embeddingLen: number | undefined;
}

// prettier-ignore
const FILE_TYPES: Readonly<Record<number, string>> = {
  0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
  13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
  21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
  29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
  39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
};

export function describeGguf(gguf: Pick<Gguf, "metadata" | "tensors">): GgufDetails {
  const { metadata } = gguf;
  const number = (key: string): number | undefined => {
    const value = metadata.get(key);
    return typeof value === "number" ? value : undefined;
  };
  const text = (key: string): string | undefined => {
    const value = metadata.get(key);
    return typeof value === "string" ? value : undefined;
  };
  const architecture = text("general.architecture") ?? "unknown";
  const isOther = isFileFormat(architecture);
  const parameterCount = number("general.parameter_count") ?? countWeights(gguf);
  const fileType = isOther ? text(`${architecture}.weights`) : FILE_TYPES[number("general.file_type") ?? -1];
  return {
    format: isOther ? architecture : "gguf",
    family: (isOther ? text(`${architecture}.model_type`) : undefined) ?? architecture,
    parameterCount,
    parameterSize: sizeLabel(parameterCount),
    fileType: fileType ?? commonType(gguf),
    ctxLen: number(`${architecture}.context_length`),
    embeddingLen: number(`${architecture}.embedding_length`),
  };
}

/** One decimal, unless integral: `5.8M`, `7B`. */
export function sizeLabel(count: number): string {
  for (const [unit, size] of [
    ["B", 1e9],
    ["M", 1e6],
    ["K", 1e3],
  ] as const) {
    if (count >= size) return `${count % size === 0 ? count / size : (count / size).toFixed(1)}${unit}`;
  }
  return String(count);
}

function countWeights({ tensors }: Pick<Gguf, "tensors">): number {
  let count = 0;
  for (const { shape } of tensors.values()) count += shape.reduce((product, length) => product * length, 1);
  return count;
}

/** The block type with the most bytes, for files that do not name their type. */
function commonType({ tensors }: Pick<Gguf, "tensors">): string {
  const bytes = new Map<string, number>();
  for (const { quant, byteLength } of tensors.values())
    bytes.set(quant.name, (bytes.get(quant.name) ?? 0) + byteLength);
  const [most] = [...bytes].sort(([, a], [, b]) => b - a);
  return most ? most[0].toUpperCase() : "unknown";
}
