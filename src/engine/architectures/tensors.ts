/**
 * The tensors of a GGUF as weights of steps, with checked shapes. A requested tensor that is missing or has a wrong
 * shape is an error, and so is a tensor that was never requested: no model runs with weights left out.
 */
import type { Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf, TensorInfo } from "../formats/gguf/gguf.ts";
import { i32 } from "../formats/quant/i32.ts";

/** Tensors of encoders and classifiers; factors, which `withFactors` applies; ranges of 4-bit activations. */
const IGNORED = /^(a|v|mm|cls)\.|\.(input_)?scale$/;

interface MatrixShape {
  readonly inDim: number;
  readonly outDim: number;
  /** Stacked matrices; undefined for a tensor of two dimensions. */
  readonly experts?: number;
}

/** A matrix and, if the file has one, its bias. */
export interface Linear {
  readonly w: Weight;
  readonly b?: Weight;
}

export const withoutBias = ({ w }: Linear): Linear => ({ w });

export interface Tensors {
  has(name: string): boolean;
  /** Dimensions of the tensor of exactly this name if the file has it, fastest-varying first. */
  dims(name: string): readonly number[] | undefined;
  /** Dimensions of `NAME.weight` if the file has it, fastest-varying first. */
  shape(name: string): readonly number[] | undefined;
  /** Rows of `NAME.weight`, if the file has it and it is a matrix. */
  rows(name: string): number | undefined;
  /** `NAME.weight` */
  matrix(name: string, shape: MatrixShape): Weight;
  /** The tensor of exactly this name. */
  plain(name: string, shape: MatrixShape): Weight;
  /**
   * The tensor of exactly this name, of any number of dimensions, as a matrix: all but its last dimension form a row.
   */
  kernel(name: string, dims: readonly number[]): Weight;
  /** `NAME.weight` of one dimension. */
  vector(name: string, len: number): Weight;
  /** `NAME.weight`, and `NAME.bias` if the file has it. */
  linear(name: string, shape: MatrixShape): Linear;
  /** `NAME.bias`, if the file has it. */
  bias(name: string, len: number): Weight | undefined;
  /** `NAME.bias` of stacked matrices, (experts, len), if the file has it. */
  stackedBias(name: string, shape: { len: number; experts: number }): Weight | undefined;
  /** A float32 copy of a small `NAME.weight`, if the file has it. */
  values(name: string, ...shape: readonly number[]): Float32Array | undefined;
  /** `NAME.weight`, whole numbers of 0 … `end` − 1. */
  numbers(name: string, shape: readonly number[], end: number): Float32Array;
  /** The only value of the tensor of exactly this name. */
  scalar(name: string): number;
  /** Throws if the file has a tensor that was never requested. Layers from `draftsFrom` on are exempt. */
  checkAllUsed(arch: string, options: { draftsFrom: number }): void;
}

/** @param ignored names of tensors that need not be requested */
export function tensorsOf(gguf: Gguf, ignored: RegExp = IGNORED): Tensors {
  const used = new Set<string>();
  const find = (name: string): TensorInfo | undefined => {
    used.add(name);
    return gguf.tensors.get(name);
  };
  const get = (name: string, shape: readonly number[]): TensorInfo => {
    const info = find(name);
    if (!info) {
      throw new AppError("bad_file", `${gguf.path}: tensor '${name}': expected (${shape.join(", ")}), got none`);
    }
    checkShape(gguf.path, info, shape);
    return info;
  };
  const optional = (name: string, ...shape: readonly number[]): TensorInfo | undefined => {
    const info = find(name);
    if (info) checkShape(gguf.path, info, shape);
    return info;
  };

  const plain: Tensors["plain"] = (name, { inDim, outDim, experts = 1 }) => {
    const { quant } = get(name, experts === 1 ? [inDim, outDim] : [inDim, outDim, experts]);
    return { name, quant, inDim, outDim, rowStart: 0, tensorRows: outDim, experts };
  };
  const matrix: Tensors["matrix"] = (name, shape) => plain(`${name}.weight`, shape);
  const bias: Tensors["bias"] = (name, len) => {
    const info = optional(`${name}.bias`, len);
    return info && vectorOf(info, len);
  };

  return {
    has: (name) => gguf.tensors.has(name),
    dims: (name) => gguf.tensors.get(name)?.shape,
    shape: (name) => gguf.tensors.get(`${name}.weight`)?.shape,
    rows: (name) => gguf.tensors.get(`${name}.weight`)?.shape[1],
    matrix,
    plain,
    kernel: (name, dims) => asMatrix(get(name, dims), dims),
    vector: (name, len) => vectorOf(get(`${name}.weight`, [len]), len),
    linear: (name, shape) => {
      const w = matrix(name, shape);
      const b = bias(name, shape.outDim);
      return b ? { w, b } : { w };
    },
    bias,
    stackedBias: (name, { len, experts }) => {
      const info = find(`${name}.bias`);
      if (info) checkShape(gguf.path, info, [len, experts]);
      return info && { ...vectorOf(info, len), experts };
    },
    values: (name, ...shape) => {
      const info = optional(`${name}.weight`, ...shape);
      return info && copyOf(gguf, info);
    },
    numbers: (name, shape, end) => numbersOf(gguf, find(`${name}.weight`), { name: `${name}.weight`, shape, end }),
    scalar: (name) => copyOf(gguf, get(name, [1]))[0]!, // one by its shape
    checkAllUsed: (arch, { draftsFrom }) => {
      const drafts = (name: string): boolean => Number(/^blk\.(\d+)\./.exec(name)?.[1] ?? -1) >= draftsFrom;
      const extra = [...gguf.tensors.keys()].find((name) => !used.has(name) && !ignored.test(name) && !drafts(name));
      if (extra === undefined) return;
      const why = `'${arch}' has no such weight, and without it the answers would be wrong`;
      throw new AppError("unsupported", `${gguf.path}: tensor '${extra}': ${why}`);
    },
  };
}

