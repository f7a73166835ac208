/**
 * A program made ready on a device: every buffer there, every kernel compiled, every bind group made. A run writes one
 * small buffer and replays the dispatches.
 */
import { batchWords } from "../../../kernels/wgsl/batch.ts";
import type { Dispatch, Operand, Param, RowKind } from "../../../kernels/wgsl/dispatch.ts";
import { lower } from "../../../kernels/wgsl/lower.ts";
import { DEQUANTIZERS } from "../../../kernels/wgsl/sources.ts";
import { AppError, assert } from "../../base/errors.ts";
import type { LoadOptions, Program } from "../backend.ts";
import { withChanges } from "../low-rank.ts";
import { ropeTable, type GrowingRopeTable } from "../rope.ts";
import { statesEnd } from "../states.ts";
import type { RopeScaling, Step, Weight } from "../step.ts";
import { allocate, type Allocation } from "./allocate.ts";
import type { Device } from "./device.ts";
import { USAGE } from "./usage.ts";
import { makePieces, uploadWeights, type DeviceWeights } from "./weights.ts";

/** Rows of one chunk of a run: enough to fill a GPU, little enough that others wait for milliseconds. */
const CHUNK_ROWS = 512;
/** Bytes of results of one chunk: bounds its wanted rows where the vocabulary is large. */
const RESULT_BYTES_MAX = 32 * 2 ** 20;
/** Parameters of each dispatch lie this far apart. (WebGPU, minUniformBufferOffsetAlignment) */
const PARAMS_STRIDE = 256;
/** The largest `Params` of a kernel. */
const PARAMS_BYTES = 64;
/** Workgroups that a dispatch has at most in one dimension, on every device. */
const GRID_MAX = 65_535;

/** A dispatch with everything bound. */
export interface Recorded {
  readonly source: Dispatch;
  readonly pipeline: GPUComputePipeline;
  readonly bindings: GPUBindGroup;
  /** Workgroups: `x · z` for the columns, `times` for each row of that kind. */
  readonly x: number;
  readonly z: number;
  readonly rows: RowKind;
  readonly times: number;
  readonly rowsEach: number;
}

/** A buffer of results, (rows, dim), and how many of the dispatches make it. */
export interface PlannedResult {
  readonly buffer: GPUBuffer;
  readonly dim: number;
  readonly end: number;
}

/** Rotations of all positions, on the device as far as `known`. */
export interface DeviceRope {
  readonly table: GrowingRopeTable;
  readonly pairs: number;
  readonly cos: GPUBuffer;
  readonly sin: GPUBuffer;
  known: number;
}

export interface Plan {
  readonly dispatches: readonly Recorded[];
  readonly logits: PlannedResult | undefined;
  readonly states: PlannedResult;
  readonly capacity: Readonly<Record<RowKind, number>>;
  readonly batch: GPUBuffer;
  /** Results on their way back. */
  readonly readback: GPUBuffer;
  readonly ropes: readonly DeviceRope[];
  /** Keys and values of each layer, (slots, ctxLen, nKvHeads · headDim) float32. */
  readonly caches: readonly { readonly keys: GPUBuffer; readonly values: GPUBuffer }[];
  readonly bytes: { readonly weights: number; readonly kv: number; readonly scratch: number };
  /** The buffer that an operand of a dispatch is in. */
  bufferOf(operand: Operand): GPUBuffer;
  destroy(): void;
}

/** Plans and uploads a program. Throws `unsupported` or `too_large` before anything is uploaded. */
export async function makePlan(device: Device, program: Program, options: LoadOptions): Promise<Plan> {
  checkQuants(program);
  const piecesOf = makePieces(device.facts.limits, program.weights.path);
  const dispatches = lower(program.steps, { ctxLen: options.ctxLen, piecesOf });
  const capacity = capacityOf(program, options);
  const ends = resultEnds(program, dispatches);
  const allocation = allocate(dispatches, { results: ends, capacity });
  checkGrid(dispatches, capacity, program);
  const memory = await makeMemory(device, { program, options, dispatches, allocation, capacity });
  try {
    const weights = await uploadWeights(device, dispatches, {
      source: program.weights,
      piecesOf,
      matrices: matricesOf(program.steps),
      onProgress: (fraction) => options.onProgress?.(0.95 * fraction),
    });
    return await record(device, { program, dispatches, allocation, capacity, memory, weights, ends });
  } catch (error) {
    for (const buffer of memory.all) buffer.destroy();
    throw error;
  }
}

