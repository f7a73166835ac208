/**
 * The reference backend: one thread of plain TypeScript, always precise. It is what every other backend is compared
 * with, and what runs small models where nothing else can. What the steps mean is in `cpu/ops.ts`; here are the
 * session, its KV cache and its shift.
 */
import { AppError, assert } from "../base/errors.ts";
import type { Backend, LoadOptions, Program, Rows, Session, StateRows } from "./backend.ts";
import { runStep, type KvLayer, type Matrix, type Pass } from "./cpu/ops.ts";
import { makeWeightReader, type WeightReader } from "./cpu/weights.ts";
import { ropeShift, ropeTable, rotateHead, type GrowingRopeTable } from "./rope.ts";
import { statesEnd, writtenBy } from "./states.ts";
import { stepName } from "./step-name.ts";
import type { Buf, RopeScaling, Step } from "./step.ts";

/** More than any machine that would run this backend has; below it, what cannot be allocated is refused then. */
const KV_BYTES_MAX = 64 * 1024 ** 3;

export const cpuBackend: Backend = {
  name: "cpu",
  unavailable: () => undefined,
  load: async (program, options) => new CpuSession(program, options),
};

/** An attention step and the rotation of its keys; none where the layer has no positions. */
interface Layer {
  readonly step: Step & { op: "attention" };
  readonly rope: RopeScaling | undefined;
}

/** Owns the KV cache and the unpacked weights; `close` lets go of them. */
class CpuSession implements Session {
  readonly backend = "cpu";
  readonly device = "CPU (1 thread, reference)";
  readonly bytes: Session["bytes"];
  readonly #program: Program;
  readonly #options: LoadOptions;
  readonly #layers: readonly Layer[];
  readonly #weights: WeightReader;
  readonly #ropes: ReadonlyMap<RopeScaling, GrowingRopeTable>;
  readonly #scores: Float64Array;
  /** By layer. */
  #kv: ReadonlyMap<number, KvLayer>;
  #buffers = new Map<string, Float32Array>();
  #closed = false;

