import { expect, test } from "bun:test";
import { untilSlow } from "../../../src/library/registry/slow.ts";

test("a download without progress is slow after one interval", async () => {
  await untilSlow(1, () => 5, new AbortController().signal);
});

test("a fast download is waited for until the abort", async () => {
  const stop = new AbortController();
  let bytes = 0;
  let isOver = false;
  const over = untilSlow(1, () => (bytes += 1e12), stop.signal).then(() => (isOver = true));
  await Bun.sleep(600);
  expect(isOver).toBe(false);
  stop.abort();
  await over;
});

test("no intervals: no wait", async () => {
  const never = (): number => {
    throw new Error("not expected");
  };
  await untilSlow(0, never, new AbortController().signal);
  await untilSlow(3, never, AbortSignal.abort());
});
