/**
 * Dispatches and bytes of a model's decode step, counted from its lowered program without running it. For tests and for
 * bench/gpu-step.ts.
 */
import { cacheBytes, cacheTypeOf } from "../../../../kernels/wgsl/cache.ts";
import type { Dispatch, Operand } from "../../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { splitsOf } from "../../../../kernels/wgsl/splits.ts";
import type { Program } from "../../../../src/engine/program/backend.ts";
import type { Step, Weight } from "../../../../src/engine/program/step.ts";
import { rowBytesOf } from "../../../../src/engine/formats/quant/blocks.ts";
import { vectorLength } from "../../../../src/engine/backends/webgpu/weights.ts";

type Attention = Extract<Step, { op: "attention" }>;

interface DecodeStep {
  /** Dispatches of one row at `position`, in order. */
  readonly dispatches: readonly Dispatch[];
  /** Kernels from each attention up to the next: one list fewer than layers. */
  readonly layers: readonly (readonly string[])[];
  /** Bytes that it reads and writes, each operand of a dispatch once. */
  readonly moved: number;
  /** Bytes of the needed weights, each once: only the experts that the row chooses. */
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
  const cacheType = cacheTypeOf(steps, { precise: false });
  const all = fuse(lower(steps, { ctxLen, cacheType, isGemm: false, piecesOf }), results);
  const dispatches = all.filter(({ grid }) => !grid.repeats && (!grid.joins || splitsOf(position + 1) > 1));
  /** A tensor's bytes that a step reads for one row. */
  const bytesOf = (name: string, index: number): number => {
    const weight = tensors.get(name)!; // lowering requested its pieces
    const step = steps[index];
    const experts = step?.op === "moe" && weight.experts > 1 ? step.nUsed : weight.experts;
    return experts * weight.tensorRows * rowBytesOf(weight);
  };
  const matrices = dispatches.flatMap(({ kernel, operands, step }) => {
    const names = new Set(operands.flatMap((operand) => (operand.kind === "matrix" ? [operand.tensor] : [])));
    // An embedding reads one of thousands of rows of its table: it is ignored.
    return kernel === "embed" ? [] : [...names].map((name) => ({ name, bytes: bytesOf(name, step) }));
  });
  const once = new Map(matrices.map(({ name, bytes }) => [name, bytes]));
  const vectors = sum(dispatches.flatMap(({ operands }) => operands.map(vectorBytes)));
  const activations = sum(
    dispatches.flatMap(({ operands, step }) => {
      const share = partsUsed(steps[step]!, { ctxLen, position });
      return operands.map((operand) => (isParts(operand) ? share : 1) * activationBytes(operand));
    }),
  );
  const kvBytes = ({ nKvHeads, headDim, window }: Attention): number =>
    2 * nKvHeads * cacheBytes(cacheType, headDim) * seen(window, position + 1);
  const kv = sum(steps.map((step) => (step.op === "attention" ? kvBytes(step) : 0)));
  return {
    dispatches,
    layers: layersOf(dispatches),
    moved: sum(matrices.map(({ bytes }) => bytes)) + vectors + activations + kv,
    weights: sum([...once.values()]) + vectors,
  };
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function layersOf(dispatches: readonly Dispatch[]): string[][] {
  const at = dispatches.flatMap(({ kernel }, i) => (kernel.endsWith("attention") ? [i] : []));
  return at.slice(1).map((end, i) => dispatches.slice(at[i], end).map(({ kernel }) => kernel));
}

/** Norms, biases and factors are small, and read directly. */
function vectorBytes(operand: Operand): number {
  if (operand.kind === "vector") return 4 * (operand.weight?.inDim ?? 0);
  if (operand.kind === "vectors") return 4 * sum(operand.weights.map(vectorLength));
  return operand.kind === "constant" ? (operand.values?.byteLength ?? 0) : 0;
}

const activationBytes = (operand: Operand): number =>
  operand.kind === "activation" ? 4 * operand.value.buf.dim * operand.value.times : 0;

/** Partial results of attention's splits, if a row sees several. */
const isParts = (operand: Operand): boolean =>
  operand.kind === "activation" && operand.value.buf.name === "attention.parts";

/** Share of the room for partial results that is used at a position. */
function partsUsed(step: Step, { ctxLen, position }: { ctxLen: number; position: number }): number {
  if (step.op !== "attention") return 0;
  const splits = splitsOf(seen(step.window, position + 1));
  return splits === 1 ? 0 : splits / splitsOf(seen(step.window, ctxLen));
}

/** Number of these positions that are inside the window. */
const seen = (window: number, positions: number): number => (window > 0 ? Math.min(window, positions) : positions);
