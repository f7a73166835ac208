/** The registry of a page's backends, best first. */
import type { Backends } from "../backend/choose.ts";
import { cpuBackend } from "../backend/cpu.ts";
import { makeWebGpuBackend } from "../backend/webgpu/index.ts";
import { pageGpu } from "../backend/webgpu/provider.ts";

export function pageBackends(): Backends {
  const gpu = pageGpu();
  return { webgpu: makeWebGpuBackend(() => gpu), cpu: cpuBackend };
}
