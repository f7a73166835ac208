/** Reads the pooling of states from a file. */
import { describe, expect, test } from "bun:test";
import { poolingOf } from "../../../src/engine/batching/pooling.ts";
import type { Gguf, MetadataValue } from "../../../src/engine/formats/gguf/gguf.ts";

const file = (pooling?: MetadataValue): Gguf => {
  const metadata = new Map(pooling === undefined ? [] : [["a.pooling_type", pooling]]);
  return { path: "m.gguf", metadata } as unknown as Gguf;
};

describe("pooling", () => {
  test.each([1, 2, 3, 4])("is read from the file: %p", (value) => {
    const expected = { 1: "mean", 2: "first", 3: "last", 4: "first" }[value];
    expect(poolingOf(file(value), { arch: "a", encoder: true })).toBe(expected as never);
  });

  test.each([undefined, 0, -1, 0xffffffff])("depends on the kind of model if the file has %p", (value) => {
    expect(poolingOf(file(value), { arch: "a", encoder: true })).toBe("mean");
    expect(poolingOf(file(value), { arch: "a", encoder: false })).toBe("last");
  });

  test.each([5, "mean"])("is refused by name if it is unknown: %p", (value) => {
    const known = "0 (none), 1 (mean), 2 (cls), 3 (last) or 4 (rank)";
    expect(() => poolingOf(file(value), { arch: "a", encoder: true })).toThrow(
      `m.gguf: 'a.pooling_type': expected ${known}, got ${value}`,
    );
  });
});
