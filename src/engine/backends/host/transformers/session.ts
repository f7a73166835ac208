/**
 * A session on the library's forward pass: one sequence at a time, ids and the sequence's past in, logits out. The
 * engine does sampling, batching, prefixes and statistics.
 */
import { AppError, assert } from "../../../../base/index.ts";
import { halfToFloat } from "../../../formats/half.ts";
import type { LoadOptions, Program, Rows, Session, StateRows } from "../../../program/backend.ts";
import { checkBatch } from "../../check-batch.ts";
import { NO_PAST, pastOf, shortened, type Past, type PastAxes } from "./cache.ts";
import type { Library, LibraryModel, Tensor } from "./library.ts";

/** A graph without an input for the number of wanted logits computes them for all rows: limits the bytes of a run. */
const LOGITS_BYTES_MAX = 256 * 2 ** 20;
const STATES = ["last_hidden_state", "token_embeddings"];

export interface SessionParts {
  readonly library: Pick<Library, "Tensor">;
  readonly model: LibraryModel;
  readonly program: Program;
  readonly options: LoadOptions;
  readonly axes: PastAxes;
  readonly device: string;
  readonly bytes: Session["bytes"];
}

interface Slot {
  /** All tokens of the sequence, of which `past` holds the first ones: none after a shift. */
  tokens: number[];
  past: Past;
}

