/**
 * Compiles kernels, with every dequantizer and in every variant, on a device of Dawn that computes nothing but has all
 * features: the plain ones, and some of the others that the seed draws. Run as a program it prints the number
 * compiled, or the errors; the test starts it.
 */
import { create } from "webgpu";
import { CACHE_TYPES } from "../../../../kernels/wgsl/cache.ts";
import {
  DEQUANTIZERS,
  KERNELS,
  kernelSource,
  type KernelName,
  type Variant,
} from "../../../../kernels/wgsl/sources.ts";
import { PLAIN, type SubgroupMatrix, type Tuning } from "../../../../src/base/kernel-tuning.ts";
import { SUBGROUP_MATRIX } from "../../../../src/engine/backends/webgpu/subgroup-matrix.ts";
import { drawn } from "../../../seed.ts";

/** The most that any device with our kernels needs. */
const STORAGE_BUFFERS = 10;
const WIDE: Tuning = { ...PLAIN, threads: 128, tileRows: 64 };
/** Subgroup matrices of NVIDIA, AMD, Intel, Apple and lavapipe. */
const MATRICES: readonly SubgroupMatrix[] = [
  { type: "f16", m: 16, n: 16, k: 16, width: 32 },
  { type: "f16", m: 16, n: 16, k: 16, width: 64 },
  { type: "f16", m: 8, n: 16, k: 16, width: 32 },
  { type: "f32", m: 8, n: 8, k: 8, width: 32 },
  { type: "f16", m: 8, n: 8, k: 8, width: 8 },
];
/** Variants besides the plain one. Size variants are compiled for some block types only. */
const VARIANTS: readonly { name: string; variant: Variant; quants?: readonly string[] }[] = [
  { name: "subgroups", variant: { subgroups: true } },
  { name: "loads16", variant: { subgroups: false, tuning: { ...PLAIN, loads16: true } } },
  { name: "packed", variant: { subgroups: false, tuning: { ...PLAIN, packed: true } } },
  { name: "f16", variant: { subgroups: false, tuning: { ...PLAIN, f16: true } } },
  {
    name: "double",
    variant: { subgroups: false, tuning: { ...PLAIN, double: true, f16: true } },
    quants: ["f16", "q4_K"],
  },
  ...MATRICES.map((matrix, i) => ({
    name: Object.values(matrix).join("x"),
    variant: { subgroups: false, matrix, tuning: { ...PLAIN, tileRows: 64, matrix: true } },
    ...(i > 0 && { quants: ["q4_K"] }),
  })),
  {
    name: "double matrix",
    variant: {
      subgroups: false,
      matrix: MATRICES[0]!,
      tuning: { ...PLAIN, tileRows: 128, matrix: true, double: true },
    },
    quants: ["q4_0"],
  },
  { name: "wide", variant: { subgroups: false, tuning: WIDE }, quants: ["f16", "q6_K"] },
  {
    name: "wide subgroups",
    variant: { subgroups: true, tuning: { ...WIDE, threads: 256, columns: 8 } },
    quants: ["q4_0"],
  },
  { name: "narrow", variant: { subgroups: false, tuning: { ...PLAIN, threads: 32, columns: 1 } }, quants: ["q4_K"] },
  { name: "all", variant: { subgroups: true, tuning: { ...WIDE, packed: true, f16: true } }, quants: ["q4_K", "q8_0"] },
];

/** Every source that any device may get, by a name for messages. */
export function everySource(): Map<string, string> {
  const sources = new Map<string, string>();
  const names = Object.keys(KERNELS) as KernelName[]; // the literal's keys
  for (const kernel of names) {
    const matrices = KERNELS[kernel].match(/^\/\/#splice quant( \d)?$/gm)?.length ?? 0;
    const caches = /^\/\/#splice cache$/m.test(KERNELS[kernel]) ? CACHE_TYPES : [];
    for (const quants of caches.length > 0 ? caches.map((type) => [type]) : choices(matrices)) {
      const needsMatrix = /^\/\/#splice matrices$/m.test(KERNELS[kernel]);
      const plain = kernelSource(kernel, quants, { subgroups: false, matrix: needsMatrix ? MATRICES[0] : undefined });
      const name = [kernel, ...quants].join(" ");
      sources.set(name, plain);
      for (const { name: more, variant, quants: some } of VARIANTS) {
        if (some && !quants.some((quant) => some.includes(quant))) continue;
        if (needsMatrix && !variant.matrix) continue;
        const other = kernelSource(kernel, quants, variant);
        if (other !== plain) sources.set(`${name} ${more}`, other);
      }
    }
  }
  return sources;
}

/** The sources of a run: each kernel once, and a third of all. */
export function someSources(): Map<string, string> {
  const all = [...everySource()];
  const kernels = new Map(all.map(([name, code]) => [name.split(" ")[0], [name, code] as const]));
  return new Map([...kernels.values(), ...drawn("sources of kernels", all, Math.ceil(all.length / 3))]);
}

/** Block types of this many matrices: each type alone, and with another one. */
function choices(matrices: number): string[][] {
  if (matrices === 0) return [[]];
  const names = Object.keys(DEQUANTIZERS);
  const alike = names.map((name) => Array.from({ length: matrices }, () => name));
  if (matrices === 1) return alike;
  return [...alike, ...names.map((_, i) => Array.from({ length: matrices }, (_, j) => names[(i + j) % names.length]!))];
}

/** The compiler's errors for each refused source. */
async function complaints(sources: ReadonlyMap<string, string>): Promise<string[]> {
  const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error("Dawn has no null backend here");
  const device = await adapter.requestDevice({
    requiredFeatures: ["subgroups", "shader-f16", SUBGROUP_MATRIX],
    requiredLimits: { maxComputeWorkgroupStorageSize: adapter.limits.maxComputeWorkgroupStorageSize },
  });
  Object.assign(globalThis, { kept: [gpu, device] }); // a collected instance ends the process
  const found: string[] = [];
  for (const [name, code] of sources) {
    const buffers = code.match(/var<storage/g)?.length ?? 0;
    if (buffers > STORAGE_BUFFERS) found.push(`${name}: ${buffers} storage buffers, at most ${STORAGE_BUFFERS}`);
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ label: name, code });
    // This device binds fewer buffers than any device with a driver, and has wider subgroups than any with matrices.
    if (buffers <= device.limits.maxStorageBuffersPerShaderStage && !code.includes("subgroup_matrix"))
      device.createComputePipeline({ label: name, layout: "auto", compute: { module, entryPoint: "main" } });
    const error = await device.popErrorScope();
    if (error) found.push(`${name}: ${error.message}`);
  }
  return found;
}

if (import.meta.main) {
  const broken = "@compute @workgroup_size(64) fn main() { let x: u32 = 1.5; }";
  const sources = process.argv[2] === "broken" ? new Map([["broken", broken]]) : someSources();
  const found = await complaints(sources);
  console.log(JSON.stringify({ compiled: sources.size, found }));
  process.exit();
}
