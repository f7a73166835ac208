/**
 * A list of records under construction: buffers and their packed forms, and merging of records. Independent of steps,
 * which `lower.ts` turns into records.
 */
import {
  KINDS,
  putRecord,
  RECORD_BYTES,
  RESULT,
  ROWS,
  type MatrixValues,
  type OpKind,
  type RecordValues,
} from "../../../../kernels/simd/layout.ts";
import { assert } from "../../../base/index.ts";
import type { Buf } from "../../program/step.ts";
import type { Block, Memory } from "./memory.ts";
import type { TensorReader } from "./streaming/tensor-stream.ts";

/** Bytes of a row's activations in 8 bits, or in 16 for interleaved weights: `PACKED_BYTES` of unit.h. */
const packedBytes = (n: number, memory: Memory): number =>
  Math.ceil(n / 256) * 256 * (memory.interleaves ? 3.5 : 1.875);

/** The same as 16-bit words: `WORD_BYTES` of words.h. */
const wordBytes = (n: number): number => Math.ceil(n / 256) * (256 * 2 + 4);

/** Ops whose work is not divided by rows. A thread runs several of the other ops in sequence on one row. */
const CHUNK_KINDS: readonly OpKind[] = [
  ...(["linear", "headLinear", "attend", "group"] as const),
  ...(["causalConv", "compress", "deltaRule", "wkv", "selectiveScan", "shift"] as const),
  "scorePositions", // reads keys that other rows have stored
];
const ROW_KINDS: ReadonlySet<OpKind> = new Set(KINDS.filter((kind) => !CHUNK_KINDS.includes(kind)));

interface PendingRecord<K extends OpKind = OpKind> {
  readonly kind: K;
  readonly rowSet: number;
  readonly perRow: number;
  values: RecordValues<K>;
  /** The table that the kernels read in place of `groups`. */
  slots?: number;
}

/** An activation: its address, and its rows. */
export interface Activation {
  readonly name: string;
  readonly address: number;
  readonly dim: number;
  readonly rowSet: number;
  /** Its rows per row of its set. */
  readonly perRow: number;
}

/** Addresses of buffers, shared by the programs of a session. */
export interface Buffers {
  of(name: string, bytes: number): number;
}

/** @param maxRows of a pass */
export function makeBuffers(memory: Memory): Buffers {
  const known = new Map<string, { block: Block; bytes: number }>();
  return {
    of(name, bytes) {
      const found = known.get(name);
      if (found && found.bytes >= bytes) return found.block.address;
      const block = memory.allocate(bytes, `buffer '${name}'`);
      known.set(name, { block, bytes });
      return block.address;
    },
  };
}

/** A program as records. */
export interface Records {
  readonly ops: number;
  readonly count: number;
  /** Indexes of records between which passes can be interrupted, including the end. */
  readonly cuts: readonly number[];
}

export interface RecordList {
  /** A new activation, or the existing one of that name. Each pass sets the address of the program's result. */
  make(buf: Buf, rows: { rowSet: number; perRow?: number }): Activation;
  get(buf: Buf): Activation;
  /** Adds a record over the rows of an activation. */
  add<K extends OpKind>(kind: K, rows: Pick<Activation, "rowSet" | "perRow">, values: RecordValues<K>): void;
  /** The last record, if it has that kind: to be changed in place. */
  last<K extends OpKind>(kind: K): PendingRecord<K> | undefined;
  /** The records that read units of weights, found by the addresses of matrices. */
  readers(unitAt: (address: number) => number | undefined): TensorReader[];
  /** Number of records so far. */
  count(): number;
  /**
   * Address of the packed form of an activation, made by the previous record if that can, else by a record of its own.
   */
  packed(x: Activation): number;
  /** Address of an activation's words, made by a record of its own. */
  words(x: Activation): number;
  /** Invalidates the packed forms of an activation that was written. */
  wrote(x: Activation): void;
  finish(): Records;
}

