/**
 * A program prepared for a device: all buffers, compiled kernels and bind groups. A run writes one small buffer and
 * replays the dispatches, either the list for few rows or the one for many.
 */
import { cacheTypeOf } from "../../../../kernels/wgsl/cache.ts";
import type { Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower, ops, variants } from "../../../../kernels/wgsl/lower.ts";
import { scoresOf } from "../../../../kernels/wgsl/lower-choose.ts";
import type { LowerOptions } from "../../../../kernels/wgsl/lowering.ts";
import { PLAIN, type Tuning } from "../../../base/index.ts";
import type { HeldWeights, LoadOptions, Program } from "../../program/backend.ts";
import { runsWhole, weightsOf, writtenBy } from "../../program/describe.ts";
import { withoutMemory } from "../../program/memory.ts";
import { vectorDimOf } from "../check-batch.ts";
import { checkOps } from "../missing-ops.ts";
import { statesEnd } from "../../program/states.ts";
import { allocate, type Capacity } from "./allocate.ts";
import { chooserBytes } from "./chooser.ts";
import { placeChosen } from "./chosen-rows.ts";
import { withAttention } from "./choose-attention.ts";
import { chooseTuning, shapeOf } from "./choose-tuning.ts";
import type { Device } from "./device.ts";
import type { GrowingKv, KvSize } from "./growing-kv.ts";
import { checkGrid, checkQuants, matricesOf } from "./plan-checks.ts";
import { makeMemory, planMemory, type DeviceRope, type Memory, type MemoryPlan } from "./memory.ts";
import {
  atOnce,
  compileAll,
  distinctPasses,
  recordPass,
  type CacheOf,
  type Pass,
  type PassParts,
  type Passes,
  type PassesByRows,
  type RecordOptions,
} from "./record.ts";
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
export const GEMV_ROWS_MAX = 32;

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
  readonly caches: GrowingKv["caches"];
  /** Returns whether there is room for keys and values. */
  has(size: KvSize): boolean;
  /** Makes room for keys and values; undefined: there is room. Throws `busy` if the device has none. */
  reach(size: KvSize): Promise<void> | undefined;
  /** Undefined: the program has no memory. */
  readonly remembering: Remembering | undefined;
  destroy(): void;
}

/** The rows of a run, as in a `Chunk`. */
interface RunRows {
  readonly rows: readonly unknown[];
  readonly twoWay: boolean;
  readonly remembers: boolean;
  readonly adapts: boolean;
}

/** The pass of a run. */
export function passFor({ passes }: Pick<Plan, "passes">, { rows, twoWay, remembers, adapts }: RunRows): Pass {
  const own = (adapts ? passes.adapted : undefined) ?? (remembers ? undefined : passes.bare);
  const { one, gemv, gemm } = own ?? passes;
  if (twoWay || rows.length > GEMV_ROWS_MAX) return gemm; // only its kernels let rows see later ones
  return rows.length === 1 ? one : gemv;
}

/** Computes keys and values of memories. */
export interface Remembering {
  readonly pass: Pass;
  /** The rows of a run of the pass, (rows, dim) float32. */
  readonly input: GPUBuffer;
  readonly rowsMax: number;
  /** Makes room for memories of this many rows; undefined if there is room. Throws `busy` if the device has none. */
  reach(size: KvSize): Promise<void> | undefined;
}

/** A program's passes, lowered. */
interface LoweredPasses {
  readonly gemv: PassParts;
  readonly gemm: PassParts;
}

