/**
 * Weights of a model that does not fit in memory. Experts are read when a router picks them, and all other weights are
 * kept in memory; in a model without experts, some matrices are read for each pass. The file cache would treat all
 * pages alike, and a kernel that misses one would wait for a small read; here whole matrices are read at once, past the
 * file cache, and the most used experts stay.
 */
import { rowBytesOf } from "../../../formats/quant/blocks.ts";
import type { ByteSource, FilePlace } from "../../../formats/gguf/source.ts";
import { AppError } from "../../../../base/index.ts";
import type { StreamedCounts, WeightSource } from "../../../program/backend.ts";
import { weightsOf } from "../../../program/describe.ts";
import type { Step, Weight } from "../../../program/step.ts";
import { unpackRows } from "../../../program/unpack.ts";
import type { Memory } from "../memory.ts";
import { ExpertStack, SlotClass, type Area, type Part } from "./expert-stack.ts";
import { alignDown, alignUp, READ_UNIT, type FileReads } from "./file-reads.ts";
import { runOrdered, chooseEvenly, TensorStream, type TensorReader } from "./tensor-stream.ts";

/** Bytes of one read of weights that are kept. */
const PIECE_BYTES = 2 ** 20;
/** Memory for tensors that are read in order, in units of the largest one. */
const WINDOW_LARGEST = 4;
/** Rows of the widest activation that all buffers of passes together may hold. */
const BUFFER_ROWS = 4096;
/** Wider activations are logits, which have few rows. */
const WIDEST = 32_768;
/** Limit of the buffers of all runs, in units of the first ones: runs in parts have separate buffers. */
const BUFFERS_MAX = 1.5;

/** Services of the host. */
export interface StreamingHost {
  /** Undefined: this system has no such reads. */
  openReads(): FileReads | undefined;
  /** Throws `too_large` if the system refuses that many addresses. */
  reserve(bytes: number): Area;
  /** Frees the pages of a reserved range, which then reads as zeros. */
  discard(address: number, bytes: number): void;
  closeFile(fd: number): void;
  /** Releases everything that was reserved. */
  release(): void;
  /** Bytes of weights that fit in memory besides `taken` bytes. */
  room(taken: number): number;
}

/** A weight of a stack, with the bias of its products. */
interface StackedWeight {
  readonly w: Weight;
  readonly b?: Weight | undefined;
}

interface Options {
  readonly source: WeightSource;
  readonly memory: Memory;
  readonly host: StreamingHost;
  /** Bytes that the session will allocate, apart from weights. */
  readonly taken: number;
}

interface StreamsOptions extends Options {
  readonly reads: FileReads;
  /** Bytes for slots, and for buffers of the session. */
  readonly room: number;
  /** Experts that a row uses, at most. */
  readonly together: number;
}

/** Undefined if all weights fit, or if the weights that must stay do not. */
export function makeStreams(steps: readonly Step[], options: Options): Streams | undefined {
  const { source, host, taken } = options;
  const places = placesOf(steps, source);
  const room = host.room(taken);
  if (sumOf(places.values()) <= room) return undefined;
  const moes = steps.filter((step) => step.op === "moe");
  const stacked = moes.flatMap((step) => stacksOf(step)).filter((each) => each.every(({ w }) => places.has(w.name)));
  const names = new Set(stacked.flatMap((each) => each.map(({ w }) => w.name)));
  const kept = new Map([...keptPlaces(steps, places)].filter(([name]) => !names.has(name)));
  const ordered = stacked.length > 0 ? { tensors: [], window: 0 } : orderedOf(steps, kept, room);
  for (const { name } of ordered.tensors) kept.delete(name);
  const left = room - ordered.window - sumOf(kept.values());
  const reads = left > 0 ? host.openReads() : undefined;
  if (!reads) return undefined;
  const together = Math.max(1, ...moes.map(({ nUsed }) => nUsed));
  const streams = new Streams(kept, { ...options, reads, together, room: left });
  try {
    for (const each of stacked) streams.add(each);
    streams.reserve();
    if (ordered.tensors.length > 0) streams.order(ordered);
    return streams;
  } catch (error) {
    streams.close();
    if (error instanceof AppError) return undefined; // then runs from the mapped file
    throw error;
  }
}

interface Ordered {
  readonly tensors: readonly { readonly name: string; readonly place: FilePlace }[];
  /** Bytes of them that are in memory at once. */
  readonly window: number;
}

/**
 * The matrices that are read for each pass, in the order of their use. Excludes matrices that also have another role.
 */
