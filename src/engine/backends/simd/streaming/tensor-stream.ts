/**
 * Tensors that are read in the order in which records use them, because not all fit in memory: read ahead as far as
 * there is room, and released after use. A cache of the most recently used tensors would hold none of the next pass's.
 */
import type { FilePlace } from "../../../formats/gguf/source.ts";
import { alignDown, alignUp, type FileReads } from "./file-reads.ts";

/** Bytes of one read. */
const PIECE_BYTES = 2 ** 20;

/** A record, and the tensors that it reads here. */
export interface TensorReader {
  readonly index: number;
  readonly units: readonly number[];
}

/** A tensor that does not stay in memory. */
export interface StreamedTensor {
  readonly name: string;
  readonly place: FilePlace;
  readonly fd: number;
}

interface Unit extends StreamedTensor {
  /** The address of its pages, and their size. */
  readonly address: number;
  readonly bytes: number;
  /** Reads that have not ended; undefined: the tensor is not in memory. */
  pending: number | undefined;
}

interface Options {
  /** Bytes of tensors that are in memory at once. */
  readonly window: number;
  readonly reads: FileReads;
  /** Reserves addresses that get memory when they are written. */
  readonly reserve: (bytes: number) => { readonly address: number };
  /** Releases memory; the addresses stay. */
  readonly discard: (address: number, bytes: number) => void;
  readonly failed: (error: string) => void;
}

export class TensorStream {
  readonly #options: Options;
  readonly #units: readonly Unit[];
  readonly #byName: ReadonlyMap<string, Unit>;
  #inMemory = 0;
  #read = 0;

  constructor(tensors: readonly StreamedTensor[], options: Options) {
    this.#options = options;
    this.#units = tensors.map((tensor) => {
      const bytes = pagesOf(tensor.place);
      return { ...tensor, bytes, address: options.reserve(bytes).address, pending: undefined };
    });
    this.#byName = new Map(this.#units.map((unit) => [unit.name, unit]));
  }

  /** Bytes read so far. */
  get bytes(): number {
    return this.#read;
  }

  /** Undefined: the tensor is not streamed. */
  addressOf(name: string): number | undefined {
    const unit = this.#byName.get(name);
    return unit && unit.address + (unit.place.offset - alignDown(unit.place.offset));
  }

  /** The tensor at that address. */
  unitAt(address: number): number | undefined {
    const found = this.#units.findIndex((unit) => address >= unit.address && address < unit.address + unit.bytes);
    return found < 0 ? undefined : found;
  }

  /** Waits until these tensors are in memory. */
  need(units: readonly number[]): void {
    const needed = units.map((unit) => this.#units[unit]!);
    const missing = needed.filter(({ pending }) => pending === undefined);
    const bytes = missing.reduce((sum, unit) => sum + unit.bytes, 0);
    for (const other of this.#units) {
      // a program with another order may have kept tensors that this one needs later
      if (missing.length === 0 || this.#inMemory + bytes <= this.#options.window) break;
      if (other.pending === 0 && !needed.includes(other)) this.#release(other);
    }
    for (const unit of missing) this.#begin(unit);
    this.#options.reads.flush();
    for (const unit of needed) while (unit.pending! > 0) this.#options.reads.wait();
  }

  /** Releases tensors, and begins to read the next ones in order, as far as there is room. */
  passOn(used: readonly number[], next: Iterable<number>): void {
    for (const unit of used) this.#release(this.#units[unit]!);
    for (const index of next) {
      const unit = this.#units[index]!;
      if (unit.pending !== undefined) continue;
      if (this.#inMemory + unit.bytes > this.#options.window) break;
      this.#begin(unit);
    }
    this.#options.reads.flush();
  }

  /** Waits for reads, and releases all tensors. */
  forget(): void {
    for (const unit of this.#units) {
      if (unit.pending === undefined) continue;
      while (unit.pending > 0) this.#options.reads.wait();
      this.#release(unit);
    }
  }

  #begin(unit: Unit): void {
    const { place, fd, address, bytes } = unit;
    const first = alignDown(place.offset);
    const end = place.offset + place.byteLength - first;
    unit.pending = 0;
    this.#inMemory += bytes;
    this.#read += bytes;
    for (let at = 0; at < bytes; at += PIECE_BYTES) {
      unit.pending++;
      const length = Math.min(PIECE_BYTES, bytes - at);
      const read = { fd, offset: first + at, bytes: length, address: address + at, least: Math.min(length, end - at) };
      this.#options.reads.begin(read, (error) => {
        unit.pending!--;
        if (error !== undefined) this.#options.failed(error);
      });
    }
  }

  #release(unit: Unit): void {
    this.#options.discard(unit.address, unit.bytes);
    unit.pending = undefined;
    this.#inMemory -= unit.bytes;
  }
}

const pagesOf = ({ offset, byteLength }: FilePlace): number => alignUp(offset - alignDown(offset) + byteLength);

/**
 * Chooses tensors of `lacking` bytes to read for each pass: spread evenly, so that each is read during the products
 * before it.
 */
export function chooseEvenly<T extends { readonly place: FilePlace }>(tensors: readonly T[], lacking: number): T[] {
  const all = tensors.reduce((sum, { place }) => sum + place.byteLength, 0);
  const share = Math.min(1, lacking / all);
  let [owed, left] = [0, lacking];
  return tensors.filter(({ place }, i) => {
    owed += share * place.byteLength;
    const rest = tensors.slice(i + 1).reduce((sum, other) => sum + other.place.byteLength, 0);
    if (owed < place.byteLength / 2 && left <= rest) return false;
    owed -= place.byteLength;
    left -= place.byteLength;
    return true;
  });
}

/** Runs records `from` to `to`: each with its tensors in memory, while the next ones are read. */
export function runOrdered(
  readers: readonly TensorReader[],
  { ordered: stream, check }: { readonly ordered: TensorStream; readonly check: () => void },
  { from, to, go }: { readonly from: number; readonly to: number; readonly go: (from: number, to: number) => void },
): void {
  let at = from;
  for (const [i, { index, units }] of readers.entries()) {
    if (index < from || index >= to) continue;
    if (at < index) go(at, index);
    stream.need(units);
    check();
    go(index, index + 1);
    const next = [...readers.slice(i + 1), ...readers.slice(0, i)]; // the first records begin the next pass
    stream.passOn(
      units,
      next.flatMap((reader) => reader.units),
    );
    at = index + 1;
  }
  if (at < to) go(at, to);
}
