/**
 * A program prepared for a device: all buffers, compiled kernels and bind groups. A run writes one small buffer and
 * replays the dispatches, either the list for few rows or the one for many.
 */
import { UNIFORM_BATCH } from "../../../../kernels/wgsl/batch.ts";
import { cacheTypeOf } from "../../../../kernels/wgsl/cache.ts";
import { groupsOf, type Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower, ops, variants } from "../../../../kernels/wgsl/lower.ts";
import { scoresOf } from "../../../../kernels/wgsl/lower-choose.ts";
import { DEQUANTIZERS } from "../../../../kernels/wgsl/sources.ts";
import { AppError, PLAIN } from "../../../base/index.ts";
import type { HeldWeights, LoadOptions, Program } from "../../program/backend.ts";
import { runsWhole, weightsOf } from "../../program/describe.ts";
import { withChanges } from "../../program/low-rank.ts";
import { vectorDimOf } from "../check-batch.ts";
import { checkOps } from "../missing.ts";
import { statesEnd } from "../../program/states.ts";
import type { Step, Weight } from "../../program/step.ts";
import { allocate, type Capacity } from "./allocate.ts";
import { chooserBytes } from "./chooser.ts";
import { withAttention } from "./choose-attention.ts";
import { chooseTuning, shapeOf } from "./choose-tuning.ts";
import type { Device } from "./device.ts";
import type { KvRoom, KvSize } from "./kv-room.ts";
import { makeMemory, planMemory, type DeviceRope, type Memory, type MemoryPlan } from "./memory.ts";
import { atOnce, compileAll, GRID_MAX, recordPass, type Pass, type PassParts, type Passes } from "./record.ts";
import { checkpointBytes } from "./slot-states.ts";
import { stopsOf } from "./stops.ts";
import { makePieces, planWeights, uploadWeights, type DeviceWeights, type WeightsPlan } from "./weights.ts";

/** Rows per chunk of a run: enough to fill a GPU, few enough that others wait only for milliseconds. */
const CHUNK_ROWS = 512;
/** Bytes of one chunk's results: limits its wanted rows if the vocabulary is large. */
const RESULT_BYTES_MAX = 32 * 2 ** 20;
/** Bytes of one chunk's scores of positions: limits its rows in a long context. */
const SCORE_BYTES_MAX = 64 * 2 ** 20;
/** Share of the upload in a load; the rest is compilation. */
const UPLOAD_SHARE = 0.9;
/**
 * Maximum rows for the kernels whose sums in a row do not depend on other rows: a decode step of several sequences
 * gives each the same bits as alone. More rows use the kernels for prompts, which use a GPU badly if there are few.
 */
export const FEW_ROWS = 32;

export interface Plan extends Pick<
  Memory,
  "input" | "given" | "readback" | "readbackAhead" | "host" | "cacheType" | "states"
> {
  readonly passes: Passes;
  /** True if a run of many rows keeps its memory while runs of few rows take place. */
  readonly isApart: boolean;
  readonly capacity: Capacity;
  readonly ropes: readonly DeviceRope[];
  readonly bytes: { readonly weights: number; readonly kv: number; readonly scratch: number };
  readonly held: HeldWeights;
  /** Keys and values by layer. */
  readonly caches: KvRoom["caches"];
  /** Returns whether there is room for keys and values. */
  has(size: KvSize): boolean;
  /** Makes room for keys and values; undefined: there is room. Throws `busy` if the device has none. */
  reach(size: KvSize): Promise<void> | undefined;
  destroy(): void;
}

/** The pass of a run. @param twoWay some rows see later ones, which only the kernels for many rows support */
export function passFor({ passes }: Pick<Plan, "passes">, rows: number, twoWay: boolean): Pass {
  if (twoWay || rows > FEW_ROWS) return passes.many;
  return rows === 1 ? passes.one : passes.few;
}

/** A program lowered for a device, and its needs there, before any allocation. */
interface LoweredPlan extends Pick<Plan, "capacity" | "isApart"> {
  readonly few: PassParts;
  readonly many: PassParts;
  readonly memory: MemoryPlan;
  readonly weights: WeightsPlan;
}

/** Maximum rows with requests for candidates in one run. */
export const choosingRows = (capacity: Capacity, { slots }: LoadOptions): number => Math.min(slots, capacity.wanted);

/**
 * Bytes of a plan on the device, including the selection of candidates. Throws as `makePlan` for a program that no
 * memory is enough for.
 */
export function plannedBytes(device: Device, program: Program, options: LoadOptions): number {
  const { memory, weights, capacity } = lowerPlan(device, program, options);
  const chooser = program.logits ? chooserBytes(program.logits.dim, choosingRows(capacity, options)) : 0;
  return memory.bytes + weights.bytes + chooser + checkpointBytes(program);
}

