/** A plan's memory on the device besides the weights: KV cache, activations, RoPE tables, parameters. */
import { cacheBytes, memoryType, type CacheType } from "../../../../kernels/wgsl/cache.ts";
import { batchWords, UNIFORM_BATCH } from "../../../../kernels/wgsl/batch.ts";
import { ANSWER_WORDS } from "../../../../kernels/wgsl/candidates.ts";
import { AppError } from "../../../base/index.ts";
import type { LoadOptions, Program } from "../../program/backend.ts";
import { ropeTable, type GrowingRopeTable } from "../../program/rope.ts";
import { handedDim, writtenBy } from "../../program/describe.ts";
import { memoryDim, memoryLayers } from "../../program/memory.ts";
import { keepingSteps, kvStates, valuesOf } from "../../program/sequence-state.ts";
import type { RopeScaling, Step } from "../../program/step.ts";
import type { Capacity } from "./allocate.ts";
import type { ChosenPlaces, ChosenTables } from "./chosen-rows.ts";
import type { Device } from "./device.ts";
import { kvDescriptors, makeGrowingKv, type GrowingKv, type KvShape, type KvSize } from "./growing-kv.ts";
import { USAGE } from "./usage.ts";
import { PADDING_BYTES } from "./weights.ts";

/** Distance between the parameters of two dispatches. (WebGPU, minUniformBufferOffsetAlignment) */
export const PARAMS_STRIDE = 256;

/** RoPE table of all positions; the device has the ones below `known`. */
export interface DeviceRope {
  readonly table: GrowingRopeTable;
  readonly pairs: number;
  readonly turns: GPUBuffer;
  known: number;
}

/** Buffers between the device and the CPU; steps use them one after another. */
export interface HostBuffers {
  /** Inputs, (rows, dim) float32. */
  readonly handed: GPUBuffer;
  /** The same content, readable by the CPU. */
  readonly read: GPUBuffer;
  /** Results, (rows, dim) float32. */
  readonly returned: GPUBuffer;
}

/** All buffers of a plan except the weights'. */
export interface Memory {
  readonly all: readonly GPUBuffer[];
  readonly gemv: PassMemory;
  /** The same as `gemv`, or separate memory, which keeps its content while other passes run. */
  readonly gemm: PassMemory;
  /** Keys and values, (slots, positions, nKvHeads · headDim) by layer. */
  readonly kv: GrowingKv;
  /** The same of memories, (slots, rows, nKvHeads · headDim) by layer; undefined: the program has none. */
  readonly memories: GrowingKv | undefined;
  /** For the pass that computes them; undefined: the program has none. */
  readonly remembering: PassMemory | undefined;
  /** By step: its state after the last row of each slot, (slots, values) float32. */
  readonly states: ReadonlyMap<Step, GPUBuffer>;
  /** The input rows of a run, (rows, dim) float32, if the program begins with an input. */
  readonly input: GPUBuffer | undefined;
  /** The vectors of rows without an id, (rows without an id, dim) float32, if a run may have such rows. */
  readonly given: GPUBuffer | undefined;
  /** For steps that the CPU computes; undefined: the CPU computes no steps. */
  readonly host: HostBuffers | undefined;
  /** The format of the values in the cache. */
  readonly cacheType: CacheType;
  readonly ropes: ReadonlyMap<RopeScaling, DeviceRope>;
  readonly params: GPUBuffer;
  readonly readback: GPUBuffer;
  /** The same for the candidates of a step that is submitted before `readback` is read. */
  readonly readbackAhead: GPUBuffer;
}

/** Buffers of a pass: of its batch, and of its activations. */
export interface PassMemory {
  readonly batch: GPUBuffer;
  /** The batch as cross attention reads it; undefined: the pass has no cross attention. */
  readonly memoryBatch?: GPUBuffer | undefined;
  /** The adapters that rows have chosen; undefined: none are on offer. */
  readonly chosen?: ChosenTables | undefined;
  /** In place of the run's. */
  readonly input?: GPUBuffer | undefined;
  readonly scratch: readonly GPUBuffer[];
}

