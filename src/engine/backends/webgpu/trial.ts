/**
 * One product on a device, with random data, run and timed in any tuning: the measurement of a search. Runs take turns
 * at the matrices of a buffer that is larger than a GPU's caches, like a model's weights.
 */
import { groupsOf, type Dispatch, type Operand } from "../../../../kernels/wgsl/dispatch.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { writeParams } from "../../../../kernels/wgsl/params.ts";
import { assert, type Tuning } from "../../../base/index.ts";
import { makeRng } from "../../text/rng.ts";
import { quants, type QuantName } from "../../formats/quant/index.ts";
import type { Step, Weight } from "../../program/step.ts";
import type { Device } from "./device.ts";
import { GRID_MAX } from "./record.ts";
import { MAP_READ, USAGE } from "./usage.ts";
import { PADDING_BYTES } from "./weights.ts";

const MIB = 2 ** 20;
/**
 * Bytes of all matrices together, if a binding can hold them, and the columns and rows of a product, as in a model.
 * A CPU that emulates a GPU gets a size that takes milliseconds.
 */
const TRIAL_SIZES = {
  hardware: { bytes: 256 * MIB, columns: 4096, rows: 512 },
  software: { bytes: 64 * 1024, columns: 32, rows: 8 },
  /** To compare results only. */
  check: { bytes: MIB, columns: 32, rows: 8 },
};
/** Number of results by which two tunings are compared. */
const COMPARED = 4096;
/** Distance between the parameters of two matrices. (WebGPU, minUniformBufferOffsetAlignment) */
const PARAMS_STRIDE = 256;
const PARAMS_BYTES = 64;

/** The block type that has most of a program's bytes, and its row length, a multiple of 256. */
export interface ShapeClass {
  readonly quant: QuantName;
  readonly dim: number;
  /** The program's other block types; absent: none. */
  readonly others?: readonly QuantName[];
}

/** For few rows, limited by memory, or for many. */
export type TrialKind = "few" | "many";

interface Buffers {
  readonly matrix: GPUBuffer;
  readonly x: GPUBuffer;
  readonly y: GPUBuffer;
  readonly batch: GPUBuffer;
  readonly params: GPUBuffer;
  /** For unused operands. */
  readonly none: GPUBuffer;
  /** Two timestamps in nanoseconds. */
  readonly stamps: GPUBuffer;
  readonly readback: GPUBuffer;
}

/** Columns of a result, rows of x by kind, and the number of matrices. */
interface Extents {
  readonly columns: number;
  readonly rows: Readonly<Record<TrialKind, number>>;
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

  /** Throws `too_large` if the device has no room for it. @param checks only compares results: takes little room */
  static async make(device: Device, shape: ShapeClass, checks = false): Promise<Trial> {
    const { maxBufferSize, maxStorageBufferBindingSize } = device.facts.limits;
    const { blockLen, blockBytes } = quants[shape.quant];
    const rowBytes = (shape.dim / blockLen) * blockBytes;
    const size = TRIAL_SIZES[device.facts.software ? "software" : checks ? "check" : "hardware"];
    const room = Math.min(size.bytes, maxBufferSize, maxStorageBufferBindingSize) - PADDING_BYTES;
    const columns = Math.min(size.columns, Math.floor(room / rowBytes));
    const matrices = Math.floor(room / (columns * rowBytes));
    const extents = { columns, rows: { few: 1, many: size.rows }, matrices };
    return new Trial(device, shape, extents, await makeBuffers(device, { dim: shape.dim, rowBytes, extents }));
  }

