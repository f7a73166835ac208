/** A loaded model on the kernels: batches to passes, and the KV cache between them. */
import { AppError, assert } from "../../base/errors.ts";
import type { LoadOptions, Program, Session, StateRows } from "../backend.ts";
import { batchLimits } from "../check-batch.ts";
import { statesEnd } from "../states.ts";
import { keepingSteps, valuesOf } from "../sequence-state.ts";
import { makeSlotStates } from "./checkpoints.ts";
import { allocateLayer, copyLayer, fillContext } from "./kv.ts";
import { lower, type Lowered } from "./lower.ts";
import type { Shared } from "./lowering.ts";
import type { Block, Memory } from "./memory.ts";
import { makePasses, type Engine } from "./passes.ts";
import { makeBuffers } from "./records.ts";
import { checkRows, passesOf, wantedRows, type RowLimits } from "./rows.ts";
import { makeWeightPlaces } from "./weights.ts";

/** Rows of one pass: enough for weights to be unpacked seldom, few enough for activations to stay in caches. */
const PASS_ROWS = 512;
/** Places for keys and values of the sequences of an encoder's pass. */
const PLACES = 8192;

/** Loads a program: lowers it, and starts threads. Nothing of its weights is copied but vectors. */
export function makeSession(program: Program, options: LoadOptions, engine: Engine): Session {
  const parts = makeParts(program, options, engine.memory);
  const { shared, limits, memory } = parts;
  const logits = program.logits && lower(program.steps, program.logits, shared);
  let states: Lowered | undefined = logits ? undefined : lowerStates(program, shared);
  const dim = Math.max(program.states.dim, program.logits?.dim ?? 0);
  const passes = makePasses({ memory, shared, limits: { ...limits, dim }, engine });
  const kept = [...shared.kept.values()];
  const slotStates = kept.length > 0 ? makeSlotStates(kept, options.slots) : undefined;
  let results: Block | undefined;
  let closed = false;

  const run = (batch: readonly StateRows[], lowered: Lowered, name: string, dim: number): Float32Array => {
    assert(!closed, "run of a closed session");
    checkRows(batch, limits);
    slotStates?.check(batch);
    const rows = batch.reduce((sum, each) => sum + wantedRows(each), 0);
    if (!results || results.view.byteLength < rows * dim * 4) results = memory.allocate(rows * dim * 4, "results");
    const end = batch.reduce((most, { start, tokens }) => Math.max(most, start + tokens.length), 0);
    for (const table of shared.ropes.values()) {
      table.reach(end);
      memory.refresh?.([table.cos, table.sin]);
    }
    for (const pass of passesOf(batch, limits)) passes.run(pass, lowered, { ...results, dim });
    slotStates?.ran(batch);
    const out = new Float32Array(results.view.buffer, results.view.byteOffset, rows * dim);
    checkFinite(out, { path: program.weights.path, name, dim });
    return out;
  };

  const { ctxLen } = options;
  options.onProgress?.(1);
  const held = [...shared.layers.values()].flatMap(({ keys, values }) => [keys, values]).concat(kept);
  const kv = held.reduce((sum, { view }) => sum + view.length, 0);
  return {
    backend: "simd",
    device: `CPU (${engine.threads} thread${engine.threads === 1 ? "" : "s"}, ${engine.level})`,
    bytes: { weights: 0, kv, scratch: memory.bytes - kv },
    ...(slotStates && { checkpoints: { save: slotStates.save, restore: slotStates.restore } }),
    async run(batch) {
      assert(logits && program.logits, "an encoder has no logits");
      return run(
        batch.map(({ logits: states, ...rows }) => ({ ...rows, states })),
        logits,
        "logits",
        program.logits.dim,
      );
    },
    async states(batch) {
      states ??= lowerStates(program, shared);
      return run(batch, states, "states", program.states.dim);
    },
    shift(slot, { keep, discard, length }) {
      assert(!closed && slot >= 0 && slot < options.slots, `shift of slot ${slot} of ${options.slots}`);
      assert(keep >= 0 && discard >= 0, `shift of slot ${slot}: keep ${keep}, discard ${discard}`);
      assert(keep + discard <= length && length <= ctxLen, `shift of slot ${slot}: ${keep} + ${discard} of ${length}`);
      passes.shift(slot, { keep, discard, length });
      slotStates?.shifted(slot, length - discard);
    },
    copy({ from, to, length }) {
      const { slots } = options;
      assert(!closed && from < slots && to < slots && length <= ctxLen, `copy of ${length} from ${from} to ${to}`);
      for (const [layer, each] of shared.layers) if (layer >= 0) copyLayer(each, shared.kv, { from, to, length });
    },
    close() {
      if (closed) return;
      closed = true;
      passes.close();
    },
  };
}

