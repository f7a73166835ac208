/**
 * The registry of this process's backends, best first; their code is loaded when one is chosen. Pages have their own:
 * `src/page/engine/backends.ts`.
 */
import { AppError, type BackendName, once } from "../../base/index.ts";
import type { Backend } from "../program/backend.ts";
import { chooseAmong, checkAmong, type Choice } from "./choose.ts";
import { dawn } from "./host/dawn.ts";
import { findLevel, wasmDamage } from "./host/simd-library.ts";
import type { Offload } from "./offload.ts";
import { libraryLacks } from "./onnx/library.ts";
import { missingWasmFeature } from "./wasm/missing-feature.ts";
import { adapterRefuses } from "./webgpu/adapters.ts";

/**
 * The reason why the fastest CPU backend cannot run here; undefined: it can. Only the first call reads the library:
 * that takes a millisecond.
 */
export const slowOnCpu = once((): string | undefined => {
  const found = findLevel();
  return "reason" in found ? found.reason : undefined;
});

/** The same of the kernels as WebAssembly. */
const noWasm = once(() => missingWasmFeature() ?? wasmDamage());

const backends = {
  webgpu: {
    unavailable: () => undefined,
    refuses: (options) => adapterRefuses(dawn(), options),
    open: async () => (await import("./host/webgpu.ts")).webGpuBackend,
    others: async (adapter) => (await import("./host/webgpu.ts")).otherBackends(adapter),
  },
  simd: { unavailable: slowOnCpu, open: async () => (await import("./host/simd.ts")).simdBackend },
  wasm: {
    unavailable: noWasm,
    open: async () => (await import("./host/wasm.ts")).wasmBackend,
  },
  onnx: {
    unavailable: libraryLacks,
    open: async () => (await import("./onnx/index.ts")).onnxBackend,
  },
  cpu: { unavailable: () => undefined, open: async () => (await import("./cpu.ts")).cpuBackend },
} as const satisfies Record<BackendName, Choice>;

/** As `chooseAmong`. */
export const chooseBackend = (name: string, offload?: Offload): Promise<Backend> =>
  chooseAmong(backends, name, offload);

/** Throws `unsupported` as `checkAmong`, and if the requested level of the SIMD kernels cannot run here. */
export function checkBackend(name: string, level?: string): void {
  checkAmong(backends, name);
  if (level === undefined || (name !== "auto" && name !== "simd")) return;
  const found = findLevel({ level });
  if ("reason" in found) throw new AppError("unsupported", `HEARTH_SIMD=${level}: ${found.reason}`);
}

/** Functions that list and tune GPUs; they load the whole backend. */
export const gpuTools = () => import("./host/gpu-tools.ts");

/** The child process of a self-test. @param level as `Trust` wrote it */
export const runSelftest = async (level: string): Promise<void> =>
  (await import("./host/selftest-child.ts")).runSelftest(level);
