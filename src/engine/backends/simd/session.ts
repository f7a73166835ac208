/** A loaded model on the kernels: turns batches into passes, and keeps the KV cache between them. */
import { assert } from "../../../base/index.ts";
import type { LoadOptions, Program, Session, SlicedRuns, StateRows } from "../../program/backend.ts";
import { batchLimits, positionsEnd } from "../check-batch.ts";
import { weightsOf } from "../../program/describe.ts";
import { withoutMemory } from "../../program/memory.ts";
import type { Step } from "../../program/step.ts";
import { statesEnd } from "../../program/states.ts";
import { keepingSteps, valuesOf } from "../../program/sequence-state.ts";
import { makeSlotStates } from "./checkpoints.ts";
import {
  allocateLayer,
  copyLayers,
  fillContext,
  kvTypeOf,
  makeGrowth,
  makeKvBlocks,
  slotBytes,
  valueDimOf,
} from "./kv.ts";
import { lower } from "./lower.ts";
import { keptLayers, panelFloats, type Shared } from "./lowering.ts";
import type { Memory } from "./memory.ts";
import { makePasses, type Engine, type Lowered } from "./passes.ts";
import { makeBuffers } from "./records.ts";
import { makeRemember } from "./remember.ts";
import { makeRemembered } from "./remembered.ts";
import { checkRows, type RowLimits } from "./rows.ts";
import { checkFinite, makeRuns } from "./runs.ts";
import { makeSlices, SLICED_ROWS, type SliceOptions } from "./slices.ts";
import { makeStreams } from "./streaming/streams.ts";
import { makeWeightPlaces } from "./weights.ts";

/**
 * Rows of one pass: enough to unpack weights rarely, few enough for activations to stay in caches. Fewer if all slots
 * together hold fewer.
 */
const PASS_ROWS = 512;
/**
 * Larger for encoders, because nothing waits for a part of their run: all of a run's texts share the unpacked weights.
 */
const ENCODER_ROWS = 1024;
/** Scratch rows for keys and values of an encoder's pass. */
const SCRATCH_ROWS = 8192;

/** Up to this many threads, large attention chunks still balance. */
const FEW_THREADS = 4;

/** Loads a program: lowers it, and starts threads. Copies only vectors of its weights. */
export function makeSession(program: Program, options: LoadOptions, engine: Engine): Session {
  const parts = makeParts(program, options, engine);
  const { shared, limits, memory } = parts;
  const lowered = makeLowered(program, shared);
  lowered(program.logits ? "logits" : "states", 0, true);
  const remembering = program.memory && lower(program.memory.steps, undefined, shared);
  const dim = Math.max(program.states.dim, program.logits?.dim ?? 0);
  const passes = makePasses({ memory, shared, limits: { ...limits, dim }, engine, small: options.small ?? false });
  shared.streams?.begin(memory.bytes - bytesHeld(shared));
  const { remembered } = shared;
  const remember =
    remembering && makeRemember(program, options, { passes, limits, lowered: remembering, memory, remembered });
  const kept = [...shared.kept.values()];
  const slotStates = kept.length > 0 ? makeSlotStates(kept, options.slots) : undefined;
  let closed = false;
  const check = (batch: readonly StateRows[]): void => {
    assert(!closed, "run of a closed session");
    checkRows(batch, limits);
    slotStates?.check(batch);
    reachPositions(shared, batch);
  };
  const prepare = (batch: readonly StateRows[]): void => {
    check(batch);
    for (const done of remember?.(batch) ?? []) void done;
  };
  const { run, runWithPauses } = makeRuns(program, parts, { passes, lowered, slotStates, prepare });

  options.onProgress?.(1);
  const layers = keptLayers(shared);
  const kv = bytesHeld(shared);
  const growth = program.logits && layers.length > 0 ? makeGrowth(layers, shared.kv, memory) : undefined;
  return {
    backend: engine.backend,
    device: `CPU (${engine.threads} thread${engine.threads === 1 ? "" : "s"}, ${engine.level}${options.precise || options.small ? ", float32" : ""})`,
    bytes: { weights: shared.weights.mappedBytes(), kv, scratch: memory.bytes - kv },
    readsFiles: shared.weights.mappedBytes() > 0,
    ...(slotStates && { checkpoints: slotStates }),
    ...(growth && { growth }),
    verifies: limits.keeps,
    ...(shared.streams && { streamed: shared.streams }),
    ...(limits.keeps && { blocks: makeKvBlocks(layers, shared.kv, { engine, checkpoints: slotStates }) }),
    ...(program.logits && { slices: slicesOf(program, parts, { passes, slotStates, prepare: check, remember }) }),
    async run(batch) {
      assert(program.logits, "an encoder has no logits");
      return run(
        batch.map(({ logits: states, ...rows }) => ({ ...rows, states })),
        "logits",
      );
    },
    async states(batch, pause) {
      return pause && !program.logits ? runWithPauses(batch, pause) : run(batch, "states");
    },
    shift(slot, by) {
      assert(!closed, "shift in a closed session");
      checkShift(slot, by, options);
      passes.shift(slot, by);
      slotStates?.set(slot, by.length - by.discard);
    },
    copy(which) {
      assert(!closed, "copy in a closed session");
      copyLayers(layers, shared.kv, which);
    },
    close() {
      if (closed) return;
      closed = true;
      passes.close();
    },
  };
}

