/** Attention of one prompt on a device, with random data, run and timed in any tuning. */
import { batchWords, writeBatch } from "../../../../kernels/wgsl/batch.ts";
import { cacheBytes, type CacheType } from "../../../../kernels/wgsl/cache.ts";
import { groupsOf, type Dispatch, type Operand } from "../../../../kernels/wgsl/dispatch.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { writeParams } from "../../../../kernels/wgsl/params.ts";
import type { Tuning } from "../../../base/index.ts";
import type { Step } from "../../program/step.ts";
import { makeRng } from "../../text/rng.ts";
import type { Device } from "./device.ts";
import { MAP_READ, USAGE } from "./usage.ts";

/** Rows of the prompt. A CPU that emulates a GPU gets a number that takes about a second. */
const ROWS = { hardware: 1024, software: 160 };
/** Distance between the parameters of two dispatches, of which there are up to four, and their size. */
const [PARAMS_STRIDE, DISPATCHES, PARAMS_BYTES] = [256, 4, 64];
/** Added to the scores of later keys: a tile must replace the maximum of the tiles before it. */
const LATER = { query: 4, scoreMin: 10 };

/** Heads of an attention step, and the cache that it reads. */
export interface AttentionShape {
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  readonly cacheType: CacheType;
}

/** The activations, as lowering names them. */
type Name = "q" | "k" | "v" | "y" | "q, rotated" | "y, rotated" | "keys" | "values" | "batch" | "params" | "none";
type Buffers = Readonly<Record<Name | "readback", GPUBuffer>>;

/** Owns its buffers; `destroy` frees them. */
export class AttentionTrial {
  readonly #device: Device;
  readonly #shape: AttentionShape;
  readonly #rows: number;
  readonly #buffers: Buffers;

  private constructor(device: Device, shape: AttentionShape, rows: number, buffers: Buffers) {
    this.#device = device;
    this.#shape = shape;
    this.#rows = rows;
    this.#buffers = buffers;
  }

  /** Throws `too_large` if the device has no room for it. @param rows of the prompt */
  static async make(
    device: Device,
    shape: AttentionShape,
    rows = ROWS[device.facts.software ? "software" : "hardware"],
  ): Promise<AttentionTrial> {
    const { storage, uniform, copyDst, copySrc, mapRead } = USAGE;
    const { nHeads, nKvHeads, headDim, valueDim, cacheType } = shape;
    const cached = (dim: number): number => rows * nKvHeads * cacheBytes(cacheType, dim);
    const results = 4 * rows * nHeads * valueDim;
    const sizes: readonly (readonly [keyof Buffers, bytes: number, usage: number])[] = [
      ["q", 4 * rows * nHeads * headDim, storage | copyDst],
      ["k", 4 * rows * nKvHeads * headDim, storage | copyDst],
      ["v", 4 * rows * nKvHeads * valueDim, storage | copyDst],
      ["y", results, storage | copySrc],
      ["q, rotated", 4 * rows * nHeads * headDim, storage],
      ["y, rotated", results, storage],
      ["keys", cached(headDim), storage],
      ["values", cached(valueDim), storage],
      ["batch", 4 * batchWords(rows), storage | copyDst],
      ["params", DISPATCHES * PARAMS_STRIDE, uniform | copyDst],
      ["none", 16, storage],
      ["readback", results, mapRead | copyDst],
    ];
    const made = await device.allocate("trial of attention", () =>
      sizes.map(([label, size, usage]) => device.gpu.createBuffer({ label, size: Math.ceil(size / 16) * 16, usage })),
    );
    const buffers = Object.fromEntries(sizes.map(([name], i) => [name, made[i]])) as Buffers; // each is named
    fill(device, { shape, rows, buffers });
    return new AttentionTrial(device, shape, rows, buffers);
  }

  /** Milliseconds of `repeats` prompts in sequence. Throws `unsupported` if the device refuses the kernel. */
  async time(tuning: Tuning, repeats: number): Promise<number> {
    const encoder = await this.#encode(tuning, repeats);
    const startedMs = performance.now();
    this.#device.submit(encoder.finish());
    await this.#device.wait(() => this.#device.gpu.queue.onSubmittedWorkDone());
    return performance.now() - startedMs;
  }

  /** The results of the prompt, (rows, nHeads · valueDim). */
  async results(tuning: Tuning): Promise<Float32Array> {
    const { y, readback } = this.#buffers;
    const encoder = await this.#encode(tuning, 1);
    encoder.copyBufferToBuffer(y, 0, readback, 0, y.size);
    this.#device.submit(encoder.finish());
    await this.#device.wait(() => readback.mapAsync(MAP_READ));
    const found = new Float32Array(readback.getMappedRange().slice(0));
    readback.unmap();
    return found;
  }

