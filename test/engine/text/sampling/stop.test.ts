import { expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../src/base/errors.ts";
import { makeStopMatcher } from "../../../../src/engine/text/sampling/stop.ts";
import { cpuMs } from "../../../cpu-time.ts";

interface Result {
  text: string;
  stop: string | undefined;
}

/** The text that a matcher passes on, and the stop string that ended it. */
function run(stops: readonly string[], chunks: readonly string[]): Result {
  const matcher = makeStopMatcher(stops);
  let text = "";
  for (const chunk of chunks) {
    const got = matcher.push(chunk);
    text += got.text;
    if (got.stop !== undefined) return { text, stop: got.stop };
  }
  return { text: text + matcher.end(), stop: undefined };
}

/** The meaning, by searching every prefix of the whole text. */
function expected(stops: readonly string[], text: string): Result {
  const real = stops.filter((stop) => stop !== "").toSorted((a, b) => b.length - a.length);
  for (let end = 1; end <= text.length; end++) {
    const found = real.find((stop) => text.slice(0, end).endsWith(stop));
    if (found !== undefined) return { text: text.slice(0, end - found.length), stop: found };
  }
  return { text, stop: undefined };
}

test("any chunking of a text gives the result of searching the whole", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 24 });
  const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 }), { maxLength: 4 });
  fc.assert(
    fc.property(stops, letters, fc.array(fc.nat(6), { maxLength: 30 }), (wanted, text, cuts) => {
      const chunks: string[] = [];
      let at = 0;
      for (const cut of cuts) chunks.push(text.slice(at, (at += cut)));
      chunks.push(text.slice(at));
      expect(run(wanted, chunks)).toEqual(expected(wanted, text));
    }),
    { seed: 11, numRuns: 2000 },
  );
});

test("a stop string across chunks is not emitted, and a false start is emitted whole", () => {
  const matcher = makeStopMatcher(["</s>"]);
  expect(matcher.push("one <")).toEqual({ text: "one ", stop: undefined });
  expect(matcher.push("/b> two </")).toEqual({ text: "</b> two ", stop: undefined });
  expect(matcher.push("s> three")).toEqual({ text: "", stop: "</s>" });
  expect(matcher.push("more")).toEqual({ text: "", stop: "</s>" });
  expect(matcher.end()).toBe("");
});

test("text that cannot start a stop string is not held back", () => {
  const matcher = makeStopMatcher(["END"]);
  expect(matcher.push("hello").text).toBe("hello");
  expect(matcher.push("EN").text).toBe("");
  expect(matcher.end()).toBe("EN");
});

test("without stop strings, or with empty ones, text passes at once", () => {
  expect(makeStopMatcher([]).push("abc")).toEqual({ text: "abc", stop: undefined });
  expect(makeStopMatcher([""]).push("abc")).toEqual({ text: "abc", stop: undefined });
});

test("200,000 characters of a repeated prefix take less than 10 seconds of processor time", () => {
  const matcher = makeStopMatcher([`${"a".repeat(5000)}b`]);
  const started = cpuMs();
  for (let i = 0; i < 2000; i++) matcher.push("a".repeat(100));
  expect(cpuMs() - started).toBeLessThan(10_000); // 200,000 characters; comparing at each would be 1e9 steps
});

test("stop strings beyond the limit are refused", () => {
  expect(() => makeStopMatcher(["x".repeat(70_000)])).toThrow(AppError);
});
