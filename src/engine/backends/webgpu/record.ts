/**
 * Prepares a list of dispatches: compiles kernels, writes parameters, makes bind groups. A run then only replays it.
 */
import { UNIFORM_BATCH } from "../../../../kernels/wgsl/batch.ts";
import { groupsOf, type Dispatch, type Grid, type Operand, type RowKind } from "../../../../kernels/wgsl/dispatch.ts";
import { writeParams } from "../../../../kernels/wgsl/params.ts";
import { takesRows } from "../../../../kernels/wgsl/sources.ts";
import { assert, checkNotCancelled } from "../../../base/index.ts";
import type { Allocation, Result } from "./allocate.ts";
import { bindChosen, type ChosenTables } from "./chosen-rows.ts";
import type { Device, KernelVariant } from "./device.ts";
import type { Step } from "../../program/step.ts";
import type { KvBuffers } from "./growing-kv.ts";
import { PARAMS_STRIDE, type Memory, type PassMemory } from "./memory.ts";
import type { Stop } from "./stops.ts";
import type { DeviceWeights } from "./weights.ts";

/** The largest `Params` of a kernel. */
const PARAMS_BYTES = 128;
/** Maximum workgroups of a dispatch per dimension, on every device. */
export const GRID_MAX = 65_535;

/** The caches of keys and values. */
type KvCaches = Pick<Memory, "kv" | "memories">;

/** A dispatch with everything bound. Workgroups are `x · z` for the columns or splits, times `times` per row. */
export interface Recorded extends Grid {
  readonly source: Dispatch;
  readonly pipeline: GPUComputePipeline;
  /** Replaced when the KV cache grows. */
  bindings: GPUBindGroup;
  readonly z: number;
}

/** A buffer of results, (rows, dim), and the number of dispatches that compute it. */
export interface PlannedResult {
  readonly buffer: GPUBuffer;
  readonly dim: number;
  readonly end: number;
}

/** A lowered program and its buffers. */
export interface PassParts {
  readonly steps: readonly Step[];
  readonly dispatches: readonly Dispatch[];
  readonly allocation: Allocation;
  /** The states, then the logits if there are any. */
  readonly results: readonly (Result & { readonly dim: number })[];
  /** The dispatches at which the pass waits for the CPU. */
  readonly stops: readonly Stop[];
}

/** A recorded list of dispatches for the whole program. */
export interface Pass extends Pick<PassParts, "steps" | "stops"> {
  readonly dispatches: readonly Recorded[];
  readonly logits: PlannedResult | undefined;
  readonly states: PlannedResult;
  /** The rows of a run. */
  readonly batch: GPUBuffer;
  /** The same rows, as cross attention reads them; undefined: the model has no memory. */
  readonly memoryBatch: GPUBuffer | undefined;
  /** The adapters that the rows have chosen; undefined: the pass changes nothing by them. */
  readonly chosen: ChosenTables | undefined;
  /** The buffer of a dispatch's operand. */
  bufferOf(operand: Operand): GPUBuffer;
  /** Increased when dispatches are bound to other buffers: commands of an earlier version are invalid. */
  version: number;
  /** Binds the caches of some layers again, whose buffers were replaced. */
  rebind(layers: ReadonlySet<number>, of: CacheOf): void;
}

export type CacheOf = Extract<Operand, { kind: "cache" }>["of"];

/** A program's passes by the number of rows of a run. */
export interface PassesByRows {
  /** For one row: the dispatches of `gemv`, with kernels that have registers for one row only. */
  readonly one: Pass;
  /** For a few rows, whose results do not depend on each other. */
  readonly gemv: Pass;
  /** For other runs; the same as `gemv` if the context is too short for them. */
  readonly gemm: Pass;
}

export interface Passes extends PassesByRows {
  /** For runs in which no row has a memory, without cross attention; undefined: all runs take the others. */
  readonly bare: PassesByRows | undefined;
  /** For runs whose rows have chosen adapters; undefined: none are on offer. */
  readonly adapted: PassesByRows | undefined;
}

/** All of them, without duplicates. */
export const distinctPasses = ({ bare, adapted, ...passes }: Passes): ReadonlySet<Pass> =>
  new Set([passes, bare, adapted].flatMap((each) => (each ? [each.one, each.gemv, each.gemm] : [])));

export interface RecordOptions {
  readonly memory: Memory;
  /** Its part for the pass. */
  readonly own: PassMemory;
  readonly weights: DeviceWeights;
  /** The tuning that the dispatches were lowered for, and the number of rows that kernels for few rows take at once. */
  readonly variant: KernelVariant;
  /** Index of the parameters of the first dispatch. */
  readonly first: number;
  /** Ends the recording with `cancelled`. */
  readonly signal: AbortSignal | undefined;
}

