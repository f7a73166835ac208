/** Typed access to metadata. */
import { expect, test } from "bun:test";
import type { Metadata } from "../../../../src/engine/formats/gguf/gguf.ts";
import { getBool, getNumber, getNumbers, getString, getStrings } from "../../../../src/engine/formats/gguf/keys.ts";
import { failure } from "./fixture.ts";

const metadata: Metadata = new Map<string, Metadata extends ReadonlyMap<string, infer V> ? V : never>([
  ["number", 7],
  ["large", 2n ** 60n],
  ["text", "llama"],
  ["yes", true],
  ["floats", Float32Array.of(1, 2.5)],
  ["longs", BigInt64Array.of(-3n, 4n)],
  ["words", ["a", "b"]],
  ["flags", [true]],
  ["nothing", []],
]);

test("a key of the wanted type gives its value", () => {
  expect(getNumber(metadata, "number")).toBe(7);
  expect(getString(metadata, "text")).toBe("llama");
  expect(getBool(metadata, "yes")).toBe(true);
  expect(getNumbers(metadata, "floats")).toEqual(Float32Array.of(1, 2.5));
  expect(getStrings(metadata, "words")).toEqual(["a", "b"]);
  expect(getStrings(metadata, "nothing")).toEqual([]);
});

test("arrays of 64-bit integers are returned as Float64Array", () => {
  expect(getNumbers(metadata, "longs")).toEqual(Float64Array.of(-3, 4));
});

test("an absent key gives the default, even undefined, and without a default an error", () => {
  expect(getNumber(metadata, "none", 5)).toBe(5);
  expect(getString(metadata, "none", undefined)).toBeUndefined();
  expect(getBool(metadata, "none", false)).toBe(false);
  expect(getNumbers(metadata, "none", undefined)).toBeUndefined();
  expect(getStrings(metadata, "none", [])).toEqual([]);
  expect(failure(() => getNumber(metadata, "none"))).toBe("bad_file: metadata 'none': expected a number, got nothing");
});

test("a key of another type is an error, even with a default", () => {
  const wrong = (run: () => unknown) => failure(run).replace("bad_file: metadata ", "");
  expect(wrong(() => getNumber(metadata, "text", 1))).toBe(`'text': expected a number, got the string "llama"`);
  expect(wrong(() => getNumber(metadata, "large"))).toBe(
    "'large': expected a number, got the bigint 1152921504606846976",
  );
  expect(wrong(() => getString(metadata, "words"))).toBe("'words': expected a string, got an array of 2 × string");
  expect(wrong(() => getBool(metadata, "number"))).toBe("'number': expected a bool, got the number 7");
  expect(wrong(() => getNumbers(metadata, "flags"))).toBe(
    "'flags': expected an array of numbers, got an array of 1 × boolean",
  );
  expect(wrong(() => getStrings(metadata, "floats"))).toBe(
    "'floats': expected an array of strings, got an array of 2 numbers",
  );
  expect(wrong(() => getStrings(metadata, "flags"))).toBe(
    "'flags': expected an array of strings, got an array of 1 × boolean",
  );
});
