import { expect, test } from "bun:test";
import { mapAtOnce } from "../../../src/library/store/at-once.ts";

test("results come in the order of their items, with some of the work at once and never all of it", async () => {
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

test("the first failure is the whole's, and what comes behind is not begun", async () => {
  const begun: number[] = [];
  const items = Array.from({ length: 100 }, (_, i) => i);
  const work = async (item: number): Promise<void> => {
    begun.push(item);
    if (item === 3) throw new Error("three");
  };
  await expect(mapAtOnce(items, work)).rejects.toThrow("three");
  expect(begun.length).toBeLessThan(items.length);
});