export interface MemoryParts {
  readonly program: Program;
  readonly options: LoadOptions;
  readonly cacheType: CacheType;
  /** Number of dispatches in all passes. */
  readonly dispatchCount: number;
  /** Bytes of each activation buffer; the pass for many rows shares them unless it has `ownSizes`. */
  readonly scratchSizes: readonly number[];
  /** Bytes of each buffer of the pass for many rows; undefined: all passes share buffers. */
  readonly ownSizes: readonly number[] | undefined;
  readonly capacity: Capacity;
  /** Values of a row given as a vector; 0: all rows have ids. */
  readonly givenDim: number;
  /** Rows of a memory that one pass computes; 0: the program has none. */
  readonly rememberedRows: number;
  readonly chosen: ChosenPlaces;
}

/** Sizes of all buffers, computed before allocating any. */
export interface MemoryPlan {
  readonly what: string;
  readonly descriptors: readonly GPUBufferDescriptor[];
  readonly bytes: number;
  /** @param all one buffer per request */
  memoryOf(all: readonly GPUBuffer[], caches: Pick<Memory, "kv" | "memories">): Memory;
  /** The KV cache at its maximum. */
  readonly kv: KvSizes;
  /** Keys and values of all slots' memories; undefined: the program has none. */
  readonly memories: KvSizes | undefined;
}

interface KvSizes {
  readonly layers: readonly KvShape[];
  readonly most: KvSize;
}

/** The layers with a cache, and their bytes per position. */
export const kvShapes = (steps: Program["steps"], cacheType: CacheType): KvShape[] =>
  kvStates(steps).map(({ layer, nKvHeads, keyDim, valueDim }) => ({
    layer,
    keyBytes: nKvHeads * cacheBytes(cacheType, keyDim),
    valueBytes: nKvHeads * cacheBytes(cacheType, valueDim),
  }));

/** The layers with cross attention, and their bytes per row of a memory. */
export const memoryShapes = (steps: Program["steps"], cacheType: CacheType): KvShape[] =>
  memoryLayers(steps).map(({ layer, nKvHeads, headDim }) => {
    const bytes = nKvHeads * cacheBytes(memoryType(cacheType, headDim), headDim);
    return { layer, keyBytes: bytes, valueBytes: bytes };
  });

/** Allocates it. Throws `too_large` if all buffers together do not fit. */
export async function makeMemory(device: Device, plan: MemoryPlan): Promise<Memory> {
  const make = (): GPUBuffer[] => plan.descriptors.map((descriptor) => device.gpu.createBuffer(descriptor));
  const kv = await makeGrowingKv(device, { path: plan.what, ...plan.kv });
  let memories: GrowingKv | undefined;
  try {
    if (plan.memories) memories = await makeGrowingKv(device, { path: plan.what, ...plan.memories });
    return plan.memoryOf(await device.allocate(`${plan.what}: activations`, make), { kv, memories });
  } catch (error) {
    kv.destroy();
    memories?.destroy();
    throw error;
  }
}