/** A program lowered for a device, and its needs there, before any allocation. */
interface LoweredPlan extends Pick<Plan, "capacity" | "isApart"> {
  readonly whole: LoweredPasses;
  readonly bare: LoweredPasses | undefined;
  readonly adapted: LoweredPasses | undefined;
  readonly remembering: PassParts | undefined;
  /** Rows of a memory in a run of its pass; 0: the program has no memory. */
  readonly rememberedRows: number;
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
  const lowerPart = makeLowering(device, { options, tuning, piecesOf, cacheType, givenDim });
  const gemvRows = { all: Math.min(capacity.all, GEMV_ROWS_MAX), wanted: Math.min(capacity.wanted, GEMV_ROWS_MAX) };
  // A short context needs only the pass for few rows, unless rows see later ones.
  const hasGemm = capacity.all > GEMV_ROWS_MAX || options.images || program.steps[0]?.op === "input";
  const lowerPasses = (part: Program, adapts = false): LoweredPasses => {
    const gemv = lowerPart(part, { capacity: gemvRows, isGemm: false, adapts });
    return { gemv, gemm: hasGemm ? lowerPart(part, { capacity, isGemm: true, adapts }) : gemv };
  };
  const whole = lowerPasses(program);
  const bareProgram = withoutMemory(program);
  const bare = bareProgram === program ? undefined : lowerPasses(bareProgram);
  const offers = own.steps.some((step) => weightsOf(step).some(({ offered }) => offered));
  const adapted = offers ? lowerPasses(program, true) : undefined;
  const rememberedRows = Math.min(CHUNK_ROWS, program.memory?.rows ?? 0);
  const remembering =
    program.memory && lowerPart(remembers(program), { capacity: { all: rememberedRows, wanted: 1 }, isGemm: true });
  const isText = program.logits !== undefined && program.steps[0]?.op === "embed" && !runsWhole(program.steps);
  const isApart = isText && whole.gemm !== whole.gemv;
  const all = [whole, bare, adapted].flatMap((passes) => passes ?? []);
  const sizesOf = (parts: readonly (PassParts | undefined)[]): readonly number[] =>
    parts.reduce<readonly number[]>((sizes, part) => mergeSizes(sizes, part?.allocation.sizes ?? []), []);
  const sizes = { gemv: sizesOf(all.map(({ gemv }) => gemv)), gemm: sizesOf(all.map(({ gemm }) => gemm)) };
  const parts = [...all.flatMap(({ gemv, gemm }) => [gemv, gemm]), ...(remembering ? [remembering] : [])];
  const dispatches = parts.flatMap((part) => part.dispatches);
  const shared = mergeSizes(isApart ? sizes.gemv : mergeSizes(sizes.gemv, sizes.gemm), sizesOf([remembering]));
  const memory = planMemory(device, {
    program,
    options,
    cacheType,
    dispatchCount: dispatches.length,
    scratchSizes: shared,
    ownSizes: isApart ? sizes.gemm : undefined,
    capacity,
    givenDim,
    rememberedRows,
    chosen: placeChosen(dispatches, capacity),
  });
  const beside = besideOf(program, options);
  const weights = planWeights(dispatches, { piecesOf, matrices: matricesOf(own), beside });
  return { whole, bare, adapted, remembering, rememberedRows, isApart, capacity, memory, weights };
}

/** A memory's program, as one whose states are the last keys. */
function remembers({ memory, logits: _logits, ...program }: Program): Program {
  const { steps } = memory!; // the caller has found one
  return { ...program, steps, logits: undefined, states: writtenBy(steps.at(-1)!) }; // the last step is `remember`
}

interface LowerPartOptions extends Pick<LowerOptions, "isGemm" | "adapts"> {
  readonly capacity: Capacity;
}

type LowerPart = (part: Program, options: LowerPartOptions) => PassParts;

/** Lowers parts of a program, which have its options. */
function makeLowering(
  device: Device,
  { options, ...own }: { options: LoadOptions } & Pick<LowerOptions, "tuning" | "piecesOf" | "cacheType" | "givenDim">,
): LowerPart {
  const buffersMax = device.facts.limits.maxStorageBuffersPerShaderStage;
  const hostSteps = options.hostSteps?.steps;
  const context = { ...own, ctxLen: options.ctxLen, buffersMax, hostSteps, matrix: device.matrix };
  return (part, { capacity, ...kind }) => {
    const lowered = lower(part.steps, { ...context, ...kind });
    const dispatches = fuse(lowered, [part.states.name, part.logits?.name ?? part.states.name], buffersMax);
    checkGrid(dispatches, capacity, part);
    const results = resultsOf(part, dispatches);
    const { steps } = part;
    const stops = stopsOf(dispatches, steps);
    return { steps, dispatches, results, stops, allocation: allocate(dispatches, { results, capacity }) };
  };
}

/** Plans and uploads a program. Throws `unsupported` or `too_large` before anything is uploaded. */
export async function makePlan(device: Device, program: Program, options: LoadOptions): Promise<Plan> {
  const plain = lowerPlan(device, program, options); // refuses programs that no kernels can run
  const own = withoutHostSteps(program, options);
  const products = await chooseTuning(device, shapeOf(matricesOf(own)), options);
  const tuning = await withAttention(device, products, { steps: own.steps, options });
  const lowered = tuning === PLAIN ? plain : lowerPlan(device, program, options, tuning);
  const { signal } = options;
  const compiling = Promise.all(
    [lowered.whole, lowered.bare, lowered.adapted]
      .flatMap((passes) => passes ?? [])
      .flatMap(({ gemv, gemm }) => [
        compileAll(device, gemv, { tuning }),
        compileAll(device, gemv, { tuning, rows: 1 }),
        compileAll(device, gemm, { tuning }),
      ]),
  ); // during the upload
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
      await memory.kv.shrink();
      await memory.memories?.shrink();
      const recorded = await recordAll(device, lowered, { memory, weights, tuning, signal });
      return planOf({ ...lowered, ...recorded, memory, weights });
    } catch (error) {
      weights.destroy();
      throw error;
    }
  } catch (error) {
    destroyMemory(memory);
    throw error;
  }
}