function lowerPlan(device: Device, program: Program, options: LoadOptions, tuning = PLAIN): LoweredPlan {
  const own = withoutHostSteps(program, options);
  checkOps(own, { name: "webgpu", ops, variants });
  checkQuants(own);
  const capacity = capacityOf(program, options);
  const piecesOf = makePieces(device.facts.limits, program.weights.path);
  const cacheType = cacheTypeOf(program.steps, options);
  const givenDim = options.images ? vectorDimOf(program.steps) : 0;
  const buffersMax = device.facts.limits.maxStorageBuffersPerShaderStage;
  const hostSteps = options.hostSteps?.steps;
  const context = {
    ctxLen: options.ctxLen,
    cacheType,
    givenDim,
    piecesOf,
    buffersMax,
    hostSteps,
    tuning,
    matrix: device.matrix,
  };
  const passFor = (rowsMax: number): PassParts => {
    const rows = { all: Math.min(capacity.all, rowsMax), wanted: Math.min(capacity.wanted, rowsMax) };
    const many = rowsMax === Infinity;
    const lowered = lower(program.steps, { ...context, many });
    const dispatches = fuse(lowered, [program.states.name, program.logits?.name ?? program.states.name], buffersMax);
    checkGrid(dispatches, rows, program);
    const results = resultsOf(program, dispatches);
    const stops = stopsOf(dispatches, program.steps);
    return { dispatches, results, stops, allocation: allocate(dispatches, { results, capacity: rows }) };
  };
  const few = passFor(FEW_ROWS);
  // A short context needs only the pass for few rows, unless rows see later ones.
  const hasMany = capacity.all > FEW_ROWS || options.images || program.steps[0]?.op === "input";
  const many = hasMany ? passFor(Infinity) : few;
  const isText = program.logits !== undefined && program.steps[0]?.op === "embed" && !runsWhole(program.steps);
  const isApart = isText && many !== few;
  const sizes = { few: few.allocation.sizes, many: many.allocation.sizes };
  const memory = planMemory(device, {
    program,
    options,
    cacheType,
    dispatchCount: few.dispatches.length + many.dispatches.length,
    scratchSizes: isApart ? sizes.few : mergeSizes(sizes.few, sizes.many),
    ownSizes: isApart ? sizes.many : undefined,
    capacity,
    givenDim,
  });
  const matrices = matricesOf(own.steps);
  const beside = besideOf(program, options);
  const weights = planWeights([...few.dispatches, ...many.dispatches], { piecesOf, matrices, beside });
  return { few, many, isApart, capacity, memory, weights };
}

/** Plans and uploads a program. Throws `unsupported` or `too_large` before anything is uploaded. */
export async function makePlan(device: Device, program: Program, options: LoadOptions): Promise<Plan> {
  const plain = lowerPlan(device, program, options); // refuses programs that no kernels can run
  const { steps } = withoutHostSteps(program, options);
  const products = await chooseTuning(device, shapeOf(matricesOf(steps)), options);
  const tuning = await withAttention(device, products, { steps, options });
  const { few, many, capacity, isApart, ...lowered } =
    tuning === PLAIN ? plain : lowerPlan(device, program, options, tuning);
  const { signal } = options;
  const one = atOnce(few, 1);
  const compiling = Promise.all([
    compileAll(device, few, { tuning }),
    compileAll(device, one, { tuning, rows: 1 }),
    compileAll(device, many, { tuning }),
  ]); // during the upload
  compiling.catch(() => {}); // reported by the recording
  const memory = await makeMemory(device, lowered.memory);
  try {
    const weights = await uploadWeights(device, lowered.weights, {
      source: program.weights,
      signal,
      onProgress: (fraction) => options.onProgress?.(UPLOAD_SHARE * fraction),
      beside: besideOf(program, options),
    });
    try {
      await memory.room.shrink();
      const made = { memory, own: memory.few, weights, variant: { tuning }, signal };
      const fewPass = await recordPass(device, few, { ...made, first: 0 });
      const onePass = await recordPass(device, one, { ...made, variant: { tuning, rows: 1 }, first: 0 });
      const first = few.dispatches.length;
      const manyPass = many === few ? fewPass : await recordPass(device, many, { ...made, own: memory.many, first });
      return planOf({
        passes: { one: onePass, few: fewPass, many: manyPass },
        isApart,
        capacity,
        memory,
        weights,
      });
    } catch (error) {
      weights.destroy();
      throw error;
    }
  } catch (error) {
    destroyMemory(memory);
    throw error;
  }
}

