/**
 * WebGPU for this process: the runtime's own if it has WebGPU, else the optional `webgpu` package (Dawn).
 *
 * Dawn's objects must outlive everything that uses them: a collected instance crashes the process, a collected device
 * waits for the GPU on the JavaScript thread. All are rooted in the global object, once per process.
 */
import { dlopen, FFIType } from "bun:ffi";
import { AppError, messageOf } from "../../../base/index.ts";
import { makePump } from "../webgpu/device-polling.ts";
import type { GpuProvider, OpenOptions } from "../webgpu/provider.ts";

/**
 * Toggles of Dawn. NVIDIA's Vulkan drivers have float16 arithmetic that Dawn hides by default. Our kernels write their
 * workgroup memory before they read it, so clearing it first would only cost time (on SwiftShader a second of
 * compiling). Subgroup matrices are experimental, so Dawn counts them as unsafe; they need Vulkan's memory model.
 * Timestamps are rounded to 65.5 µs by default, longer than most kernels take.
 */
const ENABLED = [
  "vulkan_enable_f16_on_nvidia",
  "disable_workgroup_init",
  "allow_unsafe_apis",
  "use_vulkan_memory_model",
];
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
  const pump = makePump();
  const kept: GPU[] = []; // as long as the provider
  let entry: Promise<GPU> | undefined;
  const make = async (...flags: string[]): Promise<GPU> => {
    try {
      const { create } = await import("webgpu");
      const gpu = create([...dawnOptions(toggles), ...flags]);
      kept.push(gpu);
      return gpu;
    } catch (error) {
      throw new AppError("unsupported", `no WebGPU here: ${messageOf(error)}`, { cause: error });
    }
  };
  const namesOf = async (): Promise<string[]> => {
    const gpu = await make(`adapter=${NO_ADAPTER}`);
    return pump
      .start(() => gpu.requestAdapter())
      .then(
        () => [],
        (error: unknown) => namesIn(messageOf(error)),
      );
  };
  const open = async ({ software = false, adapter }: OpenOptions): Promise<GPU> => {
    const own = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
    if (own) return own;
    if (!mayHaveGpu() && !(software && (await (await import("./software-driver.ts")).loadSoftwareDriver()))) {
      throw new AppError("unsupported", "no GPU adapter: Vulkan (libvulkan.so.1) is not installed");
    }
    if (adapter === undefined) return make();
    const [name, ...others] = chooseNames(await namesOf(), adapter);
    if (others.length > 0) provider.name = name;
    return make(`adapter=${name}`);
  };
  const provider: GpuProvider = {
    pump,
    open: (options = {}) => (entry ??= open(options)),
    async named() {
      const names = await namesOf();
      return Promise.all(names.map(async (name) => ({ name, gpu: await make(`adapter=${name}`) })));
    },
  };
  return provider;
}

/** A name that no adapter has: Dawn answers with all names. */
const NO_ADAPTER = "no such adapter";

/** The names in Dawn's answer, each once: an adapter may have several drivers. */
const namesIn = (answer: string): string[] => [
  ...new Set([...answer.matchAll(/^ \* backend: '(?!null').*', name: '(.*)'$/gm)].map(([, name]) => name!)), // a group
];

/** The selected adapters, from a list separated by commas, each once; a name may contain commas itself. */
export function chooseNames(names: readonly string[], meant: string): [first: string, ...others: string[]] {
  const parts = namesLike(names, meant).length > 0 ? [meant] : meant.split(",").map((part) => part.trim());
  const [first = meant, ...others] = parts.filter((part) => part !== "");
  const found = chooseName(names, first);
  return [found, ...new Set(others.map((part) => chooseName(names, part)).filter((name) => name !== found))];
}

const namesLike = (names: readonly string[], meant: string): string[] =>
  names.filter((name) => name.toLowerCase().includes(meant.toLowerCase()));

/** The selected adapter. Throws `unsupported` unless exactly one matches. */
function chooseName(names: readonly string[], meant: string): string {
  const like = namesLike(names, meant);
  const found = like.find((name) => name.length === meant.length) ?? (like.length === 1 ? like[0] : undefined);
  if (found !== undefined) return found;
  const there = names.length > 0 ? names.map((name) => `'${name}'`).join(", ") : "none";
  const problem = like.length > 1 ? "several GPUs have such a name" : "no GPU has such a name";
  throw new AppError("unsupported", `HEARTH_GPU='${meant}': ${problem}; there are ${there}`);
}

/** @param more names of toggles, separated by commas */
function dawnOptions(more = ""): string[] {
  const enabled = [...ENABLED, ...more.split(",").filter(Boolean)];
  return [`enable-dawn-features=${enabled.join()}`, `disable-dawn-features=${DISABLED.join()}`];
}