export function makeRecordList(
  { buffers, memory }: { buffers: Buffers; memory: Memory },
  { maxRows, result }: { maxRows: number; result: Buf | undefined },
): RecordList {
  const pending: PendingRecord[] = [];
  const made = new Map<string, Activation>();
  const packed = new Map<string, number>();
  const words = new Map<string, number>();

  const list: RecordList = {
    make(buf, { rowSet, perRow = 1 }) {
      const isResult = buf.name === result?.name && rowSet === ROWS.wanted;
      const address = isResult ? RESULT : buffers.of(`${buf.name} ${buf.dim}`, maxRows * perRow * buf.dim * 4);
      const activation = { name: buf.name, address, dim: buf.dim, rowSet, perRow };
      made.set(buf.name, activation);
      list.wrote(activation);
      return activation;
    },
    get(buf) {
      const activation = made.get(buf.name);
      assert(activation?.dim === buf.dim, `buffer '${buf.name}' of ${buf.dim} was not written before it is read`);
      return activation;
    },
    add(kind, { rowSet, perRow }, values) {
      pending.push({ kind, rowSet, perRow, values });
    },
    last<K extends OpKind>(kind: K) {
      const record = pending.at(-1);
      return record?.kind === kind ? (record as unknown as PendingRecord<K>) : undefined; // kind checked above
    },
    count: () => pending.length,
    readers: (unitAt) => readersOf(pending, unitAt),
    packed(x) {
      const known = packed.get(x.name);
      if (known !== undefined) return known;
      const bytes = maxRows * x.perRow * packedBytes(x.dim, memory);
      const address = buffers.of(`packed ${x.name} ${x.dim}`, bytes);
      packed.set(x.name, address);
      for (const kind of ["rmsNorm", "layerNorm", "gate"] as const) {
        const record = list.last(kind);
        if (record?.values.out !== x.address) continue;
        record.values = { ...record.values, packed: address };
        return address;
      }
      list.add("pack", x, { x: x.address, packed: address, n: x.dim });
      return address;
    },
    words(x) {
      const known = words.get(x.name);
      if (known !== undefined) return known;
      const address = buffers.of(`words ${x.name} ${x.dim}`, maxRows * x.perRow * wordBytes(x.dim));
      words.set(x.name, address);
      list.add("packWords", x, { x: x.address, words: address, n: x.dim });
      return address;
    },
    wrote({ name }) {
      packed.delete(name);
      words.delete(name);
    },
    finish() {
      const block = memory.allocate(Math.max(1, pending.length) * RECORD_BYTES, "records");
      const view = new DataView(block.view.buffer, block.view.byteOffset, block.view.byteLength);
      for (const [index, { kind, rowSet, perRow, values, slots }] of pending.entries()) {
        const all = slots === undefined ? values : { ...values, groups: slots };
        putRecord(view, index, { kind, head: { rowSet, perRow, joined: joinedFrom(pending, index) }, values: all });
      }
      return { ops: block.address, count: pending.length, cuts: cutsOf(pending) };
    },
  };
  return list;
}

function readersOf(pending: readonly PendingRecord[], unitAt: (address: number) => number | undefined): TensorReader[] {
  return pending.flatMap(({ values }, index) => {
    const matrices: MatrixValues[] = Object.values(values).flatMap((each) => (typeof each === "object" ? each : []));
    const units = matrices.flatMap(({ data = 0 }) => unitAt(data) ?? []);
    return units.length > 0 ? [{ index, units }] : [];
  });
}

/** The number of following records that run together with this one. */
function joinedFrom(pending: readonly PendingRecord[], index: number): number {
  const first = pending[index]!;
  if (!ROW_KINDS.has(first.kind)) return 0;
  const joins = (each: PendingRecord): boolean =>
    ROW_KINDS.has(each.kind) && each.rowSet === first.rowSet && each.perRow === first.perRow;
  const end = pending.findIndex((each, i) => i > index && !joins(each));
  return (end < 0 ? pending.length : end) - index - 1;
}

/**
 * Excludes cuts among records that run together, between sorting the rows by expert and their products (only the
 * sorting pass can read it), and where rows are the wanted ones: interleaved passes would overwrite their results.
 */
function cutsOf(pending: readonly PendingRecord[]): number[] {
  const wanted = pending.findIndex(({ rowSet }) => rowSet === ROWS.wanted);
  const last = wanted < 0 ? pending.length : wanted;
  const groupsOf = ({ values }: PendingRecord): number => ("groups" in values ? (values.groups ?? 0) : 0);
  const cuts: number[] = [];
  for (let i = 0; i < last;) {
    let end = i + 1 + joinedFrom(pending, i);
    if (pending[i]!.kind === "group") {
      const next = pending.findIndex(({ kind }, at) => at > i && kind === "group");
      const range = pending.slice(0, next < 0 ? pending.length : next);
      const usesThem = (each: PendingRecord): boolean =>
        each.kind === "linear" && groupsOf(each) === groupsOf(pending[i]!);
      end = range.findLastIndex(usesThem) + 1;
    }
    if (end < last) cuts.push(end);
    i = end;
  }
  return [...cuts, pending.length];
}