/** Every weight that is read as blocks, and its changes. */
function matricesOf(steps: readonly Step[]): Weight[] {
  const matrices = steps.flatMap((step): Weight[] => {
    switch (step.op) {
      case "embed":
      case "addPosition":
        return [step.table];
      case "linear":
        return [step.w];
      case "mlp":
        return [step.up, step.down];
      case "gatedMlp":
        return [step.gate, step.up, step.down];
      case "moe":
        return [step.router, step.gate, step.up, step.down];
      default:
        return [];
    }
  });
  return matrices.flatMap(withChanges);
}

function checkQuants({ steps, weights }: Program): void {
  for (const { name, quant } of matricesOf(steps)) {
    if (DEQUANTIZERS[quant.name]) continue;
    const known = Object.keys(DEQUANTIZERS).join(", ");
    const text = `${weights.path}: tensor '${name}': the GPU kernels read ${known}, got ${quant.name}`;
    throw new AppError("unsupported", text);
  }
}

function capacityOf({ steps, logits, states }: Program, { ctxLen }: LoadOptions): Plan["capacity"] {
  // Rows that look at all others of their sequence cannot be run in chunks.
  const whole = steps.some(({ op }) => op === "bidirectionalAttention");
  const all = whole ? ctxLen : Math.min(ctxLen, CHUNK_ROWS);
  const wanted = Math.floor(RESULT_BYTES_MAX / (4 * Math.max(logits?.dim ?? 0, states.dim)));
  return { all, wanted: Math.max(1, Math.min(all, wanted)) };
}

/** The results, logits last, each with the number of dispatches that make it. */
function resultEnds(program: Program, dispatches: readonly Dispatch[]) {
  const states = statesEnd(program);
  const end = dispatches.filter(({ step }) => step < states).length;
  const results = [{ name: program.states.name, end }];
  if (program.logits) results.push({ name: program.logits.name, end: dispatches.length });
  return results;
}

function checkGrid(dispatches: readonly Dispatch[], capacity: Plan["capacity"], { weights }: Program): void {
  for (const { kernel, grid } of dispatches) {
    const groups = (capacity[grid.rows] * grid.times) / grid.rowsEach;
    if (groups <= GRID_MAX) continue;
    const text = `${weights.path}: ${kernel}: at most ${GRID_MAX} workgroups of rows, got ${groups}: shorten the context`;
    throw new AppError("too_large", text);
  }
}

interface Memory {
  readonly all: readonly GPUBuffer[];
  readonly scratch: readonly GPUBuffer[];
  readonly caches: Plan["caches"];
  readonly ropes: ReadonlyMap<RopeScaling, DeviceRope>;
  readonly batch: GPUBuffer;
  readonly params: GPUBuffer;
  readonly readback: GPUBuffer;
}

interface MemoryParts {
  readonly program: Program;
  readonly options: LoadOptions;
  readonly dispatches: readonly Dispatch[];
  readonly allocation: Allocation;
  readonly capacity: Plan["capacity"];
}

/** All buffers but those of the weights. */
async function makeMemory(device: Device, parts: MemoryParts): Promise<Memory> {
  const { program, options, dispatches, allocation, capacity } = parts;
  const { path } = program.weights;
  const { storage, copySrc, copyDst, uniform, mapRead } = USAGE;
  const wishes: { label: string; size: number; usage: number }[] = [];
  const want = (label: string, size: number, usage: number): number => {
    checkSize(device, { path, label, size });
    return wishes.push({ label, size: Math.max(16, Math.ceil(size / 16) * 16), usage }) - 1;
  };
  const scratch = allocation.sizes.map((size, i) => want(`activations ${i}`, size, storage | copySrc));
  const caches = program.shape.kv.map(({ nKvHeads, headDim }, layer) => {
    const size = 4 * options.slots * options.ctxLen * nKvHeads * headDim;
    const usage = storage | copySrc | copyDst;
    return {
      keys: want(`keys of layer ${layer}`, size, usage),
      values: want(`values of layer ${layer}`, size, usage),
    };
  });
  const ropes = [...new Set(program.steps.flatMap((step) => (step.op === "rope" ? [step.rope] : [])))].map((rope) => {
    const size = 4 * options.ctxLen * (rope.rotaryDim / 2);
    return { rope, cos: want("cosines", size, storage | copyDst), sin: want("sines", size, storage | copyDst) };
  });
  const batch = want("batch", 4 * batchWords(capacity.all), storage | copyDst);
  const params = want("parameters", PARAMS_STRIDE * dispatches.length, uniform | copyDst);
  const results = Math.max(program.states.dim, program.logits?.dim ?? 0);
  const readback = want("readback", 4 * capacity.wanted * results, mapRead | copyDst);
  const all = await device.allocate(`${path}: KV cache and activations`, () =>
    wishes.map((wish) => device.gpu.createBuffer(wish)),
  );
  const at = (index: number): GPUBuffer => all[index]!; // one for each wish
  return {
    all,
    scratch: scratch.map(at),
    caches: caches.map(({ keys, values }) => ({ keys: at(keys), values: at(values) })),
    ropes: new Map(
      ropes.map(({ rope, cos, sin }) => {
        const table = ropeTable(rope, options.ctxLen);
        return [rope, { table, pairs: rope.rotaryDim / 2, cos: at(cos), sin: at(sin), known: 0 }];
      }),
    ),
    batch: at(batch),
    params: at(params),
    readback: at(readback),
  };
}