interface PlanParts extends Pick<Plan, "passes" | "isApart" | "capacity"> {
  readonly memory: Memory;
  readonly weights: DeviceWeights;
}

function planOf({ memory, weights, ...parts }: PlanParts): Plan {
  const { input, given, readback, readbackAhead, host, room, cacheType, states } = memory;
  const kept = [...states.values()].reduce((sum, { size }) => sum + size, 0);
  const scratch = memory.all.reduce((sum, { size }) => sum + size, 0) - kept;
  const rebind = (layers: ReadonlySet<number>): void => {
    for (const pass of new Set(Object.values(parts.passes))) pass.rebind(layers);
  };
  return {
    ...parts,
    input,
    given,
    readback,
    readbackAhead,
    host,
    caches: room.caches,
    cacheType,
    states,
    has: room.has,
    reach: (size) => (room.has(size) ? undefined : room.reach(size, rebind)),
    ropes: [...memory.ropes.values()],
    bytes: { weights: weights.bytes, kv: room.bytes + kept, scratch },
    held: weights,
    destroy() {
      weights.destroy();
      destroyMemory(memory);
    },
  };
}

function destroyMemory({ all, room }: Memory): void {
  room.destroy();
  for (const buffer of all) buffer.destroy();
}

/** The steps that the device computes, and whose weights it needs. */
const withoutHostSteps = (program: Program, { hostSteps }: LoadOptions): Program =>
  hostSteps ? { ...program, steps: program.steps.filter((step) => !hostSteps.steps.has(step)) } : program;

const besideOf = ({ weights }: Program, { beside }: LoadOptions): LoadOptions["beside"] =>
  beside?.path === weights.path ? beside : undefined;

/** Merges the buffer sizes of passes that never run at the same time. */
function mergeSizes(a: readonly number[], b: readonly number[]): number[] {
  return Array.from({ length: Math.max(a.length, b.length) }, (_, i) => Math.max(a[i] ?? 0, b[i] ?? 0));
}

/** Every weight that is read as blocks, and its low-rank changes. */
const matricesOf = (steps: readonly Step[]): Weight[] =>
  steps.flatMap((step) => weightsOf(step, "matrix", "experts", "router", "embedding", "table")).flatMap(withChanges);

function checkQuants({ steps, weights }: Program): void {
  for (const { name, quant } of matricesOf(steps)) {
    if (DEQUANTIZERS[quant.name]) continue;
    const known = Object.keys(DEQUANTIZERS).join(", ");
    const text = `${weights.path}: tensor '${name}': the GPU kernels read ${known}, got ${quant.name}`;
    throw new AppError("unsupported", text);
  }
}

function capacityOf({ steps, logits, states }: Program, { ctxLen, images }: LoadOptions): Capacity {
  // Rows with attention in both directions cannot run in chunks.
  if (runsWhole(steps)) return { all: ctxLen, wanted: ctxLen };
  const scores = steps.map((step) => (step.op === "choosePositions" ? scoresOf(step, ctxLen).count : 0));
  const scored = Math.floor(SCORE_BYTES_MAX / (4 * Math.max(1, ...scores)));
  const chunk = Math.min(CHUNK_ROWS, Math.max(FEW_ROWS, scored));
  const all = Math.min(ctxLen, Math.max(chunk, images?.twoWayRows ?? 0));
  const wanted = Math.floor(RESULT_BYTES_MAX / (4 * Math.max(logits?.dim ?? 0, states.dim)));
  return { all, wanted: Math.max(1, Math.min(all, wanted)) };
}

/** The states, then the logits if there are any, each with the number of dispatches that compute it. */
function resultsOf(program: Program, dispatches: readonly Dispatch[]): PassParts["results"] {
  const last = statesEnd(program);
  const end = dispatches.filter(({ step }) => step < last).length;
  const { states, logits } = program;
  return [{ ...states, end }, ...(logits ? [{ ...logits, end: dispatches.length }] : [])];
}

function checkGrid(dispatches: readonly Dispatch[], capacity: Capacity, { weights }: Program): void {
  for (const { kernel, grid, operands } of dispatches) {
    const isShort = operands.some((operand) => operand.kind === "batch" && operand.uniform);
    if (isShort && capacity.all > UNIFORM_BATCH.rowsMax) {
      const text = `${weights.path}: ${kernel}: at most ${UNIFORM_BATCH.rowsMax} rows at once, got ${capacity.all}`;
      throw new AppError("unsupported", text);
    }
    const groups = groupsOf(grid, capacity);
    if (groups <= GRID_MAX) continue;
    const text = `${weights.path}: ${kernel}: at most ${GRID_MAX} workgroups of rows, got ${groups}: shorten the context`;
    throw new AppError("too_large", text);
  }
}
