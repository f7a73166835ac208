/**
 * Slots with the weights of experts. Layers whose experts have the same shape share slots; a slot holds those matrices
 * of one expert that are multiplied by the same input. Kernels get slot numbers in place of expert numbers.
 */
import type { Block } from "../memory.ts";
import { alignDown, alignUp, type FileReads } from "./file-reads.ts";
import { SlotCache } from "./slot-cache.ts";

/** Memory that gets pages when it is first written, and may be larger than an ArrayBuffer. */
export interface Area {
  readonly address: number;
  view(offset: number, bytes: number): Uint8Array;
}

/** One of the matrices of a stack. */
export interface Part {
  readonly fd: number;
  /** Offset of the first expert's rows in the file. */
  readonly offset: number;
  readonly bytes: number;
  /** Bytes from one expert to the next, in the file. */
  readonly stride: number;
  /** Offset of its pages in a slot. */
  readonly at: number;
  /** Offset of its first byte in its pages, the same for all experts. */
  readonly lead: number;
  readonly rows: number;
  /** f32 (experts, rows). */
  readonly bias: Float32Array | undefined;
  /** f32 (experts). */
  readonly scales: Float32Array | undefined;
}

/** Fields of a record's matrix. */
interface SlotMatrix {
  readonly data: number;
  readonly expertBytes: number;
  readonly bias: number;
  readonly scales: number;
}

/** Biases and scales of the experts in the slots, for kernels that look them up by slot. */
export interface PartCopies {
  readonly bias: Block | undefined;
  readonly scales: Block | undefined;
}

/** Slots for stacks of the same shape. */
export class SlotClass {
  readonly slotBytes: number;
  /** Set once all stacks are known. */
  area: Area = { address: 0, view: () => new Uint8Array(0) };
  copies: readonly PartCopies[] = [];
  /** Set before the first pass. */
  cache = new SlotCache(0, 0);
  /** By slot: reads that have not ended. */
  pending = new Int32Array(0);
  #units = 0;

  constructor(slotBytes: number) {
    this.slotBytes = slotBytes;
  }

  get units(): number {
    return this.#units;
  }

  addUnits(count: number): number {
    this.#units += count;
    return this.#units - count;
  }

  begin(slots: number): void {
    this.cache = new SlotCache(this.#units, slots);
    this.pending = new Int32Array(slots);
  }
}

/** The experts of a layer whose products have one input. */
export class ExpertStack {
  readonly shared: SlotClass;
  readonly #first: number;
  readonly #parts: readonly Part[];

  constructor(shared: SlotClass, parts: readonly Part[], experts: number) {
    this.shared = shared;
    this.#first = shared.addUnits(experts);
    this.#parts = parts;
  }

  /** Maximum experts in one wave, half of the slots: the other half loads the next wave. */
  get together(): number {
    return Math.max(1, Math.floor(this.shared.cache.slots / 2));
  }

  matrices(): SlotMatrix[] {
    const { area, slotBytes, copies } = this.shared;
    return this.#parts.map(({ at, lead }, i) => ({
      data: area.address + at + lead,
      expertBytes: slotBytes,
      bias: copies[i]?.bias?.address ?? 0,
      scales: copies[i]?.scales?.address ?? 0,
    }));
  }

  /** Undefined: the expert has no slot. */
  slotOf(expert: number): number | undefined {
    return this.shared.cache.slotOf(this.#first + expert);
  }

  isReady(expert: number): boolean {
    const slot = this.slotOf(expert);
    return slot !== undefined && this.shared.pending[slot] === 0;
  }

  /** Counts uses. */
  use(expert: number, count: number): void {
    this.shared.cache.use(this.#first + expert, count);
  }

  /** Keeps an expert's slot from being reused. */
  hold(expert: number): void {
    this.shared.cache.hold(this.slotOf(expert)!); // the caller has found or taken a slot
  }

  release(expert: number): void {
    const slot = this.slotOf(expert);
    if (slot !== undefined) this.shared.cache.release(slot);
  }

  /** Begins to read an expert that has no slot. Returns the number of bytes. */
  read(expert: number, reads: FileReads, failed: (error: string) => void): number {
    const { area, slotBytes, cache, pending, copies } = this.shared;
    const unit = this.#first + expert;
    const slot = cache.take(unit);
    pending[slot] = this.#parts.length;
    let total = 0;
    for (const [i, { fd, offset, bytes, stride, at, lead, rows, bias, scales }] of this.#parts.entries()) {
      const start = offset + expert * stride;
      const from = alignDown(start);
      const before = start - from;
      const length = alignUp(before + bytes);
      const place = slot * slotBytes + at;
      const read = { fd, offset: from, bytes: length, address: area.address + place, least: before + bytes };
      reads.begin(read, (error) => {
        pending[slot]!--;
        if (error !== undefined) failed(error);
        else if (before !== lead) area.view(place, slotBytes - at).copyWithin(lead, before, before + bytes);
      });
      if (bias) floatsOf(copies[i]!.bias!).set(bias.subarray(expert * rows, (expert + 1) * rows), slot * rows);
      if (scales) floatsOf(copies[i]!.scales!)[slot] = scales[expert]!;
      total += length;
    }
    return total;
  }
}

const floatsOf = ({ view }: Block): Float32Array =>
  new Float32Array(view.buffer, view.byteOffset, view.byteLength / Float32Array.BYTES_PER_ELEMENT);
