/** The decision on weights that stay in memory, under the limits of this machine. */
import { expect, test } from "bun:test";
import { fitsInMemory, roomForWeights } from "../../../../src/engine/formats/files/fits-in-memory.ts";

const GIB = 2 ** 30;

test("weights fit if the reserve for the process is left beside them", () => {
  const available = 8 * GIB;
  expect(fitsInMemory(7 * GIB, { available })).toBe(true);
  expect(fitsInMemory(8 * GIB, { available })).toBe(false);
  expect(fitsInMemory(7 * GIB, { available, taken: GIB })).toBe(false);
  expect(roomForWeights(GIB, available)).toBe(roomForWeights(0, available) - GIB);
  expect(roomForWeights(9 * GIB, available)).toBe(0);
});

test("the default is this machine's memory", () => {
  expect(fitsInMemory(1)).toBe(true);
  expect(fitsInMemory(2 ** 50)).toBe(false);
});
