import { expect, test } from "bun:test";
import { retryDelayMs } from "../../../../../src/gateway/hooks/queue/worker/backoff.ts";

test("delays double from a second to five minutes", () => {
  const delays = [1, 2, 3, 4, 9, 10, 1000].map((failures) => retryDelayMs(failures, () => 1));
  expect(delays).toEqual([1000, 2000, 4000, 8000, 256_000, 300_000, 300_000]);
});

test("a random half of the delay is removed, so that retries do not coincide", () => {
  expect(retryDelayMs(3, () => 0)).toBe(2000);
  expect(retryDelayMs(3, () => 0.5)).toBe(3000);
});

test("a requested delay is used, up to a day", () => {
  expect(retryDelayMs(1, () => 1, 60_000)).toBe(60_000);
  expect(retryDelayMs(5, () => 1, 1)).toBe(16_000);
  expect(retryDelayMs(1, () => 1, 1e12)).toBe(86_400_000);
  expect(retryDelayMs(1, () => 1, 1234.5)).toBe(1235); // tables keep whole milliseconds
});
