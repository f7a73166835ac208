/** The memory of kernels as WebAssembly, and the 32-bit limit of its addresses. */
import { expect, test } from "bun:test";
import type { WeightSource } from "../../../src/engine/program/backend.ts";
import { makeWeightPlaces } from "../../../src/engine/backends/simd/weights.ts";
import type { Weight } from "../../../src/engine/program/step.ts";
import { makeWasmMemory } from "../../../src/engine/backends/wasm/memory.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";

test("memory grows by each allocation, keeps its contents, and refuses more than 4 GiB", () => {
  const memory = makeWasmMemory();
  const first = memory.allocate(100, "numbers");
  first.view.fill(7);
  const second = memory.allocate(20 * 2 ** 20, "more");
  expect(second.address % 64).toBe(0);
  expect(second.view.some((value) => value !== 0)).toBe(false);
  expect(new Uint8Array(memory.linear.buffer, first.address, 100).every((value) => value === 7)).toBe(true);
  expect(() => memory.allocate(4 * 2 ** 30, "weights")).toThrow(
    /^weights: expected at most 4 GiB in all, .*, got \d{10} bytes$/,
  );
  expect(memory.bytes).toBeLessThan(30 * 2 ** 20);
});

test("a placed view is copied once, and again at a refresh", () => {
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

const ROW_BYTES = 68; // 64 weights of q8_0
const weight = (outDim: number, more: Partial<Weight> = {}): Weight => ({
  name: "w",
  quant: quants.q8_0,
  inDim: 64,
  outDim,
  rowStart: 0,
  tensorRows: outDim,
  experts: 1,
  ...more,
});
/** Blocks whose bytes reveal their origin; a NaN scale would have an exponent of ones. */
const blocksOf = (rows: number): Uint8Array => Uint8Array.from({ length: rows * ROW_BYTES }, (_, i) => (i * 7) % 113);
function factorOf(w: Weight, bytes: Uint8Array, load: { precise: boolean; small?: boolean } = { precise: false }) {
  const memory = makeWasmMemory();
  const source: WeightSource = { path: "a file", read: () => bytes };
  return { memory, matrix: makeWeightPlaces(source, memory, { ...load, panelRows: 8 }).factor(w) };
}

test("matrices of few columns are copied as panels in their own type, and matrices of long rows are not", () => {
  const [rows, columns, experts] = [11, 3, 2];
  const values = Uint16Array.from({ length: experts * rows * columns }, (_, i) => i + 1);
  const memory = makeWasmMemory();
  const source: WeightSource = { path: "a file", read: () => new Uint8Array(values.buffer) };
  const places = makeWeightPlaces(source, memory, { precise: false, small: true, panelRows: 8 });
  const short = { ...weight(rows), quant: quants.f16, inDim: columns, experts };
  const { data, type, rowBytes, expertBytes } = places.narrow(short);
  expect({ type, rowBytes, expertBytes }).toEqual({ type: 1024 + 1, rowBytes: 2 * columns, expertBytes: 96 });
  const placed = new Uint16Array(memory.linear.buffer, data, (experts * expertBytes!) / 2);
  // (experts, panels, columns, rows of a panel)
  const at = (expert: number, row: number, i: number): number =>
    placed[((expert * 2 + Math.floor(row / 8)) * columns + i) * 8 + (row % 8)]!;
  expect([at(0, 0, 0), at(0, 9, 2), at(1, 7, 1), at(1, 10, 0)]).toEqual([1, 9 * 3 + 3, 33 + 7 * 3 + 2, 33 + 31]);
  expect(at(1, 11, 0)).toBe(0);

  const bytes = new Uint8Array(2 * 256 * 8);
  const long = makeWeightPlaces({ path: "a file", read: () => bytes }, memory, { precise: false, panelRows: 8 });
  expect(long.narrow({ ...weight(8), quant: quants.f16, inDim: 256, tensorRows: 8 }).type).toBe(1);
});

test("rows of q8_0 are interleaved by eight, with zeros after the last row", () => {
  const bytes = blocksOf(11);
  const { memory, matrix } = factorOf(weight(11), bytes);
  expect(matrix.type).toBe(quants.q8_0.ggmlType + 256);
  const words = new Uint16Array(memory.linear.buffer, matrix.data, (16 * ROW_BYTES) / 2);
  const from = new Uint16Array(bytes.buffer);
  const width = ROW_BYTES / 2;
  for (let row = 0; row < 16; row++) {
    for (let i = 0; i < width; i++) {
      const at = (row >> 3) * 8 * width + i * 8 + (row & 7);
      expect(words[at]).toBe(row < 11 ? from[row * width + i]! : 0);
    }
  }
});

test("rows of q8_0 in a small model have the type that is multiplied as floats", () => {
  const { matrix } = factorOf(weight(11), blocksOf(11), { precise: false, small: true });
  expect(matrix.type).toBe(quants.q8_0.ggmlType + 512);
});

test("rows keep the file's layout for precise runs, infinite scales and parts that eight does not divide", () => {
  const infinite = blocksOf(16);
  infinite[34 * 5 + 1] = 0x7c;
  const plain = quants.q8_0.ggmlType;
  expect(factorOf(weight(16), blocksOf(16)).matrix.type).toBe(plain + 256);
  expect(factorOf(weight(16), blocksOf(16), { precise: true }).matrix.type).toBe(plain);
  expect(factorOf(weight(16), infinite).matrix.type).toBe(plain);
  expect(factorOf(weight(8, { rowStart: 4, tensorRows: 16 }), blocksOf(16)).matrix.type).toBe(plain);
  expect(factorOf(weight(12, { experts: 2 }), blocksOf(24)).matrix.type).toBe(plain);
});