function slicesOf(
  program: Program,
  { memory, shared, limits }: Parts,
  parts: Pick<SliceOptions, "passes" | "slotStates" | "prepare" | "remember">,
): SlicedRuns {
  const { steps, logits, weights } = program;
  assert(logits, "an encoder has no logits");
  const bare = withoutMemory(program).steps;
  const own = { ...shared, buffers: makeBuffers(memory), maxRows: SLICED_ROWS };
  return makeSlices({
    ...parts,
    memory,
    limits,
    dim: logits.dim,
    lower: (rounds, remembers) => lower(remembers ? steps : bare, logits, own, rounds),
    check: (values) => checkFinite(values, { path: weights.path, name: "logits", dim: logits.dim }),
  });
}

/** Scratch floats for adapters that rows may choose: the products are lowered only once a row has chosen one. */
function offeredFloats(steps: readonly Step[]): number {
  const ranks = steps.flatMap((step) =>
    weightsOf(step).flatMap(({ offered = [] }) => offered.map(({ a }) => a.outDim)),
  );
  return ranks.reduce((most, rank) => Math.max(most, panelFloats(rank)), 0);
}

/** Computes RoPE tables for the positions of a batch. */
function reachPositions({ ropes, memory }: Shared, batch: readonly StateRows[]): void {
  const end = batch.reduce((most, entry) => Math.max(most, positionsEnd(entry)), 0);
  for (const table of ropes.values()) {
    table.reach(end);
    memory.refresh?.([table.cos, table.sin]);
  }
}

function checkShift(
  slot: number,
  { keep, discard, length }: { keep: number; discard: number; length: number },
  { slots, ctxLen }: LoadOptions,
): void {
  assert(slot >= 0 && slot < slots, `shift of slot ${slot} of ${slots}`);
  assert(keep >= 0 && discard >= 0, `shift of slot ${slot}: keep ${keep}, discard ${discard}`);
  assert(keep + discard <= length && length <= ctxLen, `shift of slot ${slot}: ${keep} + ${discard} of ${length}`);
}

/** Bytes of sequence states. */
function bytesHeld({ layers, kept, remembered }: Shared): number {
  const held = [...layers.values(), ...(remembered?.layers.values() ?? [])]
    .flatMap(({ keys, values }) => [keys, values])
    .concat([...kept.values()]);
  return held.reduce((sum, { view }) => sum + view.length, 0);
}

export interface Parts {
  readonly memory: Memory;
  readonly shared: Shared;
  readonly limits: RowLimits;
}