  constructor(program: Program, options: LoadOptions) {
    this.#program = program;
    this.#options = options;
    this.#layers = layersOf(program.steps);
    this.#kv = allocateKv(this.#layers, options);
    this.#ropes = ropeTables(program.steps, options.ctxLen);
    this.#weights = makeWeightReader(program.steps, program.weights);
    this.#scores = new Float64Array(options.ctxLen);
    const tables = [...this.#ropes.values()].reduce((sum, { cos, sin }) => sum + cos.byteLength + sin.byteLength, 0);
    const kv = [...this.#kv.values()].reduce((sum, { k, v }) => sum + k.byteLength + v.byteLength, 0);
    this.bytes = { weights: this.#weights.cacheBytes, kv, scratch: tables };
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
    const pass = this.#pass(batch);
    const end = batch.reduce((most, { start, tokens }) => Math.max(most, start + tokens.length), 0);
    for (const table of this.#ropes.values()) table.reach(end);
    for (const step of steps) runStep(step, pass);
    const { data, rows, dim } = pass.get(result);
    const values = data.subarray(0, rows * dim);
    if (!values.every(Number.isFinite)) throw this.#fault(steps, pass);
    return values;
  }

  shift(slot: number, { keep, discard, length }: { keep: number; discard: number; length: number }): void {
    const { ctxLen, slots } = this.#options;
    assert(!this.#closed && slot >= 0 && slot < slots, `shift of slot ${slot} of ${slots}`);
    assert(keep >= 0 && discard >= 0, `shift of slot ${slot}: keep ${keep}, discard ${discard}`);
    assert(keep + discard <= length && length <= ctxLen, `shift of slot ${slot}: ${keep} + ${discard} of ${length}`);
    for (const { step, rope } of this.#layers) {
      const kvDim = step.nKvHeads * step.headDim;
      const start = slot * ctxLen * kvDim;
      const { k, v } = this.#kv.get(step.layer)!; // allocated for each
      for (const cache of [k, v]) {
        cache.copyWithin(start + keep * kvDim, start + (keep + discard) * kvDim, start + length * kvDim);
      }
      if (!rope) continue;
      const turn = ropeShift(rope, { discard, ctxLen });
      const end = start + (length - discard) * kvDim;
      for (let at = start + keep * kvDim; at < end; at += step.headDim) rotateHead(k, at, turn, 0, rope);
    }
  }

  copy({ from, to, length }: { from: number; to: number; length: number }): void {
    const { ctxLen, slots } = this.#options;
    assert(!this.#closed && from < slots && to < slots && length <= ctxLen, `copy of ${length} from ${from} to ${to}`);
    for (const { step } of this.#layers) {
      const slotLen = ctxLen * step.nKvHeads * step.headDim;
      const end = from * slotLen + length * step.nKvHeads * step.headDim;
      const { k, v } = this.#kv.get(step.layer)!; // allocated for each
      for (const cache of [k, v]) cache.copyWithin(to * slotLen, from * slotLen, end);
    }
  }

  close(): void {
    this.#closed = true;
    this.#kv = new Map();
    this.#weights.release();
    this.#buffers.clear();
  }

  #pass(batch: readonly StateRows[]): Pass {
    const { ctxLen, slots } = this.#options;
    assert(!this.#closed, "run of a closed session");
    const keeps = this.#layers.length > 0;
    const distinct = new Set(batch.map(({ slot }) => slot)).size === batch.length;
    assert(!keeps || distinct, "a slot appears twice in a batch");
    const rows = batch.flatMap(({ slot, start, tokens, states }, sequence) => {
      assert(!keeps || (slot >= 0 && slot < slots), `slot ${slot} of ${slots}`);
      assert(start >= 0 && start + tokens.length <= ctxLen, `slot ${slot}: ${start} + ${tokens.length} of ${ctxLen}`);
      return Array.from(tokens, (token, i) => ({
        token,
        slot,
        sequence,
        position: start + i,
        wanted: states === "all" || (states !== "none" && i === (states === "first" ? 0 : tokens.length - 1)),
      }));
    });
    const made = new Map<string, Matrix>();
    return {
      tokens: Int32Array.from(rows, (row) => row.token),
      input: concat(batch.flatMap(({ input }) => (input ? [input] : []))),
      slots: Int32Array.from(rows, (row) => row.slot),
      sequences: Int32Array.from(rows, (row) => row.sequence),
      positions: Int32Array.from(rows, (row) => row.position),
      wanted: Int32Array.from(rows.flatMap((row, i) => (row.wanted ? [i] : []))),
      ctxLen,
      scores: this.#scores,
      kv: this.#kv,
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

  /** Memory of a buffer, kept between runs and grown when more rows come. */
  #buffer(buf: Buf, rows: number): Float32Array {
    const kept = this.#buffers.get(buf.name);
    if (kept && kept.length >= rows * buf.dim) return kept;
    const grown = new Float32Array(rows * buf.dim);
    this.#buffers.set(buf.name, grown);
    return grown;
  }

  /** Runs the steps of a failed pass again, and names the first that wrote something that is no number. */
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
    return new AppError("runner", `${weights.path}: logits: expected numbers, got NaN or Infinity once`);
  }
}

function concat(parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The attention steps in order of their layer, each with the last rotation of its keys before it. */
function layersOf(steps: readonly Step[]): Layer[] {
  const ropes = new Map<string, RopeScaling>();
  const layers: Layer[] = [];
  for (const step of steps) {
    if (step.op === "linear") ropes.delete(step.out.name);
    if (step.op === "rope") ropes.set(step.x.name, step.rope);
    if (step.op !== "attention") continue;
    const last = layers.at(-1)?.step.layer ?? -1;
    assert(step.layer > last, `attention of layer ${step.layer} behind that of layer ${last}`);
    layers.push({ step, rope: ropes.get(step.k.name) });
  }
  return layers;
}

function ropeTables(steps: readonly Step[], ctxLen: number): Map<RopeScaling, GrowingRopeTable> {
  const tables = new Map<RopeScaling, GrowingRopeTable>();
  for (const step of steps) {
    if (step.op === "rope" && !tables.has(step.rope)) tables.set(step.rope, ropeTable(step.rope, ctxLen));
  }
  return tables;
}

function allocateKv(layers: readonly Layer[], { slots, ctxLen }: LoadOptions): Map<number, KvLayer> {
  const lengths = layers.map(({ step }) => slots * ctxLen * step.nKvHeads * step.headDim);
  const bytes = lengths.reduce((sum, length) => sum + 2 * 4 * length, 0);
  const tooLarge = (limit: string, cause?: unknown): AppError =>
    new AppError("too_large", `KV cache of ${slots} × ${ctxLen} tokens: ${limit}, got ${bytes}`, { cause });
  if (bytes > KV_BYTES_MAX) throw tooLarge(`expected at most ${KV_BYTES_MAX} bytes`);
  try {
    const make = (length: number): KvLayer => ({ k: new Float32Array(length), v: new Float32Array(length) });
    return new Map(layers.map(({ step }, i) => [step.layer, make(lengths[i]!)]));
  } catch (error) {
    throw tooLarge("expected what this machine can allocate", error);
  }
}
