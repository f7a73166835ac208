/** The GPUs besides the first over which one model may be spread. */
import { adapterFacts, adapterRefusal, requestAdapter, type AdapterFacts } from "../webgpu/adapters.ts";
import { makePump } from "../webgpu/pace.ts";
import type { GpuProvider } from "../webgpu/provider.ts";
import { chooseNames } from "./dawn.ts";
import { gpuMemory } from "./gpu-memory.ts";

/** Share of the first GPU's memory that another must have to be used without being named. */
const COMPARABLE = 1 / 2;

type Named = Awaited<ReturnType<NonNullable<GpuProvider["named"]>>>;

/**
 * Providers of the other GPUs, made once: the ones that `adapter` names after the first; if it is undefined, the ones
 * with comparable memory, the largest first. Nothing tells GPUs of one name apart.
 */
export function otherGpus(provider: GpuProvider, adapter: string | undefined): Promise<readonly GpuProvider[]> {
  return (provider.others ??= findOthers(provider, adapter));
}

async function findOthers(provider: GpuProvider, adapter: string | undefined): Promise<readonly GpuProvider[]> {
  const named = (await provider.named?.()) ?? [];
  const names = named.map(({ name }) => name);
  const chosen =
    adapter === undefined
      ? await comparable(provider, named)
      : chooseNames(names, adapter)
          .slice(1)
          .flatMap((name) => named.filter((each) => each.name === name));
  return chosen.map(({ name, gpu }) => ({ name, pump: makePump(), open: () => Promise.resolve(gpu) }));
}

async function comparable(provider: GpuProvider, named: Named): Promise<Named> {
  if (named.length < 2) return [];
  const own = adapterFacts(await requestAdapter(provider));
  const least = COMPARABLE * (await totalOf(own));
  const found: { each: Named[number]; total: number }[] = [];
  for (const each of named) {
    const adapter = await provider.pump.start(() => each.gpu.requestAdapter());
    if (!adapter || adapter.info.device === own.device || adapterRefusal(adapter)) continue;
    const total = await totalOf(adapterFacts(adapter));
    if (total >= least) found.push({ each, total });
  }
  return found.toSorted((a, b) => b.total - a.total).map(({ each }) => each);
}

/** NaN: unknown, or a software adapter. */
const totalOf = async (facts: AdapterFacts): Promise<number> =>
  facts.software ? NaN : ((await gpuMemory(facts))?.total ?? NaN);