  /** Compiles the kernels of some tunings at once. A kernel that the device refuses fails when it is timed. */
  async compile(kind: TrialKind, tunings: readonly Tuning[]): Promise<void> {
    await Promise.allSettled(tunings.map((tuning) => this.#pipeline(kind, tuning)));
  }

  #pipeline(kind: TrialKind, tuning: Tuning): Promise<GPUComputePipeline> {
    const { columns, rows } = this.extents;
    const { kernel, quants } = dispatchOf(this.#shape, { kind, tuning, outDim: columns, matrices: 1 });
    return this.#device.pipeline(kernel, quants, { tuning, rows: rows[kind] });
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

  /** The first results of a run. */
  async results(kind: TrialKind, tuning: Tuning): Promise<Float32Array> {
    const bound = await this.#bind(kind, tuning);
    const { y, readback } = this.#buffers;
    const { rows, columns } = this.extents;
    const size = 4 * Math.min(COMPARED, rows[kind] * columns);
    const encoder = this.#device.gpu.createCommandEncoder();
    encoder.clearBuffer(y);
    encodeRuns(encoder.beginComputePass(), bound, 1);
    encoder.copyBufferToBuffer(y, 0, readback, 0, size);
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

  async #bind(kind: TrialKind, tuning: Tuning): Promise<Bound> {
    const { matrix, x, y, batch, params, none } = this.#buffers;
    const { gpu } = this.#device;
    const { columns, matrices, rows: rowsOf } = this.extents;
    const rows = rowsOf[kind];
    const dispatch = dispatchOf(this.#shape, { kind, tuning, outDim: columns, matrices });
    const pipeline = await this.#pipeline(kind, tuning);
    const words = new DataView(new ArrayBuffer(PARAMS_STRIDE * matrices));
    for (let i = 0; i < matrices; i++) {
      const own = { kernel: dispatch.kernel, params: { ...dispatch.params, first: i * columns } };
      writeParams(words, i * PARAMS_STRIDE, own);
    }
    gpu.queue.writeBuffer(params, 0, words.buffer);
    gpu.queue.writeBuffer(batch, 0, Uint32Array.of(rows, rows, 0, 0));
    const bufferOf = (operand: Operand): GPUBuffer => {
      if (operand.kind === "activation") return operand.access === "read" ? x : y;
      if (operand.kind === "matrix") return matrix;
      return operand.kind === "batch" ? batch : none;
    };
    const layout = pipeline.getBindGroupLayout(0);
    const bindings = Array.from({ length: matrices }, (_, i) => {
      const own = { buffer: params, offset: i * PARAMS_STRIDE, size: PARAMS_BYTES };
      const resources = [...dispatch.operands.map((operand) => ({ buffer: bufferOf(operand) })), own];
      return gpu.createBindGroup({ layout, entries: resources.map((resource, binding) => ({ binding, resource })) });
    });
    const folds = Math.ceil(dispatch.grid.x / GRID_MAX);
    const groups = groupsOf(dispatch.grid, { all: rows, wanted: rows });
    return { pipeline, bindings, groups: [Math.ceil(dispatch.grid.x / folds), groups, folds] };
  }
}

function encodeRuns(pass: GPUComputePassEncoder, { pipeline, bindings, groups }: Bound, repeats: number): void {
  pass.setPipeline(pipeline);
  for (let i = 0; i < repeats; i++) {
    pass.setBindGroup(0, bindings[i % bindings.length]);
    pass.dispatchWorkgroups(...groups);
  }
  pass.end();
}

interface Wanted {
  readonly kind: TrialKind;
  readonly tuning: Tuning;
  readonly outDim: number;
  readonly matrices: number;
}

/** y = W · x, lowered as in a program, for the first matrix. */
function dispatchOf({ quant, dim }: ShapeClass, { kind, tuning, outDim, matrices }: Wanted): Dispatch {
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
  const [, product] = lower(steps, { ctxLen: 1, many: kind === "many", piecesOf, tuning });
  assert(product, "a program of two steps has two dispatches");
  return product;
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
  const results = 4 * rows.many * columns;
  const made = await device.allocate("search for the fastest kernels", () => [
    make("trial matrix", matrixBytes, storage | copyDst),
    make("trial x", 4 * rows.many * dim, storage | copyDst),
    make("trial y", results, storage | copySrc | copyDst),
    make("trial batch", 64, storage | copyDst),
    make("trial parameters", PARAMS_STRIDE * matrices, uniform | copyDst),
    make("trial none", 16, storage),
    make("trial times", 16, queryResolve | copySrc),
    make("trial readback", 4 * COMPARED, mapRead | copyDst),
  ]);
  const [matrix, x, y, batch, params, none, stamps, readback] = made as [...typeof made] as GPUBuffer[];
  const buffers = { matrix, x, y, batch, params, none, stamps, readback } as Buffers; // as many as were made
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