/** Throws `too_large` if a buffer is larger than a binding. */
export function planMemory(device: Device, parts: MemoryParts): MemoryPlan {
  const { program, options, cacheType, dispatchCount, capacity, givenDim, rememberedRows, chosen } = parts;
  const { path } = program.weights;
  const { storage, copySrc, copyDst, uniform, mapRead } = USAGE;
  const descriptors: { label: string; size: number; usage: number }[] = [];
  const want = (label: string, size: number, usage: number): number => {
    checkSize(device, { path, label, size });
    return descriptors.push({ label, size: Math.max(16, Math.ceil(size / 16) * 16), usage }) - 1;
  };
  const wantBatch = (rows: number): number =>
    want("batch", Math.max(UNIFORM_BATCH.bytes, 4 * batchWords(rows)), storage | uniform | copyDst);
  const wantPass = (sizes: readonly number[]) => ({
    scratch: sizes.map((size, i) => want(`activations ${i}`, size, storage | copySrc)),
    batch: wantBatch(capacity.all),
    ...(program.memory && { memoryBatch: wantBatch(capacity.all) }),
    ...(chosen.bytes > 0 && { chosen: want("chosen adapters", chosen.bytes, storage | copyDst) }),
  });
  const gemv = wantPass(parts.scratchSizes);
  const gemm = parts.ownSizes ? wantPass(parts.ownSizes) : gemv;
  const remembering = program.memory && {
    scratch: gemv.scratch,
    batch: wantBatch(rememberedRows),
    input: want("rows of a memory", inputBytes(rememberedRows, memoryDim(program.memory)), storage | copyDst),
  };
  const { kv, memories, cacheDescriptors } = planCaches(device, parts);
  const states = keepingSteps(program.steps).flatMap(({ step, state }) => {
    if (state.kind === "kv") return [];
    const size = 4 * options.slots * valuesOf(state);
    return [{ step, buffer: want(`states of layer ${state.layer}`, size, storage | copySrc | copyDst) }];
  });
  const ropes = [...new Set(program.steps.flatMap((step) => (step.op === "rope" ? [step.rope] : [])))].map((rope) => {
    return { rope, turns: want("rotations", 4 * options.ctxLen * rope.rotaryDim, storage | copyDst) };
  });
  const begin = program.steps.find(({ op }) => op === "input");
  const input = begin && want("input", inputBytes(capacity.all, writtenBy(begin).dim), storage | copyDst);
  const given = givenDim > 0 ? want("vectors", 4 * capacity.all * givenDim, storage | copyDst) : undefined;
  const host = hostDims(program.steps, options);
  const handed = host && want("inputs of the CPU", 4 * capacity.all * host.handed, storage | copySrc);
  const read = host && want("inputs of the CPU, read", 4 * capacity.all * host.handed, mapRead | copyDst);
  const returned = host && want("results of the CPU", 4 * capacity.all * host.returned, storage | copyDst);
  const params = want("parameters", PARAMS_STRIDE * dispatchCount, uniform | copyDst);
  const results = program.states.dim + (program.logits?.dim ?? 0);
  const answers = ANSWER_WORDS * Math.min(options.slots, capacity.wanted);
  const readback = want("readback", 4 * (capacity.wanted * results + answers), mapRead | copyDst);
  const readbackAhead = want("readback of a step ahead", 4 * answers, mapRead | copyDst);
  const memoryOf: MemoryPlan["memoryOf"] = (all, caches) => {
    const at = (index: number): GPUBuffer => all[index]!; // one per request
    const own = { at, places: chosen };
    return {
      all,
      gemv: passMemory(gemv, own),
      gemm: passMemory(gemm, own),
      remembering: remembering && passMemory(remembering, own),
      ...caches,
      states: new Map(states.map(({ step, buffer }) => [step, at(buffer)])),
      input: input === undefined ? undefined : at(input),
      given: given === undefined ? undefined : at(given),
      ropes: new Map(
        ropes.map(({ rope, turns }) => [rope, deviceRope(rope, { turns: at(turns), ctxLen: options.ctxLen })]),
      ),
      host: host && { handed: at(handed!), read: at(read!), returned: at(returned!) }, // both were allocated
      cacheType,
      params: at(params),
      readback: at(readback),
      readbackAhead: at(readbackAhead),
    };
  };
  const bytes = [...descriptors, ...cacheDescriptors].reduce((sum, { size }) => sum + size, 0);
  return { what: path, descriptors, kv, memories, bytes, memoryOf };
}

const deviceRope = (rope: RopeScaling, { turns, ctxLen }: { turns: GPUBuffer; ctxLen: number }): DeviceRope => {
  return { table: ropeTable(rope, ctxLen), pairs: rope.rotaryDim / 2, turns, known: 0 };
};

