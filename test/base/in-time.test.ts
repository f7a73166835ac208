import { expect, test } from "bun:test";
import { inTime } from "../../src/base/index.ts";

const never = new Promise<never>(() => {});

test("a promise that settles in time gives its result or its error, and `late` is not called", async () => {
  let isLate = false;
  const late = (): void => void (isLate = true);
  expect(await inTime(Promise.resolve(7), { ms: 5, late })).toBe(7);
  await expect(inTime(Promise.reject(new Error("broken")), { ms: 5, late })).rejects.toThrow("broken");
  await Bun.sleep(20);
  expect(isLate).toBe(false);
});

test("a promise that does not settle in time gives what `late` returns or throws", async () => {
  expect(await inTime(never, { ms: 1, late: () => "late" })).toBe("late");
  const late = (): never => {
    throw new Error("too late");
  };
  await expect(inTime(never, { ms: 1, late })).rejects.toThrow("too late");
});
