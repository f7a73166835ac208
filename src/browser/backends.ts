/** The registry of a page's backends, best first. */
import type { Backend } from "../backend/backend.ts";
import type { Backends } from "../backend/choose.ts";
import type { WasmHost } from "../backend/wasm/index.ts";
import { pageGpu } from "../backend/webgpu/provider.ts";

/** The name of a Worker that is a thread of the kernels; it runs the same script as the one that started it. */
export const THREAD_NAME = "hearth-thread";
/** More would only wait for the same memory. */
const THREADS_MAX = 8;

/** What a Worker has and the library of types lacks here. */
declare const self: { readonly location: { readonly href: string }; readonly crossOriginIsolated?: boolean };

/** Each comes as a script of its own: a page with a GPU needs no other, a page without needs no kernels for one. */
export function makePageBackends(): (name: string) => Promise<Backends> {
  const gpu = pageGpu();
  const webgpu = async () => (await import("../backend/webgpu/index.ts")).makeWebGpuBackend(() => gpu);
  const wasm = async () => (await import("../backend/wasm/index.ts")).makeWasmBackend(pageKernels());
  return async (name) => {
    const mayHaveGpu = "gpu" in navigator || name === "webgpu";
    const [first, second] = await Promise.all([mayHaveGpu ? webgpu() : undefined, wasm()]);
    return { ...(first && { webgpu: first }), wasm: second, cpu };
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

/** The reference, which has every op: fetched where nothing faster runs a model. */
const cpu: Backend = {
  name: "cpu",
  unavailable: () => undefined,
  load: async (program, options) => (await import("../backend/cpu.ts")).cpuBackend.load(program, options),
};