/** Buffers of a pass by their index. */
interface WantedPass {
  readonly scratch: readonly number[];
  readonly batch: number;
  readonly memoryBatch?: number;
  readonly chosen?: number;
  readonly input?: number;
}

function passMemory(
  { scratch, batch, memoryBatch, chosen, input }: WantedPass,
  { at, places }: { at: (index: number) => GPUBuffer; places: ChosenPlaces },
): PassMemory {
  return {
    scratch: scratch.map(at),
    batch: at(batch),
    ...(memoryBatch !== undefined && { memoryBatch: at(memoryBatch) }),
    ...(chosen !== undefined && { chosen: { buffer: at(chosen), places } }),
    ...(input !== undefined && { input: at(input) }),
  };
}

const inputBytes = (rows: number, dim: number): number => 4 * rows * dim + PADDING_BYTES;

/** Keys and values of tokens and of memories. Throws `too_large` if a layer's are larger than a binding. */
function planCaches(
  device: Device,
  { program: { steps, memory, weights }, options: { slots, ctxLen }, cacheType }: MemoryParts,
): Pick<MemoryPlan, "kv" | "memories"> & { readonly cacheDescriptors: readonly GPUBufferDescriptor[] } {
  const { path } = weights;
  const kv = { layers: kvShapes(steps, cacheType), most: { slots, positions: ctxLen } };
  const memories = memory && { layers: memoryShapes(steps, cacheType), most: { slots, positions: memory.rows } };
  const own = kv.layers.flatMap((layer) => kvDescriptors(layer, kv.most));
  const remembered = memories?.layers.flatMap((layer) => kvDescriptors(layer, memories.most)) ?? [];
  for (const { label, size } of own) checkSize(device, { path, label: label!, size }); // all have labels
  for (const { label, size } of remembered)
    checkSize(device, { path, label: `${label} for ${slots} memories of ${memory!.rows} rows`, size }); // only a program with a memory has these
  return { kv, memories, cacheDescriptors: [...own, ...remembered] };
}

/** The longest rows of inputs and of results of the CPU's steps; undefined: no such steps. */
function hostDims(
  steps: Program["steps"],
  { hostSteps }: LoadOptions,
): { handed: number; returned: number } | undefined {
  const own = steps.filter((step) => hostSteps?.steps.has(step));
  if (own.length === 0) return undefined;
  return {
    handed: Math.max(...own.map(handedDim)),
    returned: Math.max(...own.map((step) => writtenBy(step).dim)),
  };
}

const bindingMax = ({ facts: { limits } }: Device): number =>
  Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);

/** Tokens of all slots together up to which each of a layer's buffers fits a binding. */
export const kvTokensMax = (device: Device, shapes: readonly KvShape[]): number =>
  Math.floor(bindingMax(device) / Math.max(1, ...shapes.flatMap(({ keyBytes, valueBytes }) => [keyBytes, valueBytes])));

function checkSize(device: Device, { path, label, size }: { path: string; label: string; size: number }): void {
  const limit = bindingMax(device);
  if (size > limit)
    throw new AppError("too_large", `${path}: ${label}: the GPU binds ${limit} bytes at once, got ${size}`);
}

/** Uploads the RoPE table of positions below `end` that the device lacks. */
export function reachRope(device: Device, rope: DeviceRope, end: number): void {
  if (end <= rope.known) return;
  rope.table.reach(end);
  const until = Math.min(rope.table.cos.length / rope.pairs, Math.ceil(end / 256) * 256);
  const [from, count] = [rope.known * rope.pairs, (until - rope.known) * rope.pairs];
  const turns = new Float32Array(2 * count);
  for (let i = 0; i < count; i++) {
    turns[2 * i] = rope.table.cos[from + i]!;
    turns[2 * i + 1] = rope.table.sin[from + i]!;
  }
  device.gpu.queue.writeBuffer(rope.turns, 8 * from, turns);
  rope.known = until;
}
