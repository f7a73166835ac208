/**
 * The reference backend: one thread of plain TypeScript, always precise. Every other backend is compared with it, and
 * it runs small models where nothing else can. `cpu/ops.ts` defines the steps; this file has the session, its KV cache
 * and its shift.
 */
import { AppError, assert } from "../../base/index.ts";
import type { Backend, LoadOptions, Memory, Program, Rows, Session, StateRows } from "../program/backend.ts";
import type { Checkpoint, Checkpoints } from "../program/kept-slots.ts";
import { batchLimits, checkBatch, type BatchLimits } from "./check-batch.ts";
import { allocateMemories } from "./cpu/memory.ts";
import { runStep } from "./cpu/ops.ts";
import type { KvLayer, Matrix, Pass } from "./cpu/pass.ts";
import { makeRows } from "./cpu/rows.ts";
import { makeWeightReader, type WeightReader } from "./cpu/weights.ts";
import { HeldMemories } from "./held-memories.ts";
import { writtenBy } from "../program/describe.ts";
import { ropeShift, ropeTable, rotateHead, type GrowingRopeTable } from "../program/rope.ts";
import { keepingSteps, kvStates, valuesOf } from "../program/sequence-state.ts";
import { statesEnd } from "../program/states.ts";
import { stepName } from "../program/step-name.ts";
import type { KvState } from "../program/kept-state.ts";
import type { Buf, RopeScaling, Step } from "../program/step.ts";

/** More than any machine with this backend has; smaller caches that cannot be allocated are refused later. */
const KV_BYTES_MAX = 64 * 1024 ** 3;

export const cpuBackend: Backend = {
  name: "cpu",
  load: async (program, options) => new CpuSession(program, options),
};

/** The states of one slot's convolutions and recurrences. */
interface CpuCheckpoint extends Checkpoint {
  readonly values: readonly Float32Array[];
}

/** Owns the KV cache and the unpacked weights; `close` releases them. */
class CpuSession implements Session {
  readonly backend = "cpu";
  readonly device = "CPU (1 thread, reference)";
  readonly bytes: Session["bytes"];
  readonly #program: Program;
  readonly #options: LoadOptions;
  readonly checkpoints?: Checkpoints;
  readonly #limits: BatchLimits;
  readonly #layers: readonly KvState[];
  readonly #weights: WeightReader;
  readonly #ropes: ReadonlyMap<RopeScaling, GrowingRopeTable>;
  readonly #scores: Float64Array;
  /** By layer. */
  #kv: ReadonlyMap<number, KvLayer>;
  /** States of convolutions and recurrences, (slots, values of the state). */
  #kept: ReadonlyMap<Step, Float32Array>;
  #memories: ReadonlyMap<number, KvLayer>;
  readonly #held: HeldMemories;
  /** Tokens that each slot holds. */
  readonly #lengths: Int32Array;
  #buffers = new Map<string, Float32Array>();
  #closed = false;

