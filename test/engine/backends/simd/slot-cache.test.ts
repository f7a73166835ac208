/** Slots of weights: the least used unit leaves, and none that is held. */
import { expect, test } from "bun:test";
import { SlotCache } from "../../../../src/engine/backends/simd/streaming/slot-cache.ts";

test("a new unit takes the slot of the least used unit", () => {
  const cache = new SlotCache(5, 3);
  for (const [unit, uses] of [
    [0, 3],
    [1, 1],
    [2, 2],
  ] as const) {
    cache.take(unit);
    cache.use(unit, uses);
  }
  expect(cache.take(3)).toBe(1);
  expect([0, 1, 2, 3].map((unit) => cache.slotOf(unit))).toEqual([0, undefined, 2, 1]);
});

test("a held unit keeps its slot, and uses count less with every pass", () => {
  const cache = new SlotCache(4, 2);
  const [first, second] = [cache.take(0), cache.take(1)];
  cache.use(0, 2);
  cache.use(1, 3);
  cache.hold(first);
  expect(cache.take(2)).toBe(second);
  cache.release(first);
  for (let pass = 0; pass < 50_000; pass++) cache.age(); // the weights of uses stay in the range of numbers
  cache.use(2, 1);
  expect(cache.take(3)).toBe(first);
  expect(cache.slotOf(2)).toBe(second);
  for (const slot of [first, second]) cache.hold(slot);
  expect(() => cache.take(0)).toThrow("every slot of weights is in use");
});
