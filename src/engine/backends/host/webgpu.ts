/** The WebGPU backend of this process. */
import { makeWebGpuBackend } from "../webgpu/index.ts";
import type { Backend } from "../../program/backend.ts";
import { dawn } from "./dawn.ts";
import { otherGpus } from "./other-gpus.ts";

export const webGpuBackend = makeWebGpuBackend(dawn);

/** The same on the other GPUs of a model. @param adapter as `HEARTH_GPU` */
export async function otherBackends(adapter: string | undefined): Promise<readonly Backend[]> {
  return (await otherGpus(dawn(), adapter)).map((provider) => makeWebGpuBackend(() => provider));
}
