/** Lists the adapters of this machine, chooses one, and distinguishes GPUs from software adapters. */
import { AppError, messageOf } from "../../../base/index.ts";
import type { GpuProvider } from "./provider.ts";

/** Facts on an adapter for `hearth devices`. */
export interface AdapterFacts {
  readonly name: string;
  /** Its model in lower-case letters, digits and hyphens; empty: unknown. */
  readonly device: string;
  readonly vendor: string;
  readonly architecture: string;
  /** True for a CPU that emulates a GPU: slower than the CPU backends, useful for tests. */
  readonly software: boolean;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<(typeof LIMITS)[number], number>>;
  /** The reason why our kernels cannot run there; undefined: they can. */
  readonly refusal?: string;
}

/** Limits that matter for models. */
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
] as const satisfies readonly (keyof GPUSupportedLimits)[];

/** Storage buffers that most models need at once; some kernels bind 9, and fusions 10. */
const STORAGE_BUFFERS = 8;

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|\bwarp\b|basic render/i;
/**
 * An adapter that computes nothing and returns zeros: Dawn's null adapter, offered on request if there is no driver.
 */
const NULL_DEVICE = "null-backend";

export function adapterFacts({ info, features, limits }: GPUAdapter): AdapterFacts {
  const words = [info.description, info.device, info.architecture, info.vendor];
  return {
    name: info.description || info.device || [info.vendor, info.architecture].filter(Boolean).join(" ") || "GPU",
    device: info.device,
    vendor: info.vendor,
    architecture: info.architecture,
    software: info.isFallbackAdapter === true || SOFTWARE.test(words.join(" ")),
    features: [...features].toSorted(),
    // The entries match the type by construction.
    limits: Object.fromEntries(LIMITS.map((name) => [name, limits[name]])) as AdapterFacts["limits"],
  };
}

/** The reason why an adapter cannot run our kernels; undefined: it can. */
export function adapterRefusal({ info, limits }: GPUAdapter): string | undefined {
  if (info.device === NULL_DEVICE) return "its driver computes nothing";
  const buffers = limits.maxStorageBuffersPerShaderStage;
  if (buffers < STORAGE_BUFFERS)
    return `it binds ${buffers} storage buffers at once, at least ${STORAGE_BUFFERS} are needed`;
  return undefined;
}

/** The reason why no adapter of a provider can run models; `automatic`: the user did not request a GPU. */
export async function adapterRefuses(
  provider: GpuProvider,
  { automatic, adapter }: { automatic: boolean; adapter?: string | undefined },
): Promise<string | undefined> {
  try {
    await provider.open({ software: !automatic, adapter });
    const { software, name } = adapterFacts(await requestAdapter(provider));
    return automatic && software ? `'${name}' is a software adapter` : undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** The best adapter. An adapter makes only one device: request it again for another. Throws `unsupported`. */
export async function requestAdapter(provider: GpuProvider): Promise<GPUAdapter> {
  const gpu = await provider.open();
  const best: GPURequestAdapterOptions = { powerPreference: "high-performance" };
  const adapter = await provider.pump.start(() => gpu.requestAdapter(best));
  if (!adapter) throw new AppError("unsupported", "no GPU adapter: no driver (Vulkan, Metal or Direct3D 12) was found");
  const reason = adapterRefusal(adapter);
  if (reason) throw new AppError("unsupported", `adapter '${adapterFacts(adapter).name}': ${reason}`);
  return adapter;
}

/** All adapters, best first. Empty if the machine has no adapter. */
export async function listAdapters(provider: GpuProvider): Promise<AdapterFacts[]> {
  await provider.open();
  const best = await requestAdapter(provider).catch(() => undefined);
  const named = (await provider.named?.()) ?? [];
  if (named.length === 0) return listUnnamed(provider);
  const found: { facts: AdapterFacts; isBest: boolean }[] = [];
  for (const { name, gpu } of named) {
    const adapter = await provider.pump.start(() => gpu.requestAdapter());
    if (!adapter) continue;
    const refusal = adapterRefusal(adapter);
    const facts = { ...adapterFacts(adapter), name, ...(refusal !== undefined && { refusal }) };
    found.push({ facts, isBest: adapter.info.device === best?.info.device });
  }
  return found.toSorted((a, b) => Number(b.isBest) - Number(a.isBest)).map(({ facts }) => facts);
}

async function listUnnamed(provider: GpuProvider): Promise<AdapterFacts[]> {
  const gpu = await provider.open();
  const choices: GPURequestAdapterOptions[] = [
    { powerPreference: "high-performance" },
    { powerPreference: "low-power" },
    { forceFallbackAdapter: true },
  ];
  const found = new Map<string, AdapterFacts>();
  for (const choice of choices) {
    const adapter = await provider.pump.start(() => gpu.requestAdapter(choice));
    if (!adapter || adapterRefusal(adapter)) continue;
    const facts = adapterFacts(adapter);
    found.set(`${facts.vendor} ${facts.name}`, facts);
  }
  return [...found.values()];
}
