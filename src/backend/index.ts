/**
 * The registry of backends, best first, and the choice among them.
 */
import { AppError } from "../base/errors.ts";
import type { Backend } from "./backend.ts";
import { cpuBackend } from "./cpu.ts";
import { onnxBackend } from "./onnx/index.ts";
import { webGpuBackend } from "./webgpu/index.ts";

export const backends = {
  webgpu: webGpuBackend,
  onnx: onnxBackend,
  cpu: cpuBackend,
} as const satisfies Record<string, Backend>;

/** The backend of that name, or for `auto` the first that can run here. Opens drivers: for processes with a model. */
export async function chooseBackend(name: string): Promise<Backend> {
  const automatic = name === "auto";
  for (const backend of checkBackend(name)) {
    const reason = await backend.refuses?.({ automatic });
    if (!reason) return backend;
    if (!automatic) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  }
  throw new AppError("unsupported", "no backend can run on this machine");
}

/** The backends that a name stands for, best first. Throws `unsupported` where it is known that none can run here. */
export function checkBackend(name: string): Backend[] {
  if (name === "auto") return Object.values(backends).filter((backend) => !backend.unavailable());
  const backend = Object.entries(backends).find(([key]) => key === name)?.[1];
  if (!backend) {
    throw new AppError("unsupported", `backend '${name}': expected auto or one of ${Object.keys(backends).join(", ")}`);
  }
  const reason = backend.unavailable();
  if (reason) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  return [backend];
}