  constructor(program: Program, options: LoadOptions) {
    this.#program = program;
    this.#options = options;
    this.#limits = batchLimits(program, { ...options, anyRows: true });
    this.#layers = kvStates(program.steps);
    this.#lengths = new Int32Array(options.slots);
    const { kv, kept } = allocate(program.steps, options);
    this.#kv = kv;
    this.#kept = kept;
    if (kept.size > 0) this.checkpoints = { save: this.#save.bind(this), restore: this.#restore.bind(this) };
    this.#memories = allocateMemories(program.steps, options);
    this.#held = new HeldMemories(program.memory, options);
    this.#ropes = ropeTables(program.steps, options.ctxLen);
    this.#weights = makeWeightReader([...program.steps, ...(program.memory?.steps ?? [])], program.weights);
    this.#scores = new Float64Array(options.ctxLen);
    const tables = [...this.#ropes.values()].reduce((sum, { cos, sin }) => sum + cos.byteLength + sin.byteLength, 0);
    const held = [...kv.values(), ...this.#memories.values()].flatMap(({ k, v }) => [k, v]).concat([...kept.values()]);
    const heldBytes = held.reduce((sum, { byteLength }) => sum + byteLength, 0);
    this.bytes = { weights: this.#weights.cacheBytes, kv: heldBytes, scratch: tables };
    options.onProgress?.(1);
  }

  async run(batch: readonly Rows[]): Promise<Float32Array> {
    const { steps, logits } = this.#program;
    assert(logits, "an encoder has no logits");
    return this.#run(
      batch.map(({ logits: wanted, ...rows }) => ({ ...rows, states: wanted })),
      { steps, result: logits },
    );
  }

  async states(batch: readonly StateRows[]): Promise<Float32Array> {
    const { steps, states } = this.#program;
    return this.#run(batch, { steps: steps.slice(0, statesEnd(this.#program)), result: states });
  }

  #run(batch: readonly StateRows[], { steps, result }: { steps: readonly Step[]; result: Buf }): Float32Array {
    const pass = this.#checkedPass(batch);
    for (const { slot, memory } of batch) if (memory) this.#remember(slot, memory);
    const end = pass.positions.reduce((most, position) => Math.max(most, position + 1), 0);
    for (const table of this.#ropes.values()) table.reach(end);
    for (const step of steps) runStep(step, pass);
    if (this.#limits.keeps) for (const { slot, start, tokens } of batch) this.#lengths[slot] = start + tokens.length;
    const { data, rows, dim } = pass.get(result);
    const values = data.subarray(0, rows * dim);
    if (!values.every(Number.isFinite)) throw this.#fault(steps, pass);
    return values;
  }

  #remember(slot: number, memory: Memory): void {
    this.#held.hold(slot, memory, () => {
      const pass = this.#pass([this.#held.entryOf(slot, memory)]);
      for (const step of this.#program.memory!.steps) runStep(step, pass); // the check found one
    });
  }

  shift(slot: number, { keep, discard, length }: { keep: number; discard: number; length: number }): void {
    const { ctxLen, slots } = this.#options;
    assert(!this.#closed && slot >= 0 && slot < slots, `shift of slot ${slot} of ${slots}`);
    assert(keep >= 0 && discard >= 0, `shift of slot ${slot}: keep ${keep}, discard ${discard}`);
    assert(keep + discard <= length && length <= ctxLen, `shift of slot ${slot}: ${keep} + ${discard} of ${length}`);
    for (const { layer, nKvHeads, keyDim, rope } of this.#layers) {
      const { k, v } = this.#kv.get(layer)!; // allocated for each layer
      for (const cache of [k, v]) {
        const dim = cache.length / (slots * ctxLen);
        const start = slot * ctxLen * dim;
        cache.copyWithin(start + keep * dim, start + (keep + discard) * dim, start + length * dim);
      }
      if (!rope) continue;
      const turn = ropeShift(rope, { discard, ctxLen });
      const first = slot * ctxLen + keep;
      const end = (first + length - keep - discard) * nKvHeads * keyDim;
      for (let at = first * nKvHeads * keyDim; at < end; at += keyDim) rotateHead(k, at, turn, 0, rope);
    }
    this.#lengths[slot] = length - discard;
  }

  copy({ from, to, length }: { from: number; to: number; length: number }): void {
    const { ctxLen, slots } = this.#options;
    assert(!this.#closed && from < slots && to < slots && length <= ctxLen, `copy of ${length} from ${from} to ${to}`);
    for (const { k, v } of this.#kv.values()) {
      for (const cache of [k, v]) {
        const slotLen = cache.length / slots;
        cache.copyWithin(to * slotLen, from * slotLen, from * slotLen + (length * slotLen) / ctxLen);
      }
    }
  }

  #save(slot: number, length: number): CpuCheckpoint {
    assert(this.#lengths[slot] === length, `slot ${slot} holds ${this.#lengths[slot]} tokens, not ${length}`);
    const values = [...this.#kept.values()].map((all) => slotOf(all, slot, this.#options).slice());
    return { length, values, bytes: values.reduce((sum, { byteLength }) => sum + byteLength, 0) };
  }

  #restore(slot: number, checkpoint: Checkpoint): void {
    const { values, length } = checkpoint as CpuCheckpoint; // made by `#save`
    for (const [i, all] of [...this.#kept.values()].entries()) slotOf(all, slot, this.#options).set(values[i]!);
    this.#lengths[slot] = length;
  }

  close(): void {
    this.#closed = true;
    this.#kv = new Map();
    this.#kept = new Map();
    this.#memories = new Map();
    this.#weights.release();
    this.#buffers.clear();
  }

  #checkedPass(batch: readonly StateRows[]): Pass {
    assert(!this.#closed, "run of a closed session");
    checkBatch(batch, this.#limits);
    if (this.checkpoints) for (const rows of batch) this.#checkStart(rows);
    return this.#pass(batch);
  }

  #pass(batch: readonly StateRows[]): Pass {
    const made = new Map<string, Matrix>();
    return {
      ...makeRows(batch, ({ memory }) => this.#held.rowsOf(memory)),
      vectorDim: this.#limits.vectorDim,
      ctxLen: this.#options.ctxLen,
      slotCount: this.#options.slots,
      memories: this.#memories,
      scores: this.#scores,
      kv: this.#kv,
      kept: this.#kept,
      ropes: this.#ropes,
      weights: this.#weights,
      make: (buf, count) => {
        const matrix = { data: this.#buffer(buf, count), rows: count, dim: buf.dim };
        made.set(buf.name, matrix);
        return matrix;
      },
      get: (buf) => {
        const matrix = made.get(buf.name);
        assert(matrix?.dim === buf.dim, `buffer '${buf.name}' of ${buf.dim} was not written before it is read`);
        return matrix;
      },
    };
  }

  #checkStart({ slot, start }: StateRows): void {
    const length = this.#lengths[slot]!;
    assert(start === 0 || start === length, `slot ${slot}: rows from ${start} on, but its states stand at ${length}`);
  }

  /** Memory of a buffer, kept between runs and grown for more rows. */
  #buffer(buf: Buf, rows: number): Float32Array {
    const kept = this.#buffers.get(buf.name);
    if (kept && kept.length >= rows * buf.dim) return kept;
    const grown = new Float32Array(rows * buf.dim);
    this.#buffers.set(buf.name, grown);
    return grown;
  }

  /** Runs the steps of a failed pass again, and names the first one that wrote NaN or Infinity. */
  #fault(steps: readonly Step[], pass: Pass): AppError {
    const { weights } = this.#program;
    for (const [i, step] of steps.entries()) {
      runStep(step, pass);
      const { data, rows, dim } = pass.get(writtenBy(step));
      const at = data.subarray(0, rows * dim).findIndex((value) => !Number.isFinite(value));
      if (at < 0) continue;
      const where = `row ${Math.floor(at / dim)}, value ${at % dim}`;
      return new AppError(
        "runner",
        `${weights.path}: step ${i} (${stepName(step)}): expected numbers, got ${data[at]} at ${where}`,
      );
    }
    return new AppError(
      "runner",
      `${weights.path}: logits: expected numbers, got NaN or Infinity, but only numbers when run again`,
    );
  }
}

function ropeTables(steps: readonly Step[], ctxLen: number): Map<RopeScaling, GrowingRopeTable> {
  const tables = new Map<RopeScaling, GrowingRopeTable>();
  for (const step of steps) {
    if (step.op === "rope" && !tables.has(step.rope)) tables.set(step.rope, ropeTable(step.rope, ctxLen));
  }
  return tables;
}

/** One slot's part of the memory of all slots. */
const slotOf = (all: Float32Array, slot: number, { slots }: LoadOptions): Float32Array =>
  all.subarray((slot * all.length) / slots, ((slot + 1) * all.length) / slots);

/** Keys and values of every position, and the other states of the steps. */
function allocate(
  steps: readonly Step[],
  { slots, ctxLen }: LoadOptions,
): { kv: Map<number, KvLayer>; kept: Map<Step, Float32Array> } {
  const keeping = keepingSteps(steps);
  const cells = slots * ctxLen;
  const bytes = keeping.reduce((sum, { state }) => {
    return sum + 4 * (state.kind === "kv" ? cells * kvDim(state) : slots * valuesOf(state));
  }, 0);
  const tooLarge = (limit: string, cause?: unknown): AppError =>
    new AppError("too_large", `KV cache of ${slots} × ${ctxLen} tokens: ${limit}, got ${bytes}`, { cause });
  if (bytes > KV_BYTES_MAX) throw tooLarge(`expected at most ${KV_BYTES_MAX} bytes`);
  try {
    const kv = new Map<number, KvLayer>();
    const kept = new Map<Step, Float32Array>();
    for (const { step, state } of keeping) {
      if (state.kind !== "kv") kept.set(step, new Float32Array(slots * valuesOf(state)));
      else kv.set(state.layer, makeKvLayer(state, cells));
    }
    return { kv, kept };
  } catch (error) {
    throw tooLarge("expected what this machine can allocate", error);
  }
}

const kvDim = ({ nKvHeads, keyDim, valueDim }: KvState): number => nKvHeads * (keyDim + valueDim);

const makeKvLayer = ({ nKvHeads, keyDim, valueDim }: KvState, cells: number): KvLayer => {
  return { k: new Float32Array(cells * nKvHeads * keyDim), v: new Float32Array(cells * nKvHeads * valueDim) };
};