function orderedOf(steps: readonly Step[], kept: ReadonlyMap<string, FilePlace>, room: number): Ordered {
  const matrices = steps.flatMap((step) => weightsOf(step, "matrix"));
  const others = steps.flatMap((step) => weightsOf(step, "experts", "router", "embedding", "table", "vector"));
  const excluded = new Set(others.map(({ name }) => name));
  const free = matrices.filter(({ name }) => kept.has(name) && !excluded.has(name));
  const tensors = [...new Set(free.map(({ name }) => name))].map((name) => ({ name, place: kept.get(name)! }));
  const largest = Math.max(0, ...tensors.map(({ place }) => place.byteLength));
  const widest = Math.max(0, ...free.map(({ outDim }) => Math.min(outDim, WIDEST)));
  const window = WINDOW_LARGEST * largest;
  const lacking = sumOf(kept.values()) + window + BUFFER_ROWS * widest * 4 - room;
  return lacking <= 0 ? { tensors: [], window: 0 } : { tensors: chooseEvenly(tensors, lacking), window };
}

type Moe = Extract<Step, { op: "moe" }>;

/** The weights of the experts of a layer, by record. */
function stacksOf({ gate, up, down, gateB, upB, downB }: Moe): StackedWeight[][] {
  const upward = { w: up, b: upB };
  return [gate ? [{ w: gate, b: gateB }, upward] : [upward], [{ w: down, b: downB }]];
}

function placesOf(steps: readonly Step[], source: WeightSource): Map<string, FilePlace> {
  const places = new Map<string, FilePlace>();
  for (const { name } of steps.flatMap((step) => weightsOf(step))) {
    const place = places.has(name) ? undefined : source.place?.(name);
    if (place) places.set(name, place);
  }
  return places;
}

/** The weights to keep, without tables of which a token reads one row. */
function keptPlaces(steps: readonly Step[], places: ReadonlyMap<string, FilePlace>): Map<string, FilePlace> {
  const read = steps.flatMap((step) => weightsOf(step, "matrix", "experts", "router", "vector"));
  return new Map(read.flatMap(({ name }) => (places.has(name) ? [[name, places.get(name)!] as const] : [])));
}

