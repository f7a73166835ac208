/** The GPUs besides the first over which one model may be spread. */
import { adapterFacts, adapterRefusal, requestAdapter } from "../webgpu/adapters.ts";
import { makePump } from "../webgpu/device-polling.ts";
import type { GpuProvider } from "../webgpu/provider.ts";
import { chooseNames } from "./dawn.ts";
import { gpuMemories } from "./gpu-memory.ts";

/** Share of the first GPU's memory that another must have to be used without being named. */
const COMPARABLE = 1 / 2;

type Named = Awaited<ReturnType<NonNullable<GpuProvider["named"]>>>;

/**
 * Providers of the other GPUs, made once: the ones that `adapter` names after the first; if it is undefined, the ones
 * with comparable memory, the largest first. GPUs with equal names are indistinguishable.
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

/** The adapters with enough memory, the largest first, without other drivers' adapters for the same cards. */
async function comparable(provider: GpuProvider, named: Named): Promise<Named> {
  if (named.length < 2) return [];
  const { info } = await requestAdapter(provider);
  const cards: (GpuCard & Named[number])[] = [];
  let first = "";
  for (const each of named) {
    const adapter = await provider.pump.start(() => each.gpu.requestAdapter());
    if (!adapter || adapterRefusal(adapter)) continue;
    if (adapter.info.device === info.device) first = each.name;
    const facts = { ...adapterFacts(adapter), name: each.name };
    if (facts.software) continue;
    cards.push({ ...each, totals: (await gpuMemories(facts)).map(({ total }) => total) });
  }
  return comparableOf(first, cards);
}

export interface GpuCard {
  readonly name: string;
  /** Total memory of every card that the adapter may be. */
  readonly totals: readonly number[];
}

/**
 * The cards besides the one named `first` that certainly have enough memory, the largest first; each once, although it
 * may have several drivers.
 */
export function comparableOf<T extends GpuCard>(first: string, all: readonly T[]): T[] {
  const own = all.find(({ name }) => name === first)?.totals ?? [];
  if (own.length === 0) return [];
  const least = COMPARABLE * Math.max(...own);
  const smallest = ({ totals }: T): number => (totals.length === 0 ? 0 : Math.min(...totals));
  const seen = new Set([modelOf(first)]);
  return all
    .toSorted((a, b) => smallest(b) - smallest(a))
    .filter((card) => {
      const isNew = !seen.has(modelOf(card.name));
      seen.add(modelOf(card.name));
      return isNew && smallest(card) >= least;
    });
}

/** A card's name without the driver's, which some drivers add in parentheses. */
const modelOf = (name: string): string => name.replace(/\s*\(.*\)$/, "").toLowerCase();
