/** Cores as Windows lists them. */
import { availableParallelism } from "node:os";
import { expect, test } from "bun:test";
import { countCores, windowsCores } from "../../../../src/engine/backends/onnx/windows-cores.ts";

/** SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX of cores of these classes of efficiency, the first with a larger entry. */
function listOf(classes: readonly number[]): Uint8Array {
  const entries = classes.map((each, i) => {
    const entry = Buffer.alloc(i === 0 ? 64 : 48);
    entry.writeUInt32LE(entry.length, 4);
    entry[9] = each;
    return entry;
  });
  return Buffer.concat(entries);
}

test.each([
  ["four equal cores", [0, 0, 0, 0], 4],
  ["eight fast and four slow cores", [...Array(8).fill(1), ...Array(4).fill(0)], 8],
  ["two fast and eight slow cores", [1, 1, ...Array(8).fill(0)], 5],
  ["three kinds of cores", [2, 2, 2, 2, 1, 1, 0, 0], 4],
  ["one core", [0], 1],
])("the cores to use are counted for a processor with %s", (_, classes, expected) =>
  expect(countCores(listOf(classes))).toBe(expected),
);

test("a damaged list of cores gives no count", () => {
  const list = listOf([0, 0]);
  for (const bad of [new Uint8Array(0), list.subarray(0, 100), new Uint8Array(64)])
    expect(countCores(bad)).toBeUndefined();
});

test.skipIf(process.platform !== "win32")(
  "the count of cores on Windows is between one and all logical processors",
  () => {
    expect(windowsCores()).toBeGreaterThan(0);
    expect(windowsCores()).toBeLessThanOrEqual(availableParallelism());
  },
);
