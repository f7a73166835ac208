/** The free memory of the GPUs that this process may use. */
import { openDevice } from "../webgpu/device.ts";
import type { GpuProvider } from "../webgpu/provider.ts";
import { dawn } from "./dawn.ts";
import { gpuMemory } from "./gpu-memory.ts";
import { otherGpus } from "./other-gpus.ts";

interface Wanted {
  /** Bytes of a model: if the first GPU has fewer, the others count too. Default: only the first counts. */
  readonly bytes?: number;
  /** As `HEARTH_GPU`. */
  readonly adapter?: string | undefined;
}

/** Undefined: unknown, or a software adapter. */
export async function gpuFreeBytes({ bytes = 0, adapter }: Wanted = {}): Promise<number | undefined> {
  const first = await freeOf(dawn());
  if (first === undefined || first >= bytes) return first;
  const others = await Promise.all((await otherGpus(dawn(), adapter)).map(freeOf));
  return others.reduce<number>((sum, free = 0) => sum + free, first);
}

async function freeOf(provider: GpuProvider): Promise<number | undefined> {
  const { facts } = await openDevice(provider);
  return facts.software ? undefined : (await gpuMemory(facts))?.free;
}