/** The same dispatches, with kernels for few rows that take `rows` at once. */
export function atOnce({ dispatches, ...parts }: PassParts, rows: number): PassParts {
  const limited = dispatches.map((each): Dispatch =>
    takesRows(each.kernel) ? { ...each, grid: { ...each.grid, rowsEach: rows } } : each,
  );
  return { ...parts, dispatches: limited };
}

/** Compiles the kernels of some dispatches, all at once. Throws `unsupported` if the device refuses one. */
export const compileAll = (
  device: Device,
  { dispatches }: Pick<PassParts, "dispatches">,
  variant: KernelVariant,
): Promise<GPUComputePipeline[]> =>
  Promise.all(dispatches.map(({ kernel, quants }) => device.pipeline(kernel, quants, variant)));

export async function recordPass(
  device: Device,
  { steps, dispatches, allocation, results, stops }: PassParts,
  { memory, own, weights, variant, first, signal }: RecordOptions,
): Promise<Pass> {
  const bind = makeBinder({ ...memory, ...own }, allocation, weights);
  const writeAll = (): void =>
    device.gpu.queue.writeBuffer(memory.params, first * PARAMS_STRIDE, packParams(dispatches, memory));
  writeAll();
  const pipelines = await compileAll(device, { dispatches }, variant);
  checkNotCancelled(signal);
  const bindAll = (pipeline: GPUComputePipeline, { operands }: Dispatch, i: number): GPUBindGroup => {
    const params = { buffer: memory.params, offset: (first + i) * PARAMS_STRIDE, size: PARAMS_BYTES };
    const resources = [...operands.map(bind), params];
    return device.gpu.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: resources.map((resource, binding) => ({ binding, resource })),
    });
  };
  const recorded = dispatches.map((source, i): Recorded => {
    const pipeline = pipelines[i]!; // one per dispatch
    const bindings = bindAll(pipeline, source, i);
    const { x, splits, ...grid } = source.grid;
    const folds = Math.max(1, Math.ceil(x / GRID_MAX)); // parts of heads may be empty
    const sizes = splits === undefined ? { x: Math.ceil(x / folds), z: folds } : { x, splits, z: splits };
    return { source, pipeline, bindings, ...grid, ...sizes };
  });
  await device.flush(); // reports bind groups that the device refuses
  const [states, logits] = results.map(({ end, dim }, i): PlannedResult => {
    return { buffer: own.scratch[allocation.results[i]!]!, dim, end }; // one place per result
  });
  assert(states, "a program without states");
  const rebind = (layers: ReadonlySet<number>, of: CacheOf): void => {
    writeAll();
    recordedPass.version++;
    for (const [i, each] of recorded.entries()) {
      const cache = cacheOf(each.source);
      if (cache?.of === of && layers.has(cache.layer)) each.bindings = bindAll(each.pipeline, each.source, i);
    }
  };
  const bufferOf = (operand: Operand): GPUBuffer => bind(operand).buffer;
  const { batch } = own;
  const readsMemory = dispatches.some(({ operands }) => operands.some((each) => each.kind === "batch" && each.memory));
  const memoryBatch = readsMemory ? own.memoryBatch : undefined;
  const chooses = dispatches.some(({ operands }) => operands.some(({ kind }) => kind === "chosen"));
  const chosen = chooses ? own.chosen : undefined;
  const filled = { steps, dispatches: recorded, stops, batch, memoryBatch, chosen, states, logits };
  const recordedPass: Pass = { ...filled, bufferOf, version: 0, rebind };
  return recordedPass;
}

/**
 * Counts of a run: rows of each kind, rows given as vectors, sequences, splits of its longest row's context, splits of
 * its longest memory, and rows without a memory.
 */
export type Counts = Readonly<
  Record<RowKind | "given" | "sequences" | "splits" | "memorySplits" | "forgotten", number>
>;

/** The splits of a run's longest context, or memory, as a dispatch reads them. */
export const splitsIn = ({ ofMemory }: Grid, counts: Counts): number =>
  ofMemory ? counts.memorySplits : counts.splits;

/**
 * Replays a dispatch; false if there is nothing to do. Allocates nothing.
 * @param set the pipeline that is already set in the pass: each call into the runtime's WebGPU takes some 0.3 µs
 */