export function makeParts(program: Program, options: LoadOptions, engine: Engine): Parts {
  const { memory, threads, words = false, panelRows } = engine;
  const { ctxLen, slots, precise, small = false } = options;
  const { steps, weights: source, memory: remembering } = program;
  const encodes = steps.some(({ op }) => op === "bidirectionalAttention");
  const maxRows = encodes
    ? Math.max(ENCODER_ROWS, slots, ctxLen)
    : Math.max(slots, Math.min(PASS_ROWS, slots * ctxLen));
  const scratchRows = encodes ? Math.max(SCRATCH_ROWS, fillContext(ctxLen)) : 0;
  const first = steps[0]!;
  const tables = steps.flatMap((step) => (step.op === "addPosition" ? [step.table.outDim] : []));
  const limits: RowLimits = {
    ...batchLimits(program, { ctxLen, slots, anyRows: true }),
    maxRows,
    scratchRows: encodes ? scratchRows : Infinity,
    blockRows: threads > FEW_THREADS ? 32 : 128,
    positions: Math.min(Infinity, ...tables),
    inputDim: first.op === "input" ? first.out.dim : 0,
  };
  const kv = { slots, ctxLen: fillContext(ctxLen), type: kvTypeOf(options, encodes) };
  const slot = slotBytes(program, options);
  const taken = slot.once + ctxLen * slot.perToken; // one sequence of full length
  const streams =
    engine.streaming &&
    makeStreams([...steps, ...(remembering?.steps ?? [])], { source, memory, host: engine.streaming, taken });
  const shared: Shared = {
    memory,
    source,
    streams,
    weights: makeWeightPlaces(source, memory, { ...options, panelRows, streams }),
    buffers: makeBuffers(memory),
    kv,
    scratchRows,
    maxRows,
    ctxLen,
    vectorDim: limits.vectorDim,
    precise,
    words: words && !precise && !small,
    layers: new Map(),
    kept: new Map(),
    remembered: makeRemembered(program, memory, { maxRows, kv }),
    ropes: new Map(),
    scratchFloats: Math.max(1024, offeredFloats(steps)),
  };
  for (const { step, state } of keepingSteps(steps)) {
    if (state.kind !== "kv") {
      shared.kept.set(step, memory.allocate(slots * valuesOf(state) * 4, `states of ${slots} sequences`));
      continue;
    }
    const { layer, nKvHeads: kvHeads, keyDim: headDim, rope } = state;
    const valueDim = valueDimOf(step, state);
    shared.layers.set(layer, allocateLayer(memory, shared.kv, { kvHeads, headDim, valueDim, rope }));
  }
  return { memory, shared, limits };
}

/** The lowered programs for logits and for states, lowered on first use, and again when passes have grown. */
function makeLowered(
  whole: Program,
  shared: Shared,
): (name: "logits" | "states", rounds: number, remembers: boolean) => Lowered {
  const known = new Map<string, { lowered: Lowered; maxRows: number }>();
  const bare = withoutMemory(whole);
  return (name, rounds, remembers) => {
    const { maxRows } = shared;
    const program = remembers ? whole : bare;
    const key = `${name} ${rounds} ${program === whole}`;
    const found = known.get(key);
    if (found?.maxRows === maxRows) return found.lowered;
    const { steps, logits } = program;
    const lowered =
      name === "logits" && logits ? lower(steps, logits, shared, rounds) : lowerStates(program, shared, rounds);
    known.set(key, { lowered, maxRows });
    return lowered;
  };
}

/** The first part of a divided program does not select rows: its states are selected afterwards. */
function lowerStates(program: Program, shared: Shared, rounds: number): Lowered {
  const { states } = program;
  const steps = program.steps.slice(0, statesEnd(program));
  if (steps.some(({ op }) => op === "takeRows")) return lower(steps, states, shared, rounds);
  const out = { ...states, name: `${states.name} wanted` };
  return lower([...steps, { op: "takeRows", out, x: states }], out, shared, rounds);
}
