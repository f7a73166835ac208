/**
 * Compiles every kernel, with every dequantizer and in every variant, on a device of Dawn that computes nothing but has
 * all features. Run as a program it prints how many it compiled, or what was wrong with each; the test starts it.
 */
import { create } from "webgpu";
import { DEQUANTIZERS, KERNELS, kernelSource, type KernelName } from "../../../kernels/wgsl/sources.ts";
import { STORAGE_BUFFERS } from "../../../src/backend/webgpu/adapters.ts";

/** Every source that some device may be given, by a name for messages. */
export function everySource(): Map<string, string> {
  const sources = new Map<string, string>();
  const names = Object.keys(KERNELS) as KernelName[]; // the keys of a literal are its names
  for (const kernel of names) {
    const matrices = KERNELS[kernel].match(/^\/\/#splice quant( \d)?$/gm)?.length ?? 0;
    for (const quants of choices(matrices)) {
      const plain = kernelSource(kernel, quants, { subgroups: false });
      const withSubgroups = kernelSource(kernel, quants, { subgroups: true });
      const name = [kernel, ...quants].join(" ");
      sources.set(name, plain);
      if (withSubgroups !== plain) sources.set(`${name} subgroups`, withSubgroups);
    }
  }
  return sources;
}

/** Block types of so many matrices: each type throughout, and beside another one. */
function choices(matrices: number): string[][] {
  if (matrices === 0) return [[]];
  const names = Object.keys(DEQUANTIZERS);
  const alike = names.map((name) => Array.from({ length: matrices }, () => name));
  if (matrices === 1) return alike;
  return [...alike, ...names.map((_, i) => Array.from({ length: matrices }, (_, j) => names[(i + j) % names.length]!))];
}

/** What a compiler says of each source that it refuses. */
async function complaints(sources: ReadonlyMap<string, string>): Promise<string[]> {
  const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error("Dawn has no null backend here");
  const device = await adapter.requestDevice({ requiredFeatures: ["subgroups"] });
  Object.assign(globalThis, { kept: [gpu, device] }); // a collected instance ends the process
  const found: string[] = [];
  for (const [name, code] of sources) {
    const buffers = code.match(/var<storage/g)?.length ?? 0;
    if (buffers > STORAGE_BUFFERS) found.push(`${name}: ${buffers} storage buffers, at most ${STORAGE_BUFFERS}`);
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ label: name, code });
    // This device binds fewer buffers than all that have a driver.
    if (buffers <= device.limits.maxStorageBuffersPerShaderStage)
      device.createComputePipeline({ label: name, layout: "auto", compute: { module, entryPoint: "main" } });
    const error = await device.popErrorScope();
    if (error) found.push(`${name}: ${error.message}`);
  }
  return found;
}

if (import.meta.main) {
  const sources = everySource();
  if (process.argv[2] === "broken")
    sources.set("broken", "@compute @workgroup_size(64) fn main() { let x: u32 = 1.5; }");
  const found = await complaints(sources);
  console.log(JSON.stringify({ compiled: sources.size, found }));
  process.exit();
}
