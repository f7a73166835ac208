/** Saves more checkpoints than a device has room for; states.test.ts starts it and reads its output. */
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";
import { readBuffer } from "../../../../src/engine/backends/webgpu/read-buffer.ts";
import { keepSlots } from "../../../../src/engine/backends/webgpu/slot-states.ts";
import { USAGE } from "../../../../src/engine/backends/webgpu/usage.ts";
import { keepingSteps, valuesOf } from "../../../../src/engine/program/sequence-state.ts";
import { hybridProgram } from "../hybrid.ts";

export interface Spilling {
  /** Buffers made for checkpoints. */
  readonly buffers: number;
  /** By checkpoint: the first word of each state of slot 1 after it was restored there. */
  readonly restored: readonly (readonly number[])[];
  readonly packed: readonly number[];
}

const SAVED = 6;
const device = await openDevice(dawn());
const program = hybridProgram();
const kept = keepingSteps(program.steps).flatMap(({ step, state }) => (state.kind === "kv" ? [] : [{ step, state }]));
const usage = USAGE.storage | USAGE.copySrc | USAGE.copyDst;
const states = new Map(
  kept.map(({ step, state }) => [step, device.gpu.createBuffer({ size: 4 * 2 * valuesOf(state), usage })]),
);
let buffers = 0;
const create = device.gpu.createBuffer.bind(device.gpu);
device.gpu.createBuffer = (descriptor) => {
  if (descriptor.label === "checkpoint") buffers++;
  return create(descriptor);
};
const bytes = kept.reduce((sum, { state }) => sum + 4 * valuesOf(state), 0);
const slots = await keepSlots(device, program, { states, slots: 2, bytesMax: 2 * bytes });
const { lengths, checkpoints } = slots!; // the program keeps states
const all = [];
for (let i = 0; i < SAVED; i++) {
  for (const buffer of states.values()) device.gpu.queue.writeBuffer(buffer, 0, Uint32Array.of(100 + i));
  lengths.set(0, i);
  all.push(await checkpoints.save(0, i));
}
const restored: number[][] = [];
for (const checkpoint of all) {
  checkpoints.restore(1, checkpoint);
  const parts = [...states.values()].map((buffer) => ({ buffer, offset: buffer.size / 2, size: 4 }));
  restored.push([...new Uint32Array((await readBuffer(device, parts)).buffer)]);
}
const packed: number[] = [];
for (const checkpoint of all) packed.push((await checkpoints.pack(checkpoint))[0]!);
console.log(JSON.stringify({ buffers, restored, packed } satisfies Spilling));
process.exit();
