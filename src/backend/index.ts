/**
 * The registry of backends, best first, and the choice among them.
 */
import { AppError } from "../base/errors.ts";
import type { Backend } from "./backend.ts";
import { cpuBackend } from "./cpu.ts";
import { offloading, type Offload } from "./offload.ts";
import { simdBackend } from "./simd/index.ts";
import { onnxBackend } from "./onnx/index.ts";
import { webGpuBackend } from "./webgpu/index.ts";

export const backends = {
  webgpu: webGpuBackend,
  onnx: onnxBackend,
  cpu: cpuBackend,
  simd: simdBackend,
} as const satisfies Record<string, Backend>;

/**
 * The backend of that name, or for `auto` the first that can run here; a GPU takes the layers that `offload` says.
 * Opens drivers: for processes with a model.
 */
export async function chooseBackend(name: string, offload: Offload = {}): Promise<Backend> {
  const automatic = name === "auto";
  const candidates = checkBackend(name);
  if (offload.layers === 0 && candidates.includes(webGpuBackend)) return chooseWithoutGpu();
  if (automatic && !candidates.includes(webGpuBackend)) return chooseWithoutGpu();
  for (const backend of candidates) {
    const reason = await backend.refuses?.({ automatic });
    if (!reason && backend !== webGpuBackend) return automatic ? chooseWithoutGpu() : backend;
    if (!reason) return offloading({ gpu: backend, cpu: chooseWithoutGpu(), automatic }, offload);
    if (!automatic) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  }
  throw new AppError("unsupported", "no backend can run on this machine");
}

/** The best backend that needs no GPU and has every op of the program, whatever the configuration says. */
function chooseWithoutGpu(): Backend {
  const candidates = checkBackend("auto").filter((each) => each !== webGpuBackend);
  const [best] = candidates;
  if (!best) throw new AppError("unsupported", "no backend can run on this machine without a GPU");
  return firstWithOps(best, candidates);
}

/** Loads a program on the first backend that has all its ops; the last, where none has, says what is missing. */
export function firstWithOps(best: Backend, candidates: readonly Backend[]): Backend {
  return {
    name: best.name,
    unavailable: () => undefined,
    load(program, options) {
      const able = candidates.find((each) => (each.missing?.(program) ?? []).length === 0);
      return (able ?? candidates.at(-1) ?? best).load(program, options);
    },
  };
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