const sumOf = (places: Iterable<FilePlace>): number => [...places].reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Opened by `makeStreams`. `begin` must be called before the first pass. */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #kept: ReadonlyMap<string, FilePlace>;
  readonly #files = new Map<ByteSource, number>();
  readonly #classes = new Map<string, { readonly shared: SlotClass; readonly parts: readonly Part[] }>();
  readonly #stacks = new Map<string, ExpertStack>();
  readonly #counts = { hits: 0, misses: 0, bytes: 0 };
  #ordered: TensorStream | undefined;
  #failure: string | undefined;

  constructor(kept: ReadonlyMap<string, FilePlace>, options: StreamsOptions) {
    this.#kept = kept;
    this.#options = options;
  }

  /** Tensors that are read in order; undefined: only experts are read. */
  get ordered(): TensorStream | undefined {
    return this.#ordered;
  }

  counts(): StreamedCounts {
    return { ...this.#counts, bytes: this.#counts.bytes + (this.#ordered?.bytes ?? 0) };
  }

  /** Bytes of weights in memory once all slots are used. */
  get memory(): number {
    const kinds = [...this.#classes.values()].map(({ shared }) => shared);
    return kinds.reduce((sum, { slotBytes, cache }) => sum + slotBytes * cache.slots, sumOf(this.#kept.values()));
  }

  /** Adds the weights that a record multiplies. */
  add(stacked: readonly StackedWeight[]): void {
    const parts: Part[] = [];
    let slotBytes = 0;
    for (const each of stacked) {
      parts.push({ ...this.#part(each), at: slotBytes });
      slotBytes += alignUp(parts.at(-1)!.bytes) + READ_UNIT;
    }
    const key = parts.map(({ bytes, rows, bias, scales }) => [bytes, rows, bias !== undefined, scales !== undefined]);
    const kind = this.#classes.get(key.join(" ")) ?? { shared: new SlotClass(slotBytes), parts };
    this.#classes.set(key.join(" "), kind);
    const [{ w }] = stacked as readonly [StackedWeight];
    this.#stacks.set(keyOf(stacked.map((each) => each.w)), new ExpertStack(kind.shared, parts, w.experts));
  }

  #part({ w, b }: StackedWeight): Omit<Part, "at"> {
    const { source } = this.#options;
    const { file, offset } = source.place!(w.name)!; // the caller has looked
    const rowBytes = rowBytesOf(w);
    const [first, stride] = [offset + w.rowStart * rowBytes, w.tensorRows * rowBytes];
    let bias: Float32Array | undefined;
    if (b) {
      bias = new Float32Array(w.experts * w.outDim);
      for (let expert = 0; expert < w.experts; expert++)
        unpackRows(source, b, { expert, first: 0, out: bias.subarray(expert * w.outDim, (expert + 1) * w.outDim) });
    }
    return {
      fd: this.#open(file),
      offset: first,
      bytes: w.outDim * rowBytes,
      stride,
      lead: stride % READ_UNIT === 0 ? first % READ_UNIT : 0,
      rows: w.outDim,
      bias,
      scales: w.scale,
    };
  }

  /** Reserves addresses for the slots of all stacks. Throws `too_large` if that is impossible. */
  reserve(): void {
    const { host, memory } = this.#options;
    for (const { shared, parts } of this.#classes.values()) {
      shared.area = host.reserve(shared.units * shared.slotBytes);
      shared.copies = parts.map(({ bias, scales, rows }) => ({
        bias: bias && memory.allocate(shared.units * rows * 4, "experts' biases"),
        scales: scales && memory.allocate(shared.units * 4, "experts' factors"),
      }));
    }
  }

  /** Sets the tensors to be read in order. */
  order({ tensors, window }: Ordered): void {
    const { host, reads } = this.#options;
    this.#ordered = new TensorStream(
      tensors.map((tensor) => ({ ...tensor, fd: this.#open(tensor.place.file) })),
      {
        window,
        reads,
        reserve: (bytes) => host.reserve(bytes),
        discard: (address, bytes) => host.discard(address, bytes),
        failed: (error) => (this.#failure ??= error),
      },
    );
  }

  /**
   * Divides the remaining memory among the slots.
   * @param taken bytes of the session's buffers
   */
  begin(taken: number): void {
    const { room, together } = this.#options;
    const kinds = [...this.#classes.values()].map(({ shared }) => shared);
    const all = kinds.reduce((sum, { units, slotBytes }) => sum + units * slotBytes, 0);
    const share = Math.max(0, room - BUFFERS_MAX * taken) / all;
    for (const kind of kinds) {
      const least = Math.min(kind.units, 2 * together);
      kind.begin(Math.min(kind.units, Math.max(least, Math.floor(share * kind.units))));
    }
  }

  /** The stack that was added for these weights. */
  stackOf(weights: readonly Weight[]): ExpertStack | undefined {
    return this.#stacks.get(keyOf(weights));
  }

  /**
   * Reads a tensor that stays in memory. Returns its address, or the address that it will be read to; undefined: it is
   * neither.
   */
  keep(name: string): number | undefined {
    const place = this.#kept.get(name);
    if (!place) return this.#ordered?.addressOf(name);
    const { host, reads } = this.#options;
    const { file, offset, byteLength } = place;
    const fd = this.#open(file);
    const first = alignDown(offset);
    const bytes = alignUp(offset - first + byteLength);
    const { address } = host.reserve(bytes);
    let left = 0;
    for (let at = 0; at < bytes; at += PIECE_BYTES) {
      left++;
      const length = Math.min(PIECE_BYTES, bytes - at);
      const least = Math.min(length, offset + byteLength - first - at);
      reads.begin({ fd, offset: first + at, bytes: length, address: address + at, least }, (error) => {
        left--;
        this.#failure ??= error;
      });
    }
    while (left > 0) reads.wait();
    this.check();
    return address + offset - first;
  }

  /** A new pass begins. */
  age(): void {
    for (const { shared } of this.#classes.values()) shared.cache.age();
  }

  /** Begins to read an expert unless it is in memory, and holds it. @param count uses of it in the pass */
  request(stack: ExpertStack, expert: number, count: number): void {
    const isThere = stack.slotOf(expert) !== undefined;
    if (isThere) this.#counts.hits++;
    else {
      this.#counts.misses++;
      this.#counts.bytes += stack.read(expert, this.#options.reads, (error) => (this.#failure ??= error));
    }
    stack.use(expert, count);
    stack.hold(expert);
  }

  /** Hands the requests to the system. */
  flush(): void {
    this.#options.reads.flush();
  }

  /** Waits until these experts are in memory. Throws `runner` if they cannot be read. */
  wait(stack: ExpertStack, experts: readonly number[]): void {
    for (const expert of experts) while (!stack.isReady(expert)) this.#options.reads.wait();
    this.check();
  }

  /** Throws `runner` if weights could not be read; the next pass reads all again. */
  check(): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    const { reads, source } = this.#options;
    for (const { shared } of this.#classes.values()) {
      while (shared.pending.some((count) => count > 0)) reads.wait();
      shared.begin(shared.cache.slots);
    }
    this.#ordered?.forget();
    this.#failure = undefined;
    throw new AppError("runner", `${source.path}: weights cannot be read: ${failure}`);
  }

  #open(file: ByteSource): number {
    const known = this.#files.get(file);
    if (known !== undefined) return known;
    const fd = file.openDirect?.();
    if (fd === undefined) throw new AppError("unsupported", `${this.#options.source.path}: cannot be opened again`);
    this.#files.set(file, fd);
    return fd;
  }

  /** Runs records whose tensors are read in order. */
  run(readers: readonly TensorReader[], range: Parameters<typeof runOrdered>[2]): void {
    if (this.#ordered) runOrdered(readers, { ordered: this.#ordered, check: () => this.check() }, range);
  }

  /** Waits for reads, and releases the memory. */
  close(): void {
    const { reads, host } = this.#options;
    reads.close();
    for (const fd of this.#files.values()) host.closeFile(fd);
    host.release();
  }
}

const keyOf = (weights: readonly Weight[]): string => weights.map(({ name, rowStart }) => `${name} ${rowStart}`).join();
