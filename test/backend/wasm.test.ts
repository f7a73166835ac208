/** The memory of kernels as WebAssembly, and the end of what 32 bits address. */
import { expect, test } from "bun:test";
import { makeWasmMemory } from "../../src/backend/wasm/memory.ts";

test("memory grows as it is asked for, keeps what is in it, and ends at 4 GiB", () => {
  const memory = makeWasmMemory();
  const first = memory.allocate(100, "numbers");
  first.view.fill(7);
  const second = memory.allocate(50 * 2 ** 20, "more");
  expect(second.address % 64).toBe(0);
  expect(second.view.some((value) => value !== 0)).toBe(false);
  expect(new Uint8Array(memory.linear.buffer, first.address, 100).every((value) => value === 7)).toBe(true);
  expect(() => memory.allocate(4 * 2 ** 30, "weights")).toThrow(
    /^weights: expected at most 4 GiB in all, .*, got \d{10} bytes$/,
  );
  expect(memory.bytes).toBeLessThan(60 * 2 ** 20);
});

test("a placed view is copied once, and again when it is said to have changed", () => {
  const memory = makeWasmMemory();
  const values = Float32Array.of(1, 2, 3);
  const address = memory.place(values);
  const seen = new Float32Array(memory.linear.buffer, address, 3);
  expect([...seen]).toEqual([1, 2, 3]);
  const bytes = memory.bytes;
  values[1] = 9;
  memory.refresh?.([values]);
  expect([...seen]).toEqual([1, 9, 3]);
  expect(memory.place(values)).toBe(address);
  expect(memory.bytes).toBe(bytes);
});
