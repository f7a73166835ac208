/** The registry of a page's backends, best first. */
import type { Backend } from "../backend/backend.ts";
import type { Backends } from "../backend/choose.ts";
import { makeWebGpuBackend } from "../backend/webgpu/index.ts";
import { pageGpu } from "../backend/webgpu/provider.ts";

export function pageBackends(): Backends {
  const gpu = pageGpu();
  return { webgpu: makeWebGpuBackend(() => gpu), cpu };
}

/** The reference, which has every op: fetched where a model, or a part of one, does not run on the GPU. */
const cpu: Backend = {
  name: "cpu",
  unavailable: () => undefined,
  load: async (program, options) => (await import("../backend/cpu.ts")).cpuBackend.load(program, options),
};