/** The values of a tensor whose shape was checked. */
export function copyOf(gguf: Gguf, info: TensorInfo): Float32Array {
  const out = new Float32Array(info.shape.reduce((product, size) => product * size, 1));
  info.quant.dequantize(gguf.read(info.name), out);
  return out;
}

/** The whole numbers in a tensor, each of 0 … `end` − 1. */
function numbersOf(
  gguf: Gguf,
  info: TensorInfo | undefined,
  { name, shape, end }: { name: string; shape: readonly number[]; end: number },
): Float32Array {
  const wrong = (expected: string, got: string): AppError =>
    new AppError("bad_file", `${gguf.path}: tensor '${name}': expected ${expected}, got ${got}`);
  const is = info?.quant.ggmlType === i32.ggmlType && sameShape(info.shape, shape);
  if (!is) {
    const got = info ? `${info.quant.name} of (${info.shape.join(", ")})` : "none";
    throw wrong(`whole numbers of (${shape.join(", ")})`, got);
  }
  const out = copyOf(gguf, info);
  const bad = out.find((value) => value < 0 || value >= end);
  if (bad !== undefined) throw wrong(`whole numbers of 0 … ${end - 1}`, String(bad));
  return out;
}

const sameShape = (shape: readonly number[], expected: readonly number[]): boolean =>
  Array.from({ length: Math.max(shape.length, expected.length) }).every((_, i) => {
    return (shape[i] ?? 1) === (expected[i] ?? 1);
  });

function asMatrix({ name, quant }: TensorInfo, dims: readonly number[]): Weight {
  const outDim = dims.at(-1)!;
  const inDim = dims.slice(0, -1).reduce((product, dim) => product * dim, 1);
  return { name, quant, inDim, outDim, rowStart: 0, tensorRows: outDim, experts: 1 };
}

function vectorOf({ name, quant }: TensorInfo, len: number): Weight {
  return { name, quant, inDim: len, outDim: 1, rowStart: 0, tensorRows: 1, experts: 1 };
}

/** @param expected in GGUF's order, fastest-varying dimension first; trailing dimensions of 1 do not count */
export function checkShape(path: string, { name, shape, quant }: TensorInfo, expected: readonly number[]): void {
  if (quant.unreadable) throw new AppError("unsupported", `${path}: tensor '${name}': ${quant.unreadable}`);
  if (!sameShape(shape, expected)) {
    const got = `(${shape.join(", ")})`;
    throw new AppError("bad_file", `${path}: tensor '${name}': expected (${expected.join(", ")}), got ${got}`);
  }
  if (expected[0]! % quant.blockLen !== 0) {
    const rows = `rows of whole ${quant.name} blocks of ${quant.blockLen}`;
    throw new AppError("bad_file", `${path}: tensor '${name}': expected ${rows}, got rows of ${expected[0]}`);
  }
}