  destroy(): void {
    for (const buffer of Object.values(this.#buffers)) buffer.destroy();
  }

  #dispatches(tuning: Tuning): Dispatch[] {
    const { cacheType, ...heads } = this.#shape;
    const { nHeads, nKvHeads, headDim, valueDim } = heads;
    const [q, k] = [
      { name: "q", dim: nHeads * headDim },
      { name: "k", dim: nKvHeads * headDim },
    ];
    const v = { name: "v", dim: nKvHeads * valueDim };
    const out = { name: "y", dim: nHeads * valueDim };
    const scores = { scale: 1 / Math.sqrt(headDim), window: 0, softCap: 0 };
    const step: Step = { op: "attention", out, q, k, v, layer: 0, ...heads, ...scores, rope: undefined };
    const { matrix } = this.#device;
    return lower([step], { ctxLen: this.#rows, isGemm: true, piecesOf: () => [], tuning, matrix, cacheType });
  }

  async #encode(tuning: Tuning, repeats: number): Promise<GPUCommandEncoder> {
    const { gpu } = this.#device;
    const { params } = this.#buffers;
    const counts = { all: this.#rows, wanted: this.#rows };
    const words = new DataView(new ArrayBuffer(DISPATCHES * PARAMS_STRIDE));
    const bound = await Promise.all(
      this.#dispatches(tuning).map(async ({ kernel, quants, operands, params: values, grid }, at) => {
        const pipeline = await this.#device.pipeline(kernel, quants, { tuning });
        const offset = at * PARAMS_STRIDE;
        writeParams(words, offset, { kernel, params: values });
        const resources = operands.map((operand): GPUBufferBinding => ({ buffer: this.#bufferOf(operand) }));
        resources.push({ buffer: params, offset, size: PARAMS_BYTES });
        const entries = resources.map((resource, binding) => ({ binding, resource }));
        const group = gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
        return { pipeline, group, sizes: [grid.x, groupsOf(grid, counts)] as const };
      }),
    );
    gpu.queue.writeBuffer(params, 0, words.buffer);
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let i = 0; i < repeats; i++) {
      for (const { pipeline, group, sizes } of bound) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...sizes);
      }
    }
    pass.end();
    return encoder;
  }

  #bufferOf(operand: Operand): GPUBuffer {
    const buffers: Readonly<Record<string, GPUBuffer>> = this.#buffers;
    if (operand.kind === "activation") return buffers[operand.value.buf.name]!; // q, k, v, y, or one rotated
    if (operand.kind === "cache") return buffers[operand.part]!;
    return this.#buffers[operand.kind === "batch" ? "batch" : "none"];
  }
}

/** Random values, with a first dimension that gives later keys larger scores. */
function fill(
  { gpu }: Device,
  { shape, rows, buffers }: { shape: AttentionShape; rows: number; buffers: Buffers },
): void {
  const { nHeads, nKvHeads, headDim, valueDim } = shape;
  const rng = makeRng(1);
  const random = (count: number): Float32Array<ArrayBuffer> =>
    Float32Array.from({ length: count }, () => 2 * rng.float() - 1);
  const [q, k] = [random(rows * nHeads * headDim), random(rows * nKvHeads * headDim)];
  for (let i = 0; i < q.length; i += headDim) q[i] = LATER.query;
  // A power of two: float16 represents it exactly.
  const later = 2 ** Math.ceil(Math.log2((LATER.scoreMin * Math.sqrt(headDim)) / LATER.query));
  for (let i = 0; i < k.length; i += headDim) k[i] = i < k.length / 2 ? 0 : later;
  gpu.queue.writeBuffer(buffers.q, 0, q);
  gpu.queue.writeBuffer(buffers.k, 0, k);
  gpu.queue.writeBuffer(buffers.v, 0, random(rows * nKvHeads * valueDim));
  const words = new Uint32Array(batchWords(rows));
  const sequence = { token: 0, slot: 0, first: 0, end: rows, wanted: true, remembered: 0, adapters: [] };
  writeBatch(
    Array.from({ length: rows }, (_, cell) => {
      const span = { first: cell, end: cell + 1 };
      return { ...sequence, cell, position: [cell, cell, cell], span };
    }),
    words,
  );
  gpu.queue.writeBuffer(buffers.batch, 0, words);
}
