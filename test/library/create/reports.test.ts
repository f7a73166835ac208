import { expect, test } from "bun:test";
import { reports } from "../../../src/library/create/reports.ts";

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

test("a reader gets the reports in order, and the result at the end", async () => {
  const step = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const steps = reports(async (report: (n: number) => void) => {
    report(1);
    await step[0].promise;
    report(2);
    await step[1].promise;
    return "result";
  });
  expect(await steps.next()).toEqual({ done: false, value: 1 });
  step[0].resolve();
  expect(await steps.next()).toEqual({ done: false, value: 2 });
  step[1].resolve();
  expect(await steps.next()).toEqual({ done: true, value: "result" });
});

test("a slow reader gets only the latest report, and the last one even after the end of the work", async () => {
  const steps = reports(async (report: (n: number) => void) => {
    for (let n = 0; n < 1000; n++) report(n);
  });
  expect(await Array.fromAsync(steps)).toEqual([999]);
});

test("an error of the work reaches the reader after the reports", async () => {
  const steps = reports(async (report: (n: number) => void) => {
    report(1);
    throw new Error("broken");
  });
  expect((await steps.next()).value).toBe(1);
  await expect(steps.next()).rejects.toThrow("broken");
});

test("a reader that stops aborts the work, and waits for its cleanup", async () => {
  let isClear = false;
  const steps = reports(async (report: (n: number) => void, signal) => {
    report(1);
    await untilAborted(signal);
    await Promise.resolve();
    isClear = true;
  });
  await steps.next();
  expect(isClear).toBe(false);
  await steps.return();
  expect(isClear).toBe(true);
});

test("the caller's signal aborts the work even if there is no reader", async () => {
  const caller = new AbortController();
  const work = async (_report: (n: number) => void, signal: AbortSignal) => {
    await untilAborted(signal);
    throw new Error("given up");
  };
  const next = reports(work, { signal: caller.signal }).next();
  caller.abort();
  await expect(next).rejects.toThrow("given up");
});
