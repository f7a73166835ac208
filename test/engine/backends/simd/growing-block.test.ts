/** A block that grows with the rows of a run. */
import { expect, test } from "bun:test";
import { makeNativeMemory } from "../../../../src/engine/backends/host/simd-memory.ts";
import { growingBlock } from "../../../../src/engine/backends/simd/memory.ts";

test("a block that grows row by row takes at most three times the memory of its longest rows", () => {
  const memory = makeNativeMemory();
  const block = growingBlock(memory, "results");
  const row = 16_384;
  for (let rows = 1; rows <= 512; rows++) expect(block(rows * row).view.byteLength).toBeGreaterThanOrEqual(rows * row);
  expect(memory.bytes).toBeLessThanOrEqual(3 * 512 * row);
  expect(block(row)).toBe(block(512 * row)); // no smaller one afterwards
  memory.release();
});
