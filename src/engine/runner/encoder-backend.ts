/** The choice of a backend for a model's image encoder. */
import { AppError, backendTraits } from "../../base/index.ts";
import type { Backend } from "../program/backend.ts";
import type { Offload } from "../backends/offload.ts";
import type { LoadedEngine } from "../batching/load.ts";
import type { LoadMessage } from "./messages.ts";

/** The part of a runner's host that chooses backends. */
interface Host {
  chooseBackend(name: string, offload: Offload): Promise<Backend>;
  gpuFreeBytes?(): Promise<number | undefined>;
}

/**
 * The GPU if the model has layers there, and if the GPU has kernels and room for the whole encoder in addition to the
 * model; else the best backend without a GPU. A model without a GPU shares its backend.
 */
export async function encoderBackend(
  backend: Backend,
  model: Pick<LoadedEngine, "info">,
  { message, host }: { message: Pick<LoadMessage, "backend" | "gpuMemory" | "gpu">; host: Host },
): Promise<Backend> {
  if (!backendTraits(backend.name).onGpu) return backend;
  const { info } = model;
  const cpu = await host.chooseBackend(message.backend, { layers: 0 });
  if (!backendTraits(info.backend).onGpu) return cpu;
  const { gpuMemory, gpu: adapter } = message;
  const left = gpuMemory === undefined ? await host.gpuFreeBytes?.() : Math.max(0, gpuMemory - info.vramBytes);
  const gpu = await host.chooseBackend(message.backend, { layers: Infinity, memory: left, adapter });
  return {
    name: gpu.name,
    load: (program, options) =>
      gpu.load(program, options).catch((error: unknown) => {
        if (!(error instanceof AppError) || !["too_large", "unsupported"].includes(error.code)) throw error;
        return cpu.load(program, options);
      }),
  };
}
