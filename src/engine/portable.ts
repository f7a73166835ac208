/** The parts that a page builds an engine of. The heavy ones load when they are first asked for. */
import type { Backend } from "./program/backend.ts";
import type { WasmHost } from "./backends/wasm/index.ts";
import type { GpuProvider } from "./backends/webgpu/provider.ts";

export { chooseAmong, type Choices } from "./backends/choose.ts";
export { loadOptionsFor } from "./backends/small.ts";
export { missingWasmFeature } from "./backends/wasm/missing-feature.ts";
export type { WasmHost } from "./backends/wasm/index.ts";
export { runThread, type ThreadOrders } from "./backends/wasm/threads.ts";
export { adapterRefuses } from "./backends/webgpu/adapters.ts";
export { pageGpu } from "./backends/webgpu/provider.ts";
export { memorySource, type ByteSource } from "./formats/gguf/source.ts";
export { inputOf, layOut } from "./batching/prompt.ts";
export { systemLoop } from "./batching/event-loop.ts";
export type { FromRunner, ToRunner } from "./runner/messages.ts";
export { startRunner } from "./runner/runner.ts";

export const openWebGpuBackend = async (gpu: GpuProvider): Promise<Backend> =>
  (await import("./backends/webgpu/index.ts")).makeWebGpuBackend(() => gpu);

export const openWasmBackend = async (host: WasmHost): Promise<Backend> =>
  (await import("./backends/wasm/index.ts")).makeWasmBackend(host);

export const openCpuBackend = async (): Promise<Backend> => (await import("./backends/cpu.ts")).cpuBackend;
