import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatDuration, formatTime, parseDuration, parseKeepAlive } from "../../src/base/duration.ts";
import { AppError } from "../../src/base/errors.ts";

describe("parseDuration reads Go's durations", () => {
  test.each([
    ["0", 0],
    ["-0", 0],
    ["5m", 300e9],
    ["1h30m", 5400e9],
    ["300ms", 300e6],
    ["1.5h", 5400e9],
    [".5s", 5e8],
    ["5.s", 5e9],
    ["+2s", 2e9],
    ["-1m", -60e9],
    ["1us", 1e3],
    ["1µs", 1e3],
    ["1μs", 1e3],
    ["1h2m3s4ms5us6ns", 3723004005006],
  ])("%s", (text, ns) => expect(parseDuration(text)).toBe(ns));

  test.each(["", "-", "abc", ".s", "1s ", "5", "1m5", "1d", "1constructor", "9999999999h", '1"'])(
    "%p is not a duration",
    (text) => expect(parseDuration(text)).toBeUndefined(),
  );
});

describe("formatDuration prints durations as Go does", () => {
  test.each([
    [0, "0s"],
    [15, "15ns"],
    [1500, "1.5µs"],
    [250e6, "250ms"],
    [1.5e9, "1.5s"],
    [300e9, "5m0s"],
    [5400e9, "1h30m0s"],
    [-1e9, "-1s"],
    [3723004005006, "1h2m3.004005006s"],
  ])("%d", (ns, text) => expect(formatDuration(ns)).toBe(text));

  test("parseDuration reads its results back", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e15, max: 1e15 }), (ns) => {
        expect(Math.abs(parseDuration(formatDuration(ns))! - ns)).toBeLessThanOrEqual(1);
      }),
      { seed: 7 },
    );
  });
});

describe("parseKeepAlive", () => {
  test.each([
    [undefined, undefined],
    [null, undefined],
    [0, 0],
    [0.5, 500],
    [30, 30_000],
    [-1, Infinity],
    ["0", 0],
    ["5m", 300_000],
    ["1.5s", 1500],
    ["-1m", Infinity],
    ["-1s", Infinity],
  ])("%p", (value, ms) => expect(parseKeepAlive(value)).toBe(ms as number));

  test.each([
    [true, "true"],
    [[], "an array"],
    [{}, "an object"],
    ["5", '"5"'],
  ])("%p is refused", (value, got) => {
    const expected = 'expected a number of seconds or a duration such as "5m"';
    expect(() => parseKeepAlive(value)).toThrow(new AppError("bad_request", `keep_alive: ${expected}, got ${got}`));
  });
});

test("formatTime has nine fractional digits and is exact to the microsecond", () => {
  expect(formatTime(Date.UTC(2026, 0, 2, 3, 4, 5) + 6.25)).toBe("2026-01-02T03:04:05.006250000Z");
  expect(formatTime(0)).toBe("1970-01-01T00:00:00.000000000Z");
});
