/** The order in which models are evicted. */
import { assert } from "../../base/index.ts";

export interface Evictable {
  /** The longest time without use. */
  readonly keepAliveMs: number;
  readonly usedAtMs: number;
  readonly users: number;
}

/** Sorts models by eviction: the first one is evicted first. */
export const evictionOrder = <E extends Evictable>(entries: readonly E[]): E[] =>
  entries.toSorted((a, b) => a.keepAliveMs - b.keepAliveMs || a.usedAtMs - b.usedAtMs);

/** The first idle model in that order, else the first busy one. Asserts that there is one. */
export function victimOf<E extends Evictable>(entries: readonly E[]): E {
  const order = evictionOrder(entries);
  const victim = order.find((entry) => entry.users === 0) ?? order[0];
  assert(victim, "no model to evict");
  return victim;
}
