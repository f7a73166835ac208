/**
 * One product on a device, with random data, run and timed in any tuning: the measurement of a search. Runs take turns
 * at the matrices of a buffer that is larger than a GPU's caches, like a model's weights.
 */
import { groupsOf, type Dispatch, type Operand } from "../../../../kernels/wgsl/dispatch.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { writeParams } from "../../../../kernels/wgsl/params.ts";
import type { SubgroupMatrix, Tuning } from "../../../base/index.ts";
import { makeRng } from "../../text/rng.ts";
import { quants, type QuantName } from "../../formats/quant/index.ts";
import type { Step, Weight } from "../../program/step.ts";
import type { Device } from "./device.ts";
import { GRID_MAX } from "./record.ts";
import { MAP_READ, USAGE } from "./usage.ts";
import { PADDING_BYTES } from "./weights.ts";

const MIB = 2 ** 20;
/**
 * Bytes of all matrices together, if a binding can hold them, and the columns and rows of a product, as in a model. A
 * CPU that emulates a GPU gets a size that takes milliseconds.
 */
const TRIAL_SIZES = {
  hardware: { bytes: 256 * MIB, columns: 4096, rows: 512 },
  software: { bytes: 64 * 1024, columns: 32, rows: 8 },
  /** To compare results only. */
  check: { bytes: MIB, columns: 128, rows: 64 },
};
/**
 * Number of results by which two tunings are compared, and how many of them are neighbours. A step of 9 rows between
 * samples reaches every row of a tile.
 */
const COMPARED = 4096;
const PIECE = { columns: 64, step: 9 };
/** Distance between the parameters of two matrices. (WebGPU, minUniformBufferOffsetAlignment) */
const PARAMS_STRIDE = 256;
const PARAMS_BYTES = 64;
/** Maximum dispatches of a run, and bytes per value as a half, including its row's power of two. */
const DISPATCHES_MAX = 3;
const HALVES_BYTES_MAX = 3;

/** The block type that has most of a program's bytes, and its row length, a multiple of 256. */
export interface ShapeClass {
  readonly quant: QuantName;
  readonly dim: number;
  /** The program's other block types; absent: none. */
  readonly others?: readonly QuantName[];
}

/** Few rows (matrix by vector), limited by memory bandwidth, or many (matrix by matrix). */
export type TrialKind = "gemv" | "gemm";
/** Products whose results are compared: also products of experts, with many rows. */
export type CheckKind = TrialKind | "experts";
/** Experts of a trial: each multiplies its own part of all rows. */
const EXPERTS = 2;

interface Buffers {
  readonly matrix: GPUBuffer;
  readonly x: GPUBuffer;
  /** x for subgroup matrices. */
  readonly halves: GPUBuffer;
  /** Choices of experts and their tiles: see moe_group.wgsl. */
  readonly order: GPUBuffer;
  readonly tiles: GPUBuffer;
  readonly y: GPUBuffer;
  readonly batch: GPUBuffer;
  readonly params: GPUBuffer;
  /** For unused operands. */
  readonly none: GPUBuffer;
  /** Two timestamps in nanoseconds. */
  readonly stamps: GPUBuffer;
  readonly readback: GPUBuffer;
}

/** Columns of a result, rows of x by kind, and number of matrices. */
interface Extents {
  readonly columns: number;
  readonly rows: Readonly<Record<CheckKind, number>>;
  readonly matrices: number;
}

/** A kernel with everything bound, for each matrix. */
interface Bound {
  readonly pipeline: GPUComputePipeline;
  readonly bindings: readonly GPUBindGroup[];
  readonly groups: readonly [number, number, number];
}

/** Owns its buffers; `destroy` frees them. */
export class Trial {
  readonly #device: Device;
  readonly #shape: ShapeClass;
  readonly extents: Extents;
  readonly #buffers: Buffers;
  readonly #stamps: GPUQuerySet | undefined;

  private constructor(device: Device, shape: ShapeClass, extents: Extents, buffers: Buffers) {
    this.#device = device;
    this.#shape = shape;
    this.extents = extents;
    this.#buffers = buffers;
    const canStamp = device.gpu.features.has("timestamp-query");
    this.#stamps = canStamp ? device.gpu.createQuerySet({ type: "timestamp", count: 2 }) : undefined;
  }

