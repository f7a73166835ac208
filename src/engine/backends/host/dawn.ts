/**
 * WebGPU for this process: the runtime's own if it has WebGPU, else the optional `webgpu` package (Dawn).
 *
 * Dawn's objects must outlive everything that uses them: a collected instance crashes the process, a collected device
 * waits for the GPU on the JavaScript thread. All are rooted in the global object, once per process.
 */
import { dlopen, FFIType } from "bun:ffi";
import { AppError, messageOf } from "../../../base/index.ts";
import { makePump } from "../webgpu/pace.ts";
import type { GpuProvider } from "../webgpu/provider.ts";

/**
 * Toggles of Dawn. NVIDIA's Vulkan drivers have float16 arithmetic that Dawn hides by default. Our kernels write their
 * workgroup memory before they read it, so clearing it first would only cost time (on SwiftShader a second of
 * compiling). Timestamps are rounded to 65.5 µs by default, longer than most kernels take.
 */
const ENABLED = ["vulkan_enable_f16_on_nvidia", "disable_workgroup_init"];
const DISABLED = ["timestamp_quantization"];

const ROOT = Symbol.for("hearth.webgpu");

/** This process's provider, always the same. @param toggles more to enable, separated by commas: for measurements */
export function dawn(toggles?: string): GpuProvider {
  const root = globalThis as { [ROOT]?: GpuProvider };
  return (root[ROOT] ??= makeProvider(toggles));
}

/** Returns whether Dawn's requirement on Linux exists: without it Dawn prints to standard error. */
export function mayHaveGpu(): boolean {
  if (process.platform !== "linux") return true;
  try {
    dlopen("libvulkan.so.1", { vkGetInstanceProcAddr: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.ptr } });
    return true; // stays loaded: Dawn loads it again
  } catch {
    return false;
  }
}

function makeProvider(toggles: string | undefined): GpuProvider {
  let entry: Promise<GPU> | undefined;
  return { pump: makePump(), open: ({ software = false } = {}) => (entry ??= openEntry(software, toggles)) };
}

/** @param more names of toggles, separated by commas */
function dawnOptions(more = ""): string[] {
  const enabled = [...ENABLED, ...more.split(",").filter(Boolean)];
  return [`enable-dawn-features=${enabled.join()}`, `disable-dawn-features=${DISABLED.join()}`];
}

async function openEntry(software: boolean, toggles: string | undefined): Promise<GPU> {
  const own = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
  if (own) return own;
  if (!mayHaveGpu() && !(software && (await (await import("./software-driver.ts")).loadSoftwareDriver()))) {
    throw new AppError("unsupported", "no GPU adapter: Vulkan (libvulkan.so.1) is not installed");
  }
  try {
    const { create } = await import("webgpu");
    return create(dawnOptions(toggles));
  } catch (error) {
    throw new AppError("unsupported", `no WebGPU here: ${messageOf(error)}`, { cause: error });
  }
}
