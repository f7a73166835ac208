/** The WebGPU backend of this process. */
import { makeWebGpuBackend } from "../webgpu/index.ts";
import { dawn } from "./dawn.ts";

export const webGpuBackend = makeWebGpuBackend(dawn);