  /**
   * Throws `too_large` if the device has no room for it. @param checks compares results only, which takes little room
   */
  static async make(device: Device, shape: ShapeClass, checks = false): Promise<Trial> {
    const { maxBufferSize, maxStorageBufferBindingSize } = device.facts.limits;
    const { blockLen, blockBytes } = quants[shape.quant];
    const rowBytes = (shape.dim / blockLen) * blockBytes;
    const size = TRIAL_SIZES[device.facts.software ? "software" : checks ? "check" : "hardware"];
    const room = Math.min(size.bytes, maxBufferSize, maxStorageBufferBindingSize) - PADDING_BYTES;
    const columns = Math.min(size.columns, Math.floor(room / rowBytes));
    const matrices = Math.floor(room / (columns * rowBytes));
    const extents = { columns, rows: { gemv: 1, gemm: size.rows, experts: size.rows / EXPERTS }, matrices };
    return new Trial(device, shape, extents, await makeBuffers(device, { dim: shape.dim, rowBytes, extents }));
  }

  /** Compiles the kernels of some tunings at once. A kernel that the device refuses fails when it is timed. */
  async compile(kind: CheckKind, tunings: readonly Tuning[]): Promise<void> {
    await Promise.allSettled(tunings.map((tuning) => this.#pipelines(kind, tuning)));
  }

  #dispatches(kind: CheckKind, tuning: Tuning): Dispatch[] {
    const { columns, matrices } = this.extents;
    const wanted = { kind, tuning, outDim: columns, matrices, matrix: this.#device.matrix };
    return kind === "experts" ? expertsOf(this.#shape, wanted) : dispatchesOf(this.#shape, wanted);
  }

  #pipelines(kind: CheckKind, tuning: Tuning): Promise<GPUComputePipeline[]> {
    const variant = { tuning, rows: this.extents.rows[kind] };
    return Promise.all(
      this.#dispatches(kind, tuning).map(({ kernel, quants }) => this.#device.pipeline(kernel, quants, variant)),
    );
  }

  /** Milliseconds of `repeats` runs in sequence. Throws `unsupported` if the device refuses the kernel. */
  async time(kind: TrialKind, tuning: Tuning, repeats: number): Promise<number> {
    const bound = await this.#bind(kind, tuning);
    const { stamps, readback } = this.#buffers;
    const set = this.#stamps;
    const encoder = this.#device.gpu.createCommandEncoder();
    const stamping = set && {
      timestampWrites: { querySet: set, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 },
    };
    encodeRuns(encoder.beginComputePass(stamping), bound, repeats);
    if (set) {
      encoder.resolveQuerySet(set, 0, 2, stamps, 0);
      encoder.copyBufferToBuffer(stamps, 0, readback, 0, 16);
    }
    const start = performance.now();
    this.#device.submit(encoder.finish());
    await this.#device.wait(() => this.#device.gpu.queue.onSubmittedWorkDone());
    const wallMs = performance.now() - start;
    if (!set) return wallMs;
    const [begin, end] = new BigUint64Array(await this.#read(16)) as unknown as [bigint, bigint]; // sixteen bytes
    return end > begin ? Number(end - begin) / 1e6 : wallMs; // some devices reset their clocks
  }

  /** Some results of a run, from every row of a tile. */
  async results(kind: CheckKind, tuning: Tuning): Promise<Float32Array> {
    const bound = await this.#bind(kind, tuning);
    const { y, readback } = this.#buffers;
    const { rows, columns } = this.extents;
    const pieces = piecesOf(rows[kind], kind === "experts" ? EXPERTS * Math.floor(columns / EXPERTS) : columns);
    const encoder = this.#device.gpu.createCommandEncoder();
    encoder.clearBuffer(y);
    encodeRuns(encoder.beginComputePass(), bound, 1);
    let size = 0;
    for (const { at, length } of pieces) {
      encoder.copyBufferToBuffer(y, 4 * at, readback, size, 4 * length);
      size += 4 * length;
    }
    this.#device.submit(encoder.finish());
    return new Float32Array(await this.#read(size));
  }

  destroy(): void {
    for (const buffer of Object.values(this.#buffers)) buffer.destroy();
    this.#stamps?.destroy();
  }

  async #read(size: number): Promise<ArrayBuffer> {
    const { readback } = this.#buffers;
    await this.#device.wait(() => readback.mapAsync(MAP_READ, 0, size));
    const bytes = readback.getMappedRange(0, size).slice(0);
    readback.unmap();
    return bytes;
  }

  async #bind(kind: CheckKind, tuning: Tuning): Promise<Bound[]> {
    const { params, batch } = this.#buffers;
    const { gpu } = this.#device;
    const { columns, matrices, rows: rowsOf } = this.extents;
    const rows = rowsOf[kind];
    const pipelines = await this.#pipelines(kind, tuning);
    gpu.queue.writeBuffer(batch, 0, Uint32Array.of(rows, rows, 0, 0));
    return this.#dispatches(kind, tuning).map((dispatch, at) => {
      const { kernel, params: values, grid } = dispatch;
      const pipeline = pipelines[at]!; // one for each dispatch
      const words = new DataView(new ArrayBuffer(PARAMS_STRIDE * matrices));
      for (let i = 0; i < matrices; i++) {
        const first = "first" in values ? { first: i * columns } : {};
        writeParams(words, i * PARAMS_STRIDE, { kernel, params: { ...values, ...first } });
      }
      const offset = at * words.byteLength;
      gpu.queue.writeBuffer(params, offset, words.buffer);
      const layout = pipeline.getBindGroupLayout(0);
      const bindings = Array.from({ length: matrices }, (_, i) => {
        const own = { buffer: params, offset: offset + i * PARAMS_STRIDE, size: PARAMS_BYTES };
        const resources = [...dispatch.operands.map((operand) => ({ buffer: this.#bufferOf(operand) })), own];
        return gpu.createBindGroup({ layout, entries: resources.map((resource, binding) => ({ binding, resource })) });
      });
      const folds = Math.ceil(grid.x / GRID_MAX);
      return {
        pipeline,
        bindings,
        groups: [Math.ceil(grid.x / folds), groupsOf(grid, { all: rows, wanted: rows }), folds],
      };
    });
  }

  #bufferOf(operand: Operand): GPUBuffer {
    const { matrix, x, y, halves, order, tiles, batch, none } = this.#buffers;
    const named: Readonly<Record<string, GPUBuffer>> = { x, y, "moe.order": order, "moe.tiles": tiles };
    if (operand.kind === "activation") return named[operand.value.buf.name] ?? halves;
    if (operand.kind === "matrix") return matrix;
    return operand.kind === "batch" ? batch : none;
  }
}

/** The compared parts of (rows, columns) results: where each begins, and its length. */
function piecesOf(rows: number, columns: number): { at: number; length: number }[] {
  if (rows === 1) return [{ at: 0, length: Math.min(COMPARED, columns) }];
  const length = Math.min(PIECE.columns, columns);
  const across = Math.floor(columns / length);
  return Array.from({ length: Math.min(COMPARED / PIECE.columns, rows) }, (_, i) => {
    return { at: ((PIECE.step * i) % rows) * columns + (i % across) * length, length };
  });
}

function encodeRuns(pass: GPUComputePassEncoder, bound: readonly Bound[], repeats: number): void {
  for (let i = 0; i < repeats; i++) {
    for (const { pipeline, bindings, groups } of bound) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bindings[i % bindings.length]);
      pass.dispatchWorkgroups(...groups);
    }
  }
  pass.end();
}

interface Wanted {
  readonly kind: CheckKind;
  readonly tuning: Tuning;
  readonly outDim: number;
  readonly matrices: number;
  readonly matrix: SubgroupMatrix | undefined;
}

/** y = W · x, lowered as in a program, for the first matrix. */
function dispatchesOf({ quant, dim }: ShapeClass, { kind, tuning, outDim, matrices, matrix }: Wanted): Dispatch[] {
  const w: Weight = {
    name: "w",
    quant: quants[quant],
    inDim: dim,
    outDim,
    rowStart: 0,
    tensorRows: matrices * outDim,
    experts: 1,
  };
  const x = { name: "x", dim };
  const steps: Step[] = [
    { op: "input", out: x },
    { op: "linear", out: { name: "y", dim: outDim }, x, w },
  ];
  const piecesOf = () => [{ index: 0, first: 0, count: matrices * outDim }];
  return lower(steps, { ctxLen: 1, isGemm: kind === "gemm", piecesOf, tuning, matrix }).slice(1); // without the input
}

/** The products of some experts, of matrices that lie one after another. */
function expertsOf({ quant, dim }: ShapeClass, { tuning, outDim: columns, matrix }: Wanted): Dispatch[] {
  const outDim = Math.floor(columns / EXPERTS);
  const sizes = { inDim: dim, outDim, rowStart: 0, tensorRows: outDim, experts: EXPERTS };
  const w: Weight = { name: "w", quant: quants[quant], ...sizes };
  const x = { name: "x", dim: EXPERTS * dim };
  const steps: Step[] = [
    { op: "input", out: x },
    { op: "headLinear", out: { name: "y", dim: EXPERTS * outDim }, x, w, transposed: false },
  ];
  const piecesOf = () => [{ index: 0, first: 0, count: EXPERTS * outDim }];
  return lower(steps, { ctxLen: 1, isGemm: true, piecesOf, tuning, matrix }).slice(1); // without the input
}

async function makeBuffers(
  device: Device,
  { dim, rowBytes, extents: { columns, rows, matrices } }: { dim: number; rowBytes: number; extents: Extents },
): Promise<Buffers> {
  const { storage, uniform, copyDst, copySrc, mapRead, queryResolve } = USAGE;
  const { gpu } = device;
  const make = (label: string, size: number, usage: number): GPUBuffer =>
    gpu.createBuffer({ label, size: Math.ceil(size / 16) * 16, usage });
  const matrixBytes = rowBytes * columns * matrices + PADDING_BYTES;
  const results = 4 * rows.gemm * columns;
  const sizes: readonly (readonly [keyof Buffers, bytes: number, usage: number])[] = [
    ["matrix", matrixBytes, storage | copyDst],
    ["x", 4 * rows.gemm * dim, storage | copyDst],
    ["halves", device.matrix ? HALVES_BYTES_MAX * rows.gemm * dim : 16, storage],
    ["order", 4 * rows.gemm, storage],
    ["tiles", 16 * rows.gemm, storage],
    ["y", results, storage | copySrc | copyDst],
    ["batch", 64, storage | copyDst],
    ["params", DISPATCHES_MAX * PARAMS_STRIDE * matrices, uniform | copyDst],
    ["none", 16, storage],
    ["stamps", 16, queryResolve | copySrc],
    ["readback", 4 * COMPARED, mapRead | copyDst],
  ];
  const made = await device.allocate("search for the fastest kernels", () =>
    sizes.map(([name, bytes, usage]) => make(`trial ${name}`, bytes, usage)),
  );
  const buffers = Object.fromEntries(sizes.map(([name], i) => [name, made[i]])) as unknown as Buffers; // each is named
  fill(device, buffers);
  return buffers;
}

/** Random data. The matrix's bytes make small float16 scales, and no block type decodes to NaN. */
function fill({ gpu }: Device, { matrix, x }: Buffers): void {
  const rng = makeRng(1);
  const bytes = Uint8Array.from({ length: MIB }, () => 0x20 | (rng.uint32() & 15));
  const source = gpu.createBuffer({ label: "trial source", size: MIB, usage: USAGE.copySrc | USAGE.copyDst });
  gpu.queue.writeBuffer(source, 0, bytes);
  const encoder = gpu.createCommandEncoder();
  for (let at = 0; at < matrix.size; at += MIB)
    encoder.copyBufferToBuffer(source, 0, matrix, at, Math.min(MIB, matrix.size - at));
  gpu.queue.submit([encoder.finish()]);
  source.destroy();
  gpu.queue.writeBuffer(
    x,
    0,
    Float32Array.from({ length: x.size / 4 }, () => 2 * rng.float() - 1),
  );
}