interface Recordings {
  readonly passes: Passes;
  /** Computes memories; undefined: the program has none. */
  readonly remember: Pass | undefined;
}

/** Records all passes, whose parameters lie one after another. */
async function recordAll(
  device: Device,
  { whole, bare, adapted, remembering }: LoweredPlan,
  made: Pick<RecordOptions, "memory" | "weights" | "signal"> & { readonly tuning: Tuning },
): Promise<Recordings> {
  const { memory, tuning } = made;
  let end = 0;
  const place = ({ dispatches }: PassParts): number => (end += dispatches.length) - dispatches.length;
  const record = async ({ gemv, gemm }: LoweredPasses): Promise<PassesByRows> => {
    const first = place(gemv);
    const own = { ...made, own: memory.gemv, first };
    const gemvPass = await recordPass(device, gemv, { ...own, variant: { tuning } });
    const one = await recordPass(device, atOnce(gemv, 1), { ...own, variant: { tuning, rows: 1 } });
    if (gemm === gemv) return { one, gemv: gemvPass, gemm: gemvPass };
    const apart = { ...made, own: memory.gemm, first: place(gemm), variant: { tuning } };
    return { one, gemv: gemvPass, gemm: await recordPass(device, gemm, apart) };
  };
  const passes = {
    ...(await record(whole)),
    bare: bare && (await record(bare)),
    adapted: adapted && (await record(adapted)),
  };
  const own = memory.remembering;
  if (!remembering || !own) return { passes, remember: undefined };
  const options = { ...made, own, first: place(remembering), variant: { tuning } };
  return { passes, remember: await recordPass(device, remembering, options) };
}

interface PlanParts extends Recordings, Pick<LoweredPlan, "isApart" | "capacity" | "rememberedRows"> {
  readonly memory: Memory;
  readonly weights: DeviceWeights;
}

function planOf(parts: PlanParts): Plan {
  const { memory, weights, passes, remember, isApart, capacity, rememberedRows: rowsMax } = parts;
  const { input, given, readback, readbackAhead, host, kv, memories, cacheType, states } = memory;
  const kept = [...states.values()].reduce((sum, { size }) => sum + size, 0);
  const scratch = memory.all.reduce((sum, { size }) => sum + size, 0) - kept;
  const all = [...distinctPasses(passes), ...(remember ? [remember] : [])];
  const reach = (some: GrowingKv, of: CacheOf, size: KvSize): Promise<void> | undefined =>
    some.has(size) ? undefined : some.reach(size, (layers) => all.forEach((pass) => pass.rebind(layers, of)));
  return {
    passes,
    isApart,
    capacity,
    input,
    given,
    readback,
    readbackAhead,
    host,
    caches: kv.caches,
    cacheType,
    states,
    has: kv.has,
    reach: (size) => reach(kv, "tokens", size),
    remembering: remember &&
      memories && {
        pass: remember,
        input: memory.remembering!.input!, // planned with the pass
        rowsMax,
        reach: (size) => reach(memories, "memory", size),
      },
    ropes: [...memory.ropes.values()],
    bytes: { weights: weights.bytes, kv: kv.bytes + (memories?.bytes ?? 0) + kept, scratch },
    held: weights,
    destroy() {
      weights.destroy();
      destroyMemory(memory);
    },
  };
}

function destroyMemory({ all, kv, memories }: Memory): void {
  kv.destroy();
  memories?.destroy();
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
function capacityOf({ steps, logits, states }: Program, { ctxLen, images }: LoadOptions): Capacity {
  // Rows with attention in both directions cannot run in chunks.
  if (runsWhole(steps)) return { all: ctxLen, wanted: ctxLen };
  const scores = steps.map((step) => (step.op === "choosePositions" ? scoresOf(step, ctxLen).count : 0));
  const scored = Math.floor(SCORE_BYTES_MAX / (4 * Math.max(1, ...scores)));
  const chunk = Math.min(CHUNK_ROWS, Math.max(GEMV_ROWS_MAX, scored));
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