function checkSize(device: Device, { path, label, size }: { path: string; label: string; size: number }): void {
  const { maxBufferSize, maxStorageBufferBindingSize } = device.facts.limits;
  const limit = Math.min(maxBufferSize, maxStorageBufferBindingSize);
  if (size > limit)
    throw new AppError("too_large", `${path}: ${label}: the GPU binds ${limit} bytes at once, got ${size}`);
}

interface RecordParts extends Omit<MemoryParts, "options"> {
  readonly memory: Memory;
  readonly weights: DeviceWeights;
  readonly ends: readonly { name: string; end: number }[];
}

async function record(device: Device, parts: RecordParts): Promise<Plan> {
  const { program, dispatches, allocation, memory, weights, ends } = parts;
  const bind = makeBinder(memory, allocation, weights);
  device.gpu.queue.writeBuffer(memory.params, 0, packParams(dispatches));
  const recorded: Recorded[] = [];
  for (const [i, source] of dispatches.entries()) {
    const pipeline = await device.pipeline(source.kernel, source.quant);
    const params = { buffer: memory.params, offset: i * PARAMS_STRIDE, size: PARAMS_BYTES };
    const resources = [...source.operands.map(bind), params];
    const bindings = device.gpu.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: resources.map((resource, binding) => ({ binding, resource })),
    });
    const { x, ...grid } = source.grid;
    const z = Math.ceil(x / GRID_MAX);
    recorded.push({ source, pipeline, bindings, ...grid, x: Math.ceil(x / z), z });
  }
  await device.flush(); // a bind group that the device refuses shows here
  const result = (index: number, dim: number): PlannedResult => ({
    buffer: memory.scratch[allocation.results[index]!]!,
    dim,
    end: ends[index]!.end,
  });
  const kv = memory.caches.reduce((sum, { keys, values }) => sum + keys.size + values.size, 0);
  return {
    dispatches: recorded,
    states: result(0, program.states.dim),
    logits: program.logits && result(1, program.logits.dim),
    capacity: parts.capacity,
    batch: memory.batch,
    readback: memory.readback,
    ropes: [...memory.ropes.values()],
    caches: memory.caches,
    bytes: { weights: weights.bytes, kv, scratch: memory.all.reduce((sum, { size }) => sum + size, 0) - kv },
    bufferOf: (operand) => bind(operand).buffer,
    destroy() {
      weights.destroy();
      for (const buffer of memory.all) buffer.destroy();
    },
  };
}

/** Where an operand lies. */
function makeBinder(memory: Memory, allocation: Allocation, weights: DeviceWeights) {
  return (operand: Operand): GPUBufferBinding => {
    switch (operand.kind) {
      case "activation":
        return { buffer: memory.scratch[allocation.placeOf(operand)]! };
      case "matrix":
        return { buffer: weights.matrix(operand.tensor, operand.piece) };
      case "vector":
        return weights.vector(operand.weight);
      case "constant":
        return weights.constant(operand.values);
      case "cache": {
        const layer = memory.caches[operand.layer];
        assert(layer, `no KV cache for layer ${operand.layer}`);
        return { buffer: layer[operand.part] };
      }
      case "rope":
        return { buffer: memory.ropes.get(operand.rope)![operand.part] }; // there is one for each rope of the steps
      case "batch":
        return { buffer: memory.batch };
      default:
        return operand satisfies never;
    }
  };
}

function packParams(dispatches: readonly Dispatch[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(PARAMS_STRIDE * dispatches.length);
  const view = new DataView(bytes.buffer);
  for (const [i, { kernel, params }] of dispatches.entries()) {
    assert(4 * params.length <= PARAMS_BYTES, `kernel ${kernel} has ${params.length} parameters`);
    for (const [j, param] of params.entries()) writeParam(view, i * PARAMS_STRIDE + 4 * j, param);
  }
  return bytes;
}

/** Writes a parameter where the device finds it. Devices are little-endian. */
export function writeParam(view: DataView, at: number, param: Param): void {
  if (typeof param === "number") view.setUint32(at, param, true);
  else view.setFloat32(at, param.f32, true);
}