/** Owns the model; `close` releases it. */
export class LibrarySession implements Session {
  readonly backend = "transformers";
  readonly device: string;
  readonly bytes: Session["bytes"];
  readonly #parts: SessionParts;
  readonly #slots: Slot[];
  readonly #rowsMax: number;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    ({ device: this.device, bytes: this.bytes } = parts);
    this.#slots = Array.from({ length: parts.options.slots }, () => ({ tokens: [], past: NO_PAST }));
    this.#rowsMax = Math.max(1, Math.floor(LOGITS_BYTES_MAX / (4 * parts.program.shape.vocabSize)));
  }

  async run(batch: readonly Rows[]): Promise<Float32Array> {
    this.#check(batch);
    const { vocabSize } = this.#parts.program.shape;
    const rows = batch.reduce((sum, { logits, tokens }) => sum + countOf(logits, tokens.length), 0);
    const all = new Float32Array(rows * vocabSize);
    let at = 0;
    for (const { slot: index, start, tokens, logits } of batch) {
      const slot = this.#slots[index]!; // checked
      assert(start <= slot.tokens.length, `slot ${index}: rows from ${start} on, of ${slot.tokens.length}`);
      slot.tokens = [...slot.tokens.slice(0, start), ...tokens];
      const wanted = countOf(logits, tokens.length);
      await this.#advance(slot, {
        start,
        wanted,
        take: (values) => all.set(values, (at += values.length) - values.length),
      });
    }
    return all;
  }

  /**
   * Evaluates the tokens of a slot that are not in its past.
   * @param take receives the logits of the last `wanted` rows, in order
   */
  async #advance(
    slot: Slot,
    { start, wanted, take }: { start: number; wanted: number; take: (logits: Float32Array) => void },
  ): Promise<void> {
    const { axes, library } = this.#parts;
    const { tokens } = slot;
    let past = shortened(slot.past, { length: start, axes, make: library.Tensor });
    slot.past = NO_PAST; // after a failure, nothing is kept
    while (past.length < tokens.length) {
      const piece = tokens.slice(past.length, past.length + this.#rowsMax);
      const end = past.length + piece.length;
      const rows = Math.max(0, Math.min(piece.length, end - (tokens.length - wanted)));
      const outputs = await this.#forward(piece, { past, rows });
      if (rows > 0) take(this.#lastRows(outputs["logits"], rows));
      past = pastOf(outputs, { length: end, axes, what: this.#what });
    }
    slot.past = past;
  }

  async states(batch: readonly StateRows[], pause?: () => Promise<void>): Promise<Float32Array> {
    this.#check(batch);
    const { dim } = this.#parts.program.states;
    if (this.#parts.program.logits) {
      throw new AppError("bad_request", "the model does not support embeddings: its graph has logits only");
    }
    const rows = batch.reduce((sum, { states, tokens }) => sum + countOf(states, tokens.length), 0);
    const all = new Float32Array(rows * dim);
    let at = 0;
    for (const { tokens, states } of batch) {
      const outputs = await this.#forward([...tokens], { past: NO_PAST, rows: 0 });
      const found = STATES.map((name) => outputs[name]).find((tensor) => tensor !== undefined);
      const values = this.#floats(found, [tokens.length, dim], STATES[0]!);
      const count = countOf(states, tokens.length);
      const first = states === "last" ? tokens.length - 1 : 0;
      all.set(values.subarray(first * dim, (first + count) * dim), at);
      at += count * dim;
      await pause?.();
    }
    return all;
  }

  /** Keys contain their positions but not their rotation: the remaining tokens are evaluated again as a new text. */
  shift(slot: number, { keep, discard, length }: { keep: number; discard: number; length: number }): void {
    const { tokens } = this.#slots[slot]!; // the engine chose an existing slot
    this.#slots[slot] = { tokens: [...tokens.slice(0, keep), ...tokens.slice(keep + discard, length)], past: NO_PAST };
  }

  copy({ from, to, length }: { from: number; to: number; length: number }): void {
    const { tokens, past } = this.#slots[from]!; // the engine chose an existing slot
    this.#slots[to] = { tokens: tokens.slice(0, length), past };
  }

  close(): void {
    for (const slot of this.#slots) slot.past = NO_PAST;
    void this.#parts.model.dispose().catch(() => {}); // the process ends anyway
  }

  get #what(): string {
    return this.#parts.program.weights.path;
  }

  #check(batch: readonly StateRows[] | readonly Rows[]): void {
    const { program, options } = this.#parts;
    const { vocabSize } = program.shape;
    const keeps = program.logits !== undefined;
    const rows = batch.map((each): StateRows => ({ ...each, states: "none" }));
    const none = { vectorDim: 0, anyRows: false, adapters: 0, memory: { rows: 0, dim: 0 } };
    checkBatch(rows, { ...options, keeps, vocabSize, ...none });
  }

  /** @param rows the last rows, whose logits are wanted */
  #forward(
    tokens: readonly number[],
    { past, rows }: { past: Past; rows: number },
  ): Promise<Readonly<Record<string, Tensor>>> {
    const { Tensor: Make } = this.#parts.library;
    const ints = (values: readonly number[], dims: readonly number[]): Tensor =>
      new Make("int64", BigInt64Array.from(values, BigInt), dims);
    const all = past.length + tokens.length;
    return this.#parts.model({
      input_ids: ints(tokens, [1, tokens.length]),
      attention_mask: new Make("int64", new BigInt64Array(all).fill(1n), [1, all]),
      num_logits_to_keep: ints([Math.max(1, rows)], []),
      ...(past.length > 0 ? { past_key_values: { ...past.tensors } } : {}),
    });
  }

  #lastRows(logits: Tensor | undefined, rows: number): Float32Array {
    const { vocabSize } = this.#parts.program.shape;
    const made = logits?.dims[1] ?? 0;
    const values = this.#floats(logits, [made, vocabSize], "logits");
    if (made < rows)
      throw new AppError("bad_file", `${this.#what}: output 'logits': expected ${rows} rows, got ${made}`);
    return values.subarray((made - rows) * vocabSize);
  }

  /**
   * The values of an output for one sequence. Throws `bad_file` for another shape, `runner` if a value is NaN or
   * infinite.
   */
  #floats(tensor: Tensor | undefined, shape: readonly [number, number], name: string): Float32Array {
    if (!tensor || tensor.dims.join() !== [1, ...shape].join()) {
      const found = tensor ? `(${tensor.dims.join(", ")})` : "none";
      throw new AppError(
        "bad_file",
        `${this.#what}: output '${name}': expected (1, ${shape.join(", ")}), got ${found}`,
      );
    }
    const { data, type } = tensor;
    const isHalf = type === "float16" && data instanceof Uint16Array;
    const values =
      data instanceof Float32Array ? data : Float32Array.from(data as Float64Array, isHalf ? halfToFloat : Number);
    const bad = values.findIndex((value) => !Number.isFinite(value));
    if (bad < 0) return values;
    throw new AppError("runner", `${this.#what}: output '${name}': expected numbers, got ${values[bad]} at ${bad}`);
  }
}

function countOf(wanted: StateRows["states"] | Rows["logits"], rows: number): number {
  return wanted === "none" ? 0 : wanted === "all" ? rows : 1;
}
