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

/** The best backend that needs no GPU, whatever the configuration says. */
export function chooseWithoutGpu(): Backend {
  const backend = checkBackend("auto").find((each) => each.name !== webGpuBackend.name);
  if (!backend) throw new AppError("unsupported", "no backend can run on this machine without a GPU");
  return backend;
}

/** Loads with `chosen`; without it where a GPU that nobody asked for by name has no room or no kernel for the model. */
export async function loadOrGoWithout<T>(
  { name, chosen }: { name: string; chosen: Backend },
  load: (backend: Backend) => Promise<T>,
): Promise<T> {
  try {
    return await load(chosen);
  } catch (error) {
    const mayMove = name === "auto" && chosen.refuses !== undefined && error instanceof AppError;
    if (!mayMove || !(error.code === "too_large" || error.code === "unsupported")) throw error;
    return load(chooseWithoutGpu());
  }
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
