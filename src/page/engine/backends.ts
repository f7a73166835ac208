/** The registry of a page's backends, best first. */
import type { Backend } from "../../engine/index.ts";
import {
  adapterRefuses,
  type Choices,
  openCpuBackend,
  openWasmBackend,
  openWebGpuBackend,
  pageGpu,
  type WasmHost,
  missingWasmFeature,
} from "../../engine/portable.ts";

/** The name of a Worker that is a kernel thread; it runs the same script as the Worker that started it. */
export const THREAD_NAME = "hearth-thread";
/** More threads would only wait for the same memory. */
const THREADS_MAX = 8;

/** Globals of a Worker that the library of types lacks here. */
declare const self: { readonly location: { readonly href: string }; readonly crossOriginIsolated?: boolean };

/** Each backend is a separate script: a page loads only the one that it uses. */
export function makePageBackends(): Choices {
  const gpu = pageGpu();
  let [webgpu, wasm]: (Backend | undefined)[] = []; // one of each for all models
  return {
    webgpu: {
      unavailable: () => undefined,
      refuses: (options) => adapterRefuses(gpu, options),
      open: async () => (webgpu ??= await openWebGpuBackend(gpu)),
    },
    wasm: {
      unavailable: missingWasmFeature,
      open: async () => (wasm ??= await openWasmBackend(pageKernels())),
    },
    cpu: { unavailable: () => undefined, open: openCpuBackend },
  };
}

/** Kernels are loaded with the first model that needs them; threads only if the page's headers allow shared memory. */
const pageKernels = (): WasmHost => ({
  async kernels() {
    const { simdWasm, simdBuild } = await import("./simd-wasm.ts");
    return { bytes: simdWasm, build: simdBuild };
  },
  startThread: self.crossOriginIsolated
    ? () => new Worker(self.location.href, { type: "module", name: THREAD_NAME })
    : undefined,
  cores: () => Math.min(THREADS_MAX, navigator.hardwareConcurrency),
});
