/** The choice among the backends of a host. */
import { AppError } from "../base/errors.ts";
import type { Backend } from "./backend.ts";
import { offloading, type Offload } from "./offload.ts";

/** By name, best first. */
export type Backends = Readonly<Record<string, Backend>>;

/**
 * The backend of that name, or for `auto` the first that can run here; a GPU takes the layers that `offload` says.
 * Opens drivers: for processes with a model.
 */
export async function chooseAmong(backends: Backends, name: string, offload: Offload = {}): Promise<Backend> {
  const automatic = name === "auto";
  const candidates = checkAmong(backends, name);
  const gpu = candidates.find(isGpu);
  if (gpu ? offload.layers === 0 : automatic) return withoutGpu(backends);
  for (const backend of candidates) {
    const reason = await backend.refuses?.({ automatic });
    if (!reason && backend !== gpu) return automatic ? withoutGpu(backends) : backend;
    if (!reason) return offloading({ gpu: backend, cpu: withoutGpu(backends), automatic }, offload);
    if (!automatic) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  }
  throw new AppError("unsupported", "no backend can run on this machine");
}

/** The best backend that needs no GPU and has every op of the program, whatever the configuration says. */
function withoutGpu(backends: Backends): Backend {
  const candidates = checkAmong(backends, "auto").filter((each) => !isGpu(each));
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
export function checkAmong(backends: Backends, name: string): Backend[] {
  if (name === "auto") return Object.values(backends).filter((backend) => !backend.unavailable());
  const backend = Object.entries(backends).find(([key]) => key === name)?.[1];
  if (!backend) {
    throw new AppError("unsupported", `backend '${name}': expected auto or one of ${Object.keys(backends).join(", ")}`);
  }
  const reason = backend.unavailable();
  if (reason) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  return [backend];
}

const isGpu = ({ name }: Backend): boolean => name === "webgpu";
