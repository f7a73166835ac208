/** Which model goes first where there is no room for all. */
import { assert } from "../base/index.ts";

export interface Evictable {
  /** How long it may stay without use. */
  readonly keepAliveMs: number;
  readonly usedAtMs: number;
  readonly users: number;
}

/** The model that would go first anyway comes first. */
export const evictionOrder = <E extends Evictable>(entries: readonly E[]): E[] =>
  entries.toSorted((a, b) => a.keepAliveMs - b.keepAliveMs || a.usedAtMs - b.usedAtMs);

/** The idle model that goes first, else the busy one. Asserts that there is one. */
export function victimOf<E extends Evictable>(entries: readonly E[]): E {
  const order = evictionOrder(entries);
  const victim = order.find((entry) => entry.users === 0) ?? order[0];
  assert(victim, "no model to evict");
  return victim;
}
