/**
 * Saves and restores a slot's convolution and recurrent states. Checkpoints stay on the device as far as their share of
 * its memory allows; then the oldest ones move to the host.
 */
import type { Program } from "../../program/backend.ts";
import type { Checkpoint, Checkpoints, PackedCheckpoints } from "../../program/kept-slots.ts";
import { keepingSteps, valuesOf } from "../../program/sequence-state.ts";
import type { Step } from "../../program/step.ts";
import { makeSlotLengths, type SlotLengths } from "../slot-lengths.ts";
import type { Device } from "./device.ts";
import { readBuffer } from "./read-buffer.ts";
import { USAGE } from "./usage.ts";

/** Bytes of checkpoints on the device; one checkpoint may take more. */
const DEVICE_BYTES_MAX = 256 * 2 ** 20;

/** Its states in sequence, on the device or on the host. */
interface DeviceCheckpoint extends Checkpoint {
  place: { readonly buffer: GPUBuffer } | { readonly bytes: Uint8Array<ArrayBuffer> };
}

export interface SlotStates extends Checkpoints, PackedCheckpoints {
  destroy(): void;
}

/** The states of a session besides keys and values. */
export interface KeptSlots {
  readonly lengths: SlotLengths;
  readonly checkpoints: SlotStates;
}

interface KeptOptions {
  readonly states: ReadonlyMap<Step, GPUBuffer>;
  readonly slots: number;
  /** Bytes of checkpoints on the device. */
  readonly bytesMax?: number;
}

/** Allocates room for one checkpoint; undefined if the program keeps no such states. */
export async function keepSlots(
  device: Device,
  { steps, weights }: Program,
  { states, slots, bytesMax = DEVICE_BYTES_MAX }: KeptOptions,
): Promise<KeptSlots | undefined> {
  if (states.size === 0) return undefined;
  const lengths = makeSlotLengths(slots);
  const sizes = sizesOf(steps);
  const parts = { device, buffers: [...states.values()], sizes, lengths, bytesMax, path: weights.path };
  return { lengths, checkpoints: await makeSlotStates(parts) };
}

/** Bytes of a slot's states, by the steps that keep one, in order. */
function sizesOf(steps: readonly Step[]): number[] {
  return keepingSteps(steps).flatMap(({ state }) => (state.kind === "kv" ? [] : [4 * valuesOf(state)]));
}

/** Bytes on the device for the first checkpoint. */
export const checkpointBytes = ({ steps }: Pick<Program, "steps">): number =>
  sizesOf(steps).reduce((sum, size) => sum + size, 0);

interface StatesOptions {
  readonly device: Device;
  /** The states of all slots, (slots, values) each. */
  readonly buffers: readonly GPUBuffer[];
  /** Bytes of a slot's states in each buffer. */
  readonly sizes: readonly number[];
  readonly lengths: SlotLengths;
  readonly bytesMax: number;
  /** For messages. */
  readonly path: string;
}

async function makeSlotStates({ device, buffers, sizes, lengths, bytesMax, path }: StatesOptions): Promise<SlotStates> {
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const most = Math.max(1, Math.floor(bytesMax / bytes));
  const usage = USAGE.copySrc | USAGE.copyDst;
  const allocate = async (): Promise<GPUBuffer> => {
    const make = (): GPUBuffer[] => [device.gpu.createBuffer({ label: "checkpoint", size: bytes, usage })];
    return (await device.allocate(`${path}: checkpoint`, make))[0]!; // one was made
  };
  /** The checkpoint in each buffer, the oldest first; undefined: none. */
  const used = new Map<GPUBuffer, WeakRef<DeviceCheckpoint> | undefined>([[await allocate(), undefined]]);

  /** Moves the oldest checkpoint to the host. */
  const spill = async (): Promise<GPUBuffer> => {
    const [buffer, held] = used.entries().next().value!; // there is at least one buffer
    const place = { bytes: await readBuffer(device, [{ buffer, offset: 0, size: bytes }]) };
    const checkpoint = held?.deref();
    if (checkpoint) checkpoint.place = place;
    return buffer;
  };
  const freeBuffer = async (): Promise<GPUBuffer> => {
    for (const [buffer, held] of used) if (!held?.deref()) return buffer;
    if (used.size < most) return allocate().catch(spill); // the device may have less room than expected
    return spill();
  };
  const move = (slot: number, buffer: GPUBuffer, into: "buffer" | "slot"): void => {
    const encoder = device.gpu.createCommandEncoder();
    let at = 0;
    for (const [i, states] of buffers.entries()) {
      const [size, from] = [sizes[i]!, slot * sizes[i]!]; // one per buffer
      if (into === "buffer") encoder.copyBufferToBuffer(states, from, buffer, at, size);
      else encoder.copyBufferToBuffer(buffer, at, states, from, size);
      at += size;
    }
    device.submit(encoder.finish());
  };
  const write = (slot: number, values: Uint8Array<ArrayBuffer>): void => {
    let at = 0;
    for (const [i, states] of buffers.entries()) {
      const size = sizes[i]!; // one per buffer
      device.gpu.queue.writeBuffer(states, slot * size, values, at, size);
      at += size;
    }
  };
  return {
    async save(slot, length, into): Promise<Checkpoint> {
      lengths.expect(slot, length);
      const old = (into as DeviceCheckpoint | undefined)?.place; // made by `save`
      const buffer = old && "buffer" in old ? old.buffer : await freeBuffer();
      const checkpoint: DeviceCheckpoint = { length, bytes, place: { buffer } };
      used.delete(buffer); // the newest is last
      used.set(buffer, new WeakRef(checkpoint));
      move(slot, buffer, "buffer");
      return checkpoint;
    },
    restore(slot, checkpoint) {
      const { place, length } = checkpoint as DeviceCheckpoint; // made by `save` or `unpack`
      if ("buffer" in place) move(slot, place.buffer, "slot");
      else write(slot, place.bytes);
      lengths.set(slot, length);
    },
    async pack(checkpoint) {
      const { place } = checkpoint as DeviceCheckpoint; // made by `save` or `unpack`
      return "bytes" in place ? place.bytes : readBuffer(device, [{ ...place, offset: 0, size: bytes }]);
    },
    unpack(length, values): DeviceCheckpoint | undefined {
      return values.length === bytes ? { length, bytes, place: { bytes: values.slice() } } : undefined;
    },
    destroy() {
      for (const buffer of used.keys()) buffer.destroy();
    },
  };
}
