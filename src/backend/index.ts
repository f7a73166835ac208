/** The registry of this process's backends, best first. Pages have their own: `src/browser/backends.ts`. */
import type { Backend } from "./backend.ts";
import { chooseAmong, checkAmong } from "./choose.ts";
import { cpuBackend } from "./cpu.ts";
import { wasmBackend } from "./host/wasm.ts";
import { webGpuBackend } from "./host/webgpu.ts";
import type { Offload } from "./offload.ts";
import { onnxBackend } from "./onnx/index.ts";
import { simdBackend } from "./host/simd.ts";

const backends = {
  webgpu: webGpuBackend,
  simd: simdBackend,
  onnx: onnxBackend,
  wasm: wasmBackend,
  cpu: cpuBackend,
} as const satisfies Record<string, Backend>;

/** Why the fastest backend on the CPU cannot run here; undefined where it can. */
export const slowOnCpu = (): string | undefined => simdBackend.unavailable();

/** As `chooseAmong`. */
export const chooseBackend = (name: string, offload?: Offload): Promise<Backend> =>
  chooseAmong(backends, name, offload);

/** As `checkAmong`. */
export const checkBackend = (name: string): Backend[] => checkAmong(backends, name);
