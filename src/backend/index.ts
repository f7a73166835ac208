/**
 * The registry of backends, best first, and the choice among them.
 */
import { AppError } from "../base/errors.ts";
import type { Backend } from "./backend.ts";
import { cpuBackend } from "./cpu.ts";
import { onnxBackend } from "./onnx/index.ts";

export const backends = { onnx: onnxBackend, cpu: cpuBackend } as const satisfies Record<string, Backend>;

/** The backend of that name, or for `auto` the first that can run here. */
export function chooseBackend(name: string): Backend {
  if (name === "auto") {
    const usable = Object.values(backends).find((backend) => !backend.unavailable());
    if (usable) return usable;
    throw new AppError("unsupported", "no backend can run on this machine");
  }
  const backend = Object.entries(backends).find(([key]) => key === name)?.[1];
  if (!backend) {
    throw new AppError("unsupported", `backend '${name}': expected auto or one of ${Object.keys(backends).join(", ")}`);
  }
  const reason = backend.unavailable();
  if (reason) throw new AppError("unsupported", `backend '${name}' cannot run here: ${reason}`);
  return backend;
}
