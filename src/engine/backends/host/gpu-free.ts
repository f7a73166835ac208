/** The free memory of the GPU that this process has opened. */
import { openDevice } from "../webgpu/device.ts";
import { dawn } from "./dawn.ts";
import { gpuMemory } from "./gpu-memory.ts";

/** Undefined: unknown, or a software adapter. */
export async function gpuFreeBytes(): Promise<number | undefined> {
  const { facts } = await openDevice(dawn());
  return facts.software ? undefined : (await gpuMemory(facts))?.free;
}
