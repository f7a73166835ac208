/** Which kernels a program is run with: those that somebody asked for, or the plain ones. */
import { fits, formatTuning, PLAIN, type Tuning } from "../../base/kernel-tuning.ts";
import { AppError } from "../../base/errors.ts";
import type { LoadOptions, Program } from "../backend.ts";
import type { Device } from "./device.ts";

/** Never less precise than `options` allow. Throws `unsupported` where the device cannot run what was asked for. */
export async function chooseTuning(device: Device, _program: Program, options: LoadOptions): Promise<Tuning> {
  const { gpuKernels = "auto", precise } = options;
  const tuning = typeof gpuKernels === "string" ? PLAIN : checked(device, gpuKernels);
  return precise && (tuning.packed || tuning.f16) ? { ...tuning, packed: false, f16: false } : tuning;
}

function checked({ facts, gpu, subgroups }: Device, tuning: Tuning): Tuning {
  if (tuning.f16 && !gpu.features.has("shader-f16"))
    throw new AppError("unsupported", `kernels ${formatTuning(tuning)}: GPU '${facts.name}' has no shader-f16`);
  if (fits(tuning, { limits: facts.limits, subgroups })) return tuning;
  const { maxComputeInvocationsPerWorkgroup: threads, maxComputeWorkgroupStorageSize: bytes } = facts.limits;
  const room = `workgroups of ${threads} threads and ${bytes} bytes`;
  throw new AppError("unsupported", `kernels ${formatTuning(tuning)}: GPU '${facts.name}' has ${room}`);
}
