/** The header of passes, the arrays it points to, and the threads that run them. */
import {
  KV_TYPES,
  PASS_BYTES,
  putPass,
  putRecord,
  RECORD_BYTES,
  type PassValues,
} from "../../../../kernels/simd/layout.ts";
import { ropeShift } from "../../program/rope.ts";
import { keptLayers, type Shared } from "./lowering.ts";
import type { Block, Memory } from "./memory.ts";
import type { ChosenRows } from "./chosen-rows.ts";
import type { Records } from "./records.ts";
import type { PassRows, RowLimits } from "./rows.ts";
import { runStreamed, type StreamedLayer } from "./streaming/streamed-layers.ts";
import type { TensorReader } from "./streaming/tensor-stream.ts";
import type { StreamingHost } from "./streaming/streams.ts";
import type { ThreadPool } from "./thread-pool.ts";

/** Checks of a counter before a thread sleeps: about 50 µs. */
const SPIN = 2000;

/**
 * After a prompt, a small model's first steps run on one thread, which costs little: the first token passes through
 * other processes, which would compete with these threads on a machine with two processors.
 */
const STEPS_ALONE = 2;
/** Maximum rows of such a step. */
const ROWS_ALONE = 8;

/** Addresses of the functions by which `pass.h` sleeps and wakes threads. */
export interface SleepFunctions {
  readonly waitOn: number;
  readonly wakeAll: number;
}

/** Runs passes, with the memory that it accesses. */
export interface Engine {
  /** The sessions' backend name. */
  readonly backend: string;
  /** Displayed name: "AVX-512 VNNI". */
  readonly level: string;
  /** Identifies the build of the kernels. */
  readonly build: string;
  /** Features that the kernels may use beyond their build target: `FEATURES`. */
  readonly features: number;
  readonly threads: number;
  readonly memory: Memory;
  /** Its kernels multiply prompts with float weights as 16-bit integers. */
  readonly words?: boolean;
  /** `PANEL_ROWS` of vec.h. */
  readonly panelRows: number;
  /** Omitted: the kernels make system calls themselves, or do not sleep in a pass. */
  readonly sleep?: SleepFunctions | undefined;
  /** For models that do not fit in memory; omitted: such models are refused. */
  readonly streaming?: StreamingHost | undefined;
  /** @param header address of the header of passes */
  start(header: number): ThreadPool;
}

/** A program as records, and the tables of the adapters that its rows have chosen. */
export interface Lowered extends Records {
  readonly chosen?: ChosenRows | undefined;
  /** Layers whose experts are read while a pass runs; none if the model fits in memory. */
  readonly streamed: readonly StreamedLayer[];
  /** Records whose weights are read in order; none if the model fits in memory. */
  readonly readers: readonly TensorReader[];
}

type PassRecords = Pick<Lowered, "ops" | "count">;

export interface Passes {
  /**
   * Runs a pass; writes the wanted rows to their offsets in the results. @param part of its records, as cut by `cuts`
   */
  run(
    rows: PassRows,
    lowered: PassRecords & Pick<Lowered, "chosen" | "streamed" | "readers">,
    results: Block & { dim: number },
    part?: { from: number; to: number },
  ): void;
  shift(slot: number, options: { keep: number; discard: number; length: number }): void;
  /** Releases threads and memory. */
  close(): void;
}

interface Options {
  readonly memory: Memory;
  readonly shared: Shared;
  readonly limits: RowLimits & { dim: number };
  readonly engine: Engine;
  /** See `LoadOptions`. */
  readonly small: boolean;
}

export function makePasses({ memory, shared, limits, engine, small }: Options): Passes {
  const { threads, features, sleep } = engine;
  const header = memory.allocate(PASS_BYTES, "the header of passes");
  const view = new DataView(header.view.buffer, header.view.byteOffset, PASS_BYTES);
  const stampWord = new Int32Array(header.view.buffer, header.view.byteOffset, 1);
  const scratchBytes = Math.ceil((shared.scratchFloats * 4) / 64) * 64;
  const scratch = memory.allocate(scratchBytes * threads, "scratch");
  putPass(view, { threads, features, spin: SPIN, ...sleep, scratch: scratch.address, scratchBytes });
  let room = limits.maxRows;
  let fill = makeArrays(memory, limits, view);
  const pool = engine.start(header.address);
  let unordered: Block | undefined;
  let shiftBy: ReturnType<typeof makeShift> | undefined;
  let stamp = 0;
  let stepsBehind = 0; // steps since the last prompt

  const go = (values: PassValues, isAlone = false): void => {
    Atomics.store(stampWord, 0, 0);
    putPass(view, values);
    stamp = stampAfter(stamp);
    Atomics.store(stampWord, 0, stamp);
    if (isAlone) pool.runAlone();
    else pool.run();
  };
  /** Memory for results that are not in batch order. */
  const aside = (bytes: number): Block => {
    if (!unordered || unordered.view.byteLength < bytes) unordered = memory.allocate(bytes, "results");
    return unordered;
  };

  return {
    run(rows, { ops, count, chosen, streamed, readers }, results, { from, to } = { from: 0, to: count }) {
      const { targets } = rows;
      const first = targets[0] ?? 0;
      const inOrder = targets.every((target, i) => target === first + i);
      const rowBytes = results.dim * 4;
      const out = inOrder ? undefined : aside(targets.length * rowBytes);
      if (rows.tokens.length > room) {
        room = shared.maxRows;
        fill = makeArrays(memory, { ...limits, maxRows: room }, view);
      }
      fill(rows);
      shared.remembered?.fill(rows);
      const result = out ? out.address : results.address + first * rowBytes;
      const isStep = rows.tokens.length === rows.decodeRows;
      const isAlone = small && isStep && rows.decodeRows <= ROWS_ALONE && stepsBehind < STEPS_ALONE;
      const part = (begin: number, end: number, tables: readonly Int32Array[] = []): void => {
        chosen?.fill(rows, stampAfter(stamp));
        for (const table of tables) Atomics.store(table, 1, stampAfter(stamp));
        go({ ops: ops + begin * RECORD_BYTES, opCount: end - begin, ...countsOf(rows), result }, isAlone);
      };
      if (shared.streams && streamed.length > 0) runStreamed(streamed, shared.streams, { from, to, go: part });
      else if (readers.length > 0) shared.streams!.run(readers, { from, to, go: part });
      else part(from, to);
      stepsBehind = isStep ? stepsBehind + 1 : 0;
      if (!out) return;
      for (const [i, target] of targets.entries()) {
        results.view.set(out.view.subarray(i * rowBytes, (i + 1) * rowBytes), target * rowBytes);
      }
    },
    shift(slot, options) {
      shiftBy ??= makeShift(shared, memory);
      const { ops, count } = shiftBy({ discard: options.discard, ctxLen: limits.ctxLen });
      go({ ops, opCount: count, slot, ...options });
    },
    close() {
      pool.dismiss(() => {
        shared.streams?.close();
        memory.release();
      });
    },
  };
}

