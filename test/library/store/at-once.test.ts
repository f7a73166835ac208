import { expect, test } from "bun:test";
import { mapAtOnce } from "../../../src/library/store/at-once.ts";

test("results have the order of their items, with several running at once but not all", async () => {
  let [running, most] = [0, 0];
  const items = Array.from({ length: 100 }, (_, i) => i);
  const made = await mapAtOnce(items, async (item) => {
    most = Math.max(most, ++running);
    await Bun.sleep((item * 7) % 5);
    running--;
    return item * 2;
  });
  expect(made).toEqual(items.map((item) => item * 2));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThan(items.length);
});

test("the first failure rejects the whole, and later items are not started", async () => {
  const begun: number[] = [];
  const items = Array.from({ length: 100 }, (_, i) => i);
  const work = async (item: number): Promise<void> => {
    begun.push(item);
    if (item === 3) throw new Error("three");
  };
  await expect(mapAtOnce(items, work)).rejects.toThrow("three");
  expect(begun.length).toBeLessThan(items.length);
});
