import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";

const DAY_MS = 24 * 60 * 60_000;

test("the clock runs timers in the order of their times, and no cancelled one", async () => {
  const order: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  systemClock.after(40, () => resolve(void order.push("late")));
  const cancel = systemClock.after(5, () => order.push("never"));
  systemClock.after(-3, () => order.push("now"));
  cancel();
  await promise;
  expect(order).toEqual(["now", "late"]);
});

test("a timer of two months does not fire at once", async () => {
  let fired = false;
  const cancel = systemClock.after(60 * DAY_MS, () => void (fired = true));
  await Bun.sleep(30);
  cancel();
  expect(fired).toBe(false);
});
