/**
 * What a decode step of a model dispatches and moves, from its lowered program: counted, not run. For tests and for
 * bench/gpu-step.ts.
 */
import type { Dispatch, Operand } from "../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../kernels/wgsl/lower.ts";
import { splitsOf } from "../../../kernels/wgsl/splits.ts";
import type { Program } from "../../../src/backend/backend.ts";
import type { Weight } from "../../../src/backend/step.ts";
import { rowBytesOf, vectorLength } from "../../../src/backend/webgpu/weights.ts";

interface DecodeStep {
  /** Those of one row at `position`, in order. */
  readonly dispatches: readonly Dispatch[];
  /** Kernels from each attention up to the next: as many as there are layers, less one. */
  readonly layers: readonly (readonly string[])[];
  /** Bytes that it reads and writes, each operand of a dispatch once. */
  readonly moved: number;
  /** Bytes of the weights that it needs, each once: of experts those that the row chooses. */
  readonly weights: number;
}

export function decodeStepOf(program: Program, { ctxLen, position }: { ctxLen: number; position: number }): DecodeStep {
  const { steps, states, logits } = program;
  const tensors = new Map<string, Weight>();
  const piecesOf = (weight: Weight) => {
    tensors.set(weight.name, weight);
    return [{ index: 0, first: 0, count: weight.tensorRows * weight.experts }];
  };
  const results = [states.name, logits?.name ?? states.name];
  const all = fuse(lower(steps, { ctxLen, many: false, piecesOf }), results);
  const dispatches = all.filter(({ grid }) => !grid.joins || splitsOf(position + 1) > 1);
  /** A tensor's bytes that a step reads for one row. */
  const bytesOf = (name: string, index: number): number => {
    const weight = tensors.get(name)!; // lowering asked for its pieces
    const step = steps[index];
    const experts = step?.op === "moe" && weight.experts > 1 ? step.nUsed : weight.experts;
    return experts * weight.tensorRows * rowBytesOf(weight);
  };
  const matrices = dispatches.flatMap(({ kernel, operands, step }) => {
    const names = new Set(operands.flatMap((operand) => (operand.kind === "matrix" ? [operand.tensor] : [])));
    // An embedding reads one row of its table, of some thousand: it is left out.
    return kernel === "embed" ? [] : [...names].map((name) => ({ name, bytes: bytesOf(name, step) }));
  });
  const once = new Map(matrices.map(({ name, bytes }) => [name, bytes]));
  const operands = dispatches.flatMap((dispatch) => dispatch.operands);
  const vectors = sum(operands.map(vectorBytes));
  const kv = sum(steps.map((step) => (step.op === "attention" ? 8 * step.nKvHeads * step.headDim : 0)));
  return {
    dispatches,
    layers: layersOf(dispatches),
    moved: sum(matrices.map(({ bytes }) => bytes)) + vectors + sum(operands.map(activationBytes)) + kv * (position + 1),
    weights: sum([...once.values()]) + vectors,
  };
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function layersOf(dispatches: readonly Dispatch[]): string[][] {
  const at = dispatches.flatMap(({ kernel }, i) => (kernel === "attention" ? [i] : []));
  return at.slice(1).map((end, i) => dispatches.slice(at[i], end).map(({ kernel }) => kernel));
}

/** Norms, biases and factors are small, and read where they are used. */
function vectorBytes(operand: Operand): number {
  if (operand.kind === "vector") return 4 * (operand.weight?.inDim ?? 0);
  if (operand.kind === "vectors") return 4 * sum(operand.weights.map(vectorLength));
  return operand.kind === "constant" ? (operand.values?.byteLength ?? 0) : 0;
}

function activationBytes(operand: Operand): number {
  // Attention leaves parts of long contexts only, and few.
  if (operand.kind !== "activation" || operand.value.buf.name === "attention.parts") return 0;
  return 4 * operand.value.buf.dim * operand.value.times;
}
