/**
 * Models over the same base share a runner if its backend lets requests choose their adapters: the runner offers the
 * adapters of all of them, and each request names its own.
 */
import { ADAPTERS_MAX, backendTraits } from "../../base/index.ts";
import { stays, type Entry } from "./entry.ts";
import { weightsKey, type Offer, type PoolModel, type PoolWeights } from "./load-message.ts";

/** Maximum number of adapters in a runner, in addition to the ones that the request itself needs. */
const OFFERS_MAX = 16;
/** Bytes of these adapters: a runner copies them when a request first chooses one. */
const OFFERED_BYTES_MAX = 2 ** 30;
/** Share of the free memory for them. */
const MEMORY_SHARE = 1 / 4;

type WantedModel = PoolWeights & Pick<PoolModel, "chosen">;

const baseKey = (weights: PoolWeights): string => weightsKey({ ...weights, adapters: [] });

const includesAll = (paths: readonly string[] | undefined, wanted: readonly string[]): boolean =>
  paths !== undefined && wanted.every((path) => paths.includes(path));

/** Returns whether requests for a model can use a runner, or will learn from it that they cannot choose adapters. */
function serves({ model, load, runner }: Entry, { chosen = [], ...wanted }: WantedModel): boolean {
  const offered = runner?.info.adapters;
  const isSame = weightsKey(model) === weightsKey(wanted);
  if (!isSame && !(baseKey(model) === baseKey(wanted) && includesAll(offered, wanted.adapters))) return false;
  if (chosen.length === 0) return true;
  if (!runner) return false;
  const wasTried = [...model.adapters, ...(load.offers ?? [])];
  return !backendTraits(runner.info.backend).adaptersByRow || includesAll(wasTried, chosen);
}

/** The runner of a model; one that takes new requests, if there is any. */
export function entryOf(entries: Iterable<Entry>, wanted: WantedModel): Entry | undefined {
  const found = [...entries].filter((entry) => serves(entry, wanted));
  return found.find(stays) ?? found[0];
}

/** Runners that a new one for this model will replace: their requests choose adapters, and it offers more of them. */
export function supersededBy(entries: Iterable<Entry>, { offers, ...wanted }: PoolModel): Entry[] {
  if (!offers) return [];
  return [...entries].filter(({ model, load, runner }) => {
    if (!runner || !load.offers || baseKey(model) !== baseKey(wanted)) return false;
    const isBare = runner.info.adapters !== undefined || model.adapters.length === 0;
    const wasRefused = wanted.adapters.length > 0 && includesAll([...model.adapters, ...load.offers], wanted.adapters);
    return isBare && !wasRefused && backendTraits(runner.info.backend).adaptersByRow === true;
  });
}

/** Paths of the adapters to offer; undefined: the model's own apply to every request. */
export async function offeredPaths(
  { adapters, chosen = [], files = [], offers }: PoolModel,
  freeBytes: number,
): Promise<readonly string[] | undefined> {
  if (!offers || files.length > 0 || new Set(adapters).size > ADAPTERS_MAX) return undefined;
  const all = await offers();
  const needed = [...adapters, ...chosen];
  const others: Offer[] = [];
  let room = Math.min(OFFERED_BYTES_MAX, freeBytes * MEMORY_SHARE);
  for (const offer of all) {
    if (needed.includes(offer.path) || others.length === OFFERS_MAX || offer.bytes > room) continue;
    others.push(offer);
    room -= offer.bytes;
  }
  return [...new Set([...chosen, ...others.map(({ path }) => path)])].filter((path) => !adapters.includes(path));
}
