/** The cost of work on values, in steps of the evaluator's budget; a step takes about 0.1 µs. */
import type { GoValue } from "./value.ts";

/** Characters that can be copied or compared per step. */
const COPIED_PER_STEP = 64;
/** Characters that can be read one by one per step, as for JSON and UTF-8. */
const READ_PER_STEP = 8;
/** Each printed number, list, key and so on. */
const PART_STEPS = 4;

export const copyCost = (length: number): number => length / COPIED_PER_STEP;

/** The cost of reading a value without its parts. */
export function outerCost(value: GoValue): number {
  if (typeof value === "string") return copyCost(value.length);
  return typeof value === "object" && value?.kind === "list" ? copyCost(value.items.length) : 0;
}

/** Steps for an argument of a function. */
export type CostOf = (value: GoValue, known: KnownCosts) => number;

/** Costs of measured values, which do not change. */
export type KnownCosts = WeakMap<object, number>;

/** Reading a whole value, at every depth. */
export function wholeCost(value: GoValue, known: KnownCosts): number {
  if (typeof value === "string") return PART_STEPS + value.length / READ_PER_STEP;
  if (typeof value !== "object" || value === null) return PART_STEPS;
  const before = known.get(value);
  if (before !== undefined) return before;
  let cost = PART_STEPS;
  if (value.kind === "list") for (const item of value.items) cost += wholeCost(item, known);
  else {
    for (const [key, part] of value.kind === "map" ? value.entries : value.fields) {
      cost += wholeCost(key, known) + wholeCost(part, known);
    }
  }
  known.set(value, cost);
  return cost;
}

/** Text is copied; printing any other value reads all of it. */
export const printCost: CostOf = (value, known) =>
  typeof value === "string" ? copyCost(value.length) : wholeCost(value, known);

/** An escape for each character. */
export const escapeCost: CostOf = (value, known) => READ_PER_STEP * wholeCost(value, known);