export function replay(
  pass: GPUComputePassEncoder,
  recorded: Recorded,
  counts: Counts,
  set?: GPUComputePipeline,
): boolean {
  const { pipeline, bindings, x, z, splits, joins, repeats, gives, forgets } = recorded;
  const groups = groupsOf(recorded, counts);
  const most = splitsIn(recorded, counts);
  if (x === 0 || groups === 0 || (joins && most === 1)) return false;
  if (forgets && counts.forgotten === 0) return false;
  if (repeats && counts.all === counts.sequences) return false;
  if (gives && counts.given === 0) return false;
  if (pipeline !== set) pass.setPipeline(pipeline);
  pass.setBindGroup(0, bindings);
  const depth = splits === undefined ? z : Math.min(splits, most);
  if (groups === 1 && depth === 1)
    pass.dispatchWorkgroups(x); // the runtime converts each argument
  else pass.dispatchWorkgroups(x, groups, depth);
  return true;
}

/** Records the dispatches `first` … `end − 1`. Creates only the pass. */
export function encodeDispatches(
  encoder: GPUCommandEncoder,
  { dispatches }: Pass,
  counts: Counts,
  { first, end }: { first: number; end: number },
): void {
  const pass = encoder.beginComputePass();
  let set: GPUComputePipeline | undefined;
  for (let i = first; i < end; i++) {
    const each = dispatches[i]!;
    if (replay(pass, each, counts, set)) set = each.pipeline;
  }
  pass.end();
}

/** Makes a function that finds the buffer of an operand. */
function makeBinder(memory: Memory & PassMemory, allocation: Allocation, weights: DeviceWeights) {
  return (operand: Operand): GPUBufferBinding => {
    switch (operand.kind) {
      case "activation":
        return { buffer: memory.scratch[allocation.placeOf(operand)]! };
      case "matrix":
        return { buffer: weights.matrix(operand.tensor, operand.piece) };
      case "vector":
        return weights.vector(operand.weight);
      case "vectors":
        return weights.vectors(operand.weights);
      case "constant":
        return weights.constant(operand.values);
      case "input":
        assert(memory.input, "a program without an input step reads one");
        return { buffer: memory.input };
      case "given":
        assert(memory.given, "a plan for rows with ids only reads vectors");
        return { buffer: memory.given };
      case "handed":
      case "returned":
        assert(memory.host, "a plan without steps of the CPU exchanges rows with it");
        return { buffer: memory.host[operand.kind] };
      case "cache": {
        return { buffer: buffersOf(operand, memory)[operand.part] };
      }
      case "state": {
        const buffer = memory.states.get(operand.of);
        assert(buffer, `no states for a step '${operand.of.op}'`);
        return { buffer };
      }
      case "chosen":
        assert(memory.chosen, "a plan without adapters on offer reads chosen ones");
        return bindChosen(memory.chosen, operand);
      case "rope":
        return { buffer: memory.ropes.get(operand.rope)!.turns }; // one per RoPE of the steps
      case "batch":
        if (!operand.memory) return { buffer: memory.batch, ...(operand.uniform && { size: UNIFORM_BATCH.bytes }) };
        assert(memory.memoryBatch, "a plan without memories reads their rows");
        return { buffer: memory.memoryBatch };
      default:
        return operand satisfies never;
    }
  };
}

type Cache = Extract<Operand, { kind: "cache" }>;

/** The keys or values that a dispatch reads or writes; undefined: none. */
const cacheOf = ({ operands }: Dispatch): Cache | undefined => operands.find((operand) => operand.kind === "cache");

function buffersOf({ layer, of }: Cache, { kv, memories }: KvCaches): KvBuffers {
  const buffers = (of === "memory" ? memories : kv)?.caches.get(layer);
  assert(buffers, `no cache of ${of} for layer ${layer}`);
  return buffers;
}

/** Packs the parameters. A slot has as many positions as its layer's buffers have now. */
function packParams(dispatches: readonly Dispatch[], caches: KvCaches): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(PARAMS_STRIDE * dispatches.length);
  const view = new DataView(bytes.buffer);
  for (const [i, dispatch] of dispatches.entries()) {
    const { kernel, params } = dispatch;
    assert(4 * Object.keys(params).length <= PARAMS_BYTES, `kernel ${kernel} has more parameters than there is room`);
    const cache = cacheOf(dispatch);
    const allocated = cache && { ctxLen: buffersOf(cache, caches).size.positions };
    writeParams(view, i * PARAMS_STRIDE, { kernel, params: { ...params, ...allocated } });
  }
  return bytes;
}