/** The number of the next pass: 0 means that the header is being written. */
const stampAfter = (stamp: number): number => (stamp + 1) | 0 || 1;

const countsOf = (rows: PassRows): PassValues => ({
  rows: rows.tokens.length,
  decodeRows: rows.decodeRows,
  wanted: rows.wanted.length,
  wantedDecode: rows.wantedDecode,
  blockCount: rows.blocks.length / 4,
});

/** Arrays with the data of each row, and the function that fills them. */
function makeArrays(memory: Memory, limits: RowLimits, view: DataView): (rows: PassRows) => void {
  const { maxRows, inputDim, vectorDim, memory: remembered } = limits;
  const array = (name: keyof PassValues, width: number): Int32Array => {
    const { address, view: bytes } = memory.allocate(maxRows * width * 4, name);
    putPass(view, { [name]: address });
    return new Int32Array(bytes.buffer, bytes.byteOffset, maxRows * width);
  };
  const tokens = array("tokens", 1);
  const slots = array("slots", 1);
  const cells = array("cells", 1);
  const starts = array("starts", 1);
  const ends = array("ends", 1);
  const positions = array("positions", 3);
  const scratchRows = array("scratchRows", 1);
  const wanted = array("wantedRows", 1);
  const blocks = array("blocks", 4);
  const width = Math.max(inputDim, vectorDim, remembered.dim);
  const { buffer, byteOffset, length } = array("input", width);
  const input = new Float32Array(buffer, byteOffset, length);
  return (rows) => {
    tokens.set(rows.tokens);
    slots.set(rows.slots);
    cells.set(rows.cells);
    starts.set(rows.starts);
    ends.set(rows.ends);
    positions.set(rows.positions);
    scratchRows.set(rows.scratchRows);
    wanted.set(rows.wanted);
    blocks.set(rows.blocks);
    for (const { row, values } of rows.inputs) input.set(values, row * rows.inputWidth);
  };
}

/** Records that shift the keys and values of each layer: created once, filled for each shift. */
function makeShift(shared: Shared, memory: Memory): (by: { discard: number; ctxLen: number }) => PassRecords {
  const layers = keptLayers(shared);
  const records = memory.allocate(Math.max(1, layers.length) * RECORD_BYTES, "records");
  const view = new DataView(records.view.buffer, records.view.byteOffset, records.view.byteLength);
  const turns = new Map(
    layers.flatMap(({ rope }) => (rope ? [[rope, memory.allocate(rope.rotaryDim * 4, "a rotation")] as const] : [])),
  );
  for (const [i, { keys, values, rope, kvHeads, headDim, valueDim }] of layers.entries()) {
    const turn = rope && turns.get(rope)!.address;
    const turned = turn ? { cos: turn, sin: turn + rope.rotaryDim * 2, rotaryDim: rope.rotaryDim } : {};
    putRecord(view, i, {
      kind: "shift",
      head: { rowSet: 0 },
      values: {
        keys: keys.address,
        values: values.address,
        ...turned,
        heads: kvHeads,
        headDim,
        valueDim,
        ctxLen: shared.kv.ctxLen,
        neox: rope?.style === "neox" ? 1 : 0,
        type: KV_TYPES[shared.kv.type],
      },
    });
  }
  return (by) => {
    for (const [rope, { view: bytes }] of turns) {
      const { cos, sin } = ropeShift(rope, by);
      const both = new Float32Array(bytes.buffer, bytes.byteOffset, rope.rotaryDim);
      both.set(cos);
      both.set(sin, rope.rotaryDim / 2);
    }
    return { ops: records.address, count: layers.length };
  };
}
