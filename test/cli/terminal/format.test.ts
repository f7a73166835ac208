import { describe, expect, test } from "bun:test";
import { formatBytes, formatTimeLeft, formatTable, formatWhen } from "../../../src/cli/terminal/format.ts";

describe("bytes", () => {
  test.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1 KB"],
    [6_299_936, "6.3 MB"],
    [815_319_791, "815 MB"],
    [4_661_224_676, "4.7 GB"],
    [1e16, "10 PB"],
  ])("%p is %p", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe("times", () => {
  const now = Date.parse("2026-01-10T00:00:00Z");
  test.each([
    ["2026-01-09T23:59:59.500Z", "Less than a second ago"],
    ["2026-01-10T00:04:59Z", "4 minutes from now"],
    ["2026-01-07T00:00:00Z", "3 days ago"],
    ["2025-12-09T00:00:00Z", "1 month ago"],
    ["2318-01-01T00:00:00Z", "Forever"],
    ["nonsense", ""],
  ])("%p is %p", (time, text) => {
    expect(formatWhen(time, now)).toBe(text);
  });
});

test("a table aligns its columns by the width in a terminal", () => {
  expect(formatTable(["A", "B"], [["日本", "x"], ["y"]])).toBe("A       B\n日本    x\ny\n");
  expect(formatTable([], [])).toBe("");
});

test("the time left has its two largest units", () => {
  expect([0, 44.2, 192, 3600 * 2 + 300, 86_400 * 4].map(formatTimeLeft)).toEqual([
    "1s left",
    "45s left",
    "3m12s left",
    "2h5m left",
    "4d left",
  ]);
});