interface Parts {
  readonly memory: Memory;
  readonly shared: Shared;
  readonly limits: RowLimits;
}

function makeParts(program: Program, options: LoadOptions, memory: Memory): Parts {
  const { ctxLen, slots, precise } = options;
  const { steps, weights: source } = program;
  const encodes = steps.some(({ op }) => op === "bidirectionalAttention");
  const maxRows = Math.max(PASS_ROWS, slots, encodes ? ctxLen : 0);
  const places = encodes ? Math.max(PLACES, fillContext(ctxLen)) : 0;
  const first = steps[0]!;
  const tables = steps.flatMap((step) => (step.op === "addPosition" ? [step.table.outDim] : []));
  const limits: RowLimits = {
    ...batchLimits(program, { ctxLen, slots, anyRows: false }),
    maxRows,
    places: encodes ? places : Infinity,
    positions: Math.min(Infinity, ...tables),
    inputDim: first.op === "input" ? first.out.dim : 0,
  };
  const shared: Shared = {
    memory,
    source,
    weights: makeWeightPlaces(source, memory),
    buffers: makeBuffers(memory),
    kv: { slots, ctxLen: fillContext(ctxLen), type: precise ? "f32" : "f16" },
    places,
    maxRows,
    ctxLen,
    precise,
    layers: new Map(),
    kept: new Map(),
    ropes: new Map(),
    scratchFloats: 1024,
  };
  for (const { step, state } of keepingSteps(steps)) {
    if (state.kind !== "kv") {
      shared.kept.set(step, memory.allocate(slots * valuesOf(state) * 4, `states of ${slots} sequences`));
      continue;
    }
    const { layer, nKvHeads: kvHeads, keyDim: headDim, rope } = state;
    const valueDim = step.op === "latentAttention" ? step.valueDim : state.valueDim;
    shared.layers.set(layer, allocateLayer(memory, shared.kv, { kvHeads, headDim, valueDim, rope }));
  }
  return { memory, shared, limits };
}

/** The part of a program that another backend goes on with takes no rows by itself: its states are taken behind it. */
function lowerStates(program: Program, shared: Shared): Lowered {
  const { states } = program;
  const steps = program.steps.slice(0, statesEnd(program));
  if (steps.some(({ op }) => op === "takeRows")) return lower(steps, states, shared);
  const out = { ...states, name: `${states.name} wanted` };
  return lower([...steps, { op: "takeRows", out, x: states }], out, shared);
}

/** Throws `runner` at the first value that is not a number: broken weights would otherwise be sampled from. */
function checkFinite(values: Float32Array, { path, name, dim }: { path: string; name: string; dim: number }): void {
  for (let i = 0; i < values.length; i++) {
    const x = values[i]!;
    if (x - x === 0) continue;
    const where = `row ${Math.floor(i / dim)}, ${name === "logits" ? "token" : "value"} ${i % dim}`;
    throw new AppError("runner", `${path}: ${name}: expected numbers, got ${x} at ${where}`);
  }
}
