/**
 * Where WebGPU comes from: `navigator.gpu` where the runtime has it, the optional `webgpu` package (Dawn) otherwise.
 *
 * Dawn's objects must outlive everything that uses them: a collected instance ends the process with a fault, a
 * collected device waits for the GPU on the JavaScript thread. Both are rooted in the global object, once per process.
 */
import { AppError, messageOf } from "../../base/errors.ts";
import { makePump, type Pump } from "./pace.ts";

/**
 * Toggles of Dawn: NVIDIA's Vulkan drivers have float16 arithmetic that Dawn hides otherwise; and our kernels write
 * their workgroup memory before they read it: clearing it first would only cost (on SwiftShader a second of compiling).
 */
const DAWN_OPTIONS = ["enable-dawn-features=vulkan_enable_f16_on_nvidia,disable_workgroup_init"];

const ROOT = Symbol.for("hearth.webgpu");

/** What a process keeps for its life. */
export interface Rooted {
  gpu?: Promise<GPU>;
  device?: Promise<unknown>;
  pump?: Pump;
}

/** The one place of this process for objects that must not be collected. */
export function rooted(): Rooted {
  const root = globalThis as { [ROOT]?: Rooted };
  return (root[ROOT] ??= {});
}

/**
 * The entry to WebGPU, the same each time. Throws `unsupported` where there is none.
 * @param options.software where no driver is installed, take one that computes on the CPU
 */
export function openGpu({ software = false }: { software?: boolean } = {}): Promise<GPU> {
  const root = rooted();
  return (root.gpu ??= makeGpu(software));
}

/** Looks for the answers of Dawn, all of which are asked for through it: an open device never stops looking. */
export function gpuPump(): Pump {
  return (rooted().pump ??= makePump());
}

/** Whether there is what Dawn needs on Linux: without it Dawn complains on standard error, which nobody asked for. */
export async function mayHaveGpu(): Promise<boolean> {
  if (globalThis.process?.platform !== "linux" || !process.versions.bun) return true;
  const { dlopen, FFIType } = await import("bun:ffi");
  try {
    dlopen("libvulkan.so.1", { vkGetInstanceProcAddr: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.ptr } });
    return true; // and stays loaded, as Dawn is about to do it again
  } catch {
    return false;
  }
}

async function makeGpu(software: boolean): Promise<GPU> {
  const own = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
  if (own) return own;
  if (!(await mayHaveGpu())) {
    const isLoaded = software && (await (await import("./software-driver.ts")).loadSoftwareDriver());
    if (!isLoaded) throw new AppError("unsupported", "no GPU adapter: Vulkan (libvulkan.so.1) is not installed");
  }
  try {
    const { create } = await import("webgpu");
    return create(DAWN_OPTIONS);
  } catch (error) {
    throw new AppError("unsupported", `no WebGPU here: ${messageOf(error)}`, { cause: error });
  }
}
