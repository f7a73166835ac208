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
  wasmLacks,
} from "../../engine/portable.ts";

/** The name of a Worker that is a thread of the kernels; it runs the same script as the one that started it. */
export const THREAD_NAME = "hearth-thread";
/** More would only wait for the same memory. */
const THREADS_MAX = 8;

/** What a Worker has and the library of types lacks here. */
declare const self: { readonly location: { readonly href: string }; readonly crossOriginIsolated?: boolean };

/** Each comes as a script of its own: a page with a GPU needs no other, a page without needs no kernels for one. */
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
      unavailable: wasmLacks,
      open: async () => (wasm ??= await openWasmBackend(pageKernels())),
    },
    cpu: { unavailable: () => undefined, open: openCpuBackend },
  };
}

/** Kernels come with the first model that needs them, threads only where the page's headers let memory be shared. */
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
