/** The division of batches into chunks: spans stay whole, vectors keep their rows. */
import { expect, test } from "bun:test";
import { chunksOf, type Chunk, type WantedRows } from "../../../../src/engine/backends/webgpu/chunks.ts";

const OPTIONS = {
  capacity: { all: 8, wanted: 4 },
  splits: true,
  hasInput: false,
  keeps: true,
  vectorDim: 2,
  memory: { dim: 3 },
};

/** Rows with ids 0, 1 …, or −1 from `given[0]` to `given[1]`, whose vectors hold their number. */
function rows(
  slot: number,
  count: number,
  { given: [from, to] = [0, 0], ...more }: { given?: readonly [number, number] } & Partial<WantedRows>,
): WantedRows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (i >= from && i < to ? -1 : i));
  const vectors = Float32Array.from({ length: 2 * (to - from) }, (_, i) => from + Math.floor(i / 2));
  return { slot, start: 10, tokens, states: "none", ...(to > from && { vectors }), ...more };
}

const sizes = (chunks: readonly Chunk[]): number[] => chunks.map((chunk) => chunk.rows.length);

/** The number in the vector of each row of a chunk; undefined for rows with ids. */
function numbers({ rows: list, vectors }: Chunk): (number | undefined)[] {
  const values = vectors.flatMap((each) => [...each]);
  return list.map(({ token }) => (token < 0 ? values[2 * (-1 - token)] : undefined));
}

test("text fills chunks", () => {
  expect(sizes(chunksOf([rows(0, 11, {}), rows(1, 6, {})], OPTIONS))).toEqual([8, 8, 1]);
});

test("a chunk ends before a span that does not fit, and holds rows after a span", () => {
  const spans = [
    { first: 9, end: 11 },
    { first: 1, end: 6 },
  ];
  const chunks = chunksOf([rows(0, 4, {}), rows(1, 12, { spans })], OPTIONS);
  expect(sizes(chunks)).toEqual([5, 8, 3]);
  expect(chunks.map(({ twoWay }) => twoWay)).toEqual([false, true, true]);
  expect(chunks[1]!.rows.map(({ span }) => [span.first, span.end])).toEqual([
    ...Array.from({ length: 5 }, () => [11, 16]),
    [16, 17],
    [17, 18],
    [18, 19],
  ]);
  expect(chunks[2]!.rows.map(({ span }) => [span.first, span.end])).toEqual([
    [19, 21],
    [19, 21],
    [21, 22],
  ]);
});

test("a span longer than a chunk is refused with its length", () => {
  expect(() => chunksOf([rows(0, 10, { spans: [{ first: 1, end: 10 }] })], OPTIONS)).toThrow(
    "9 rows see each other in both directions: expected at most 8",
  );
});

test("a span with more results than a chunk holds is refused, and rows without a span are divided", () => {
  const given = rows(0, 8, { spans: [{ first: 2, end: 8 }], states: "all" });
  expect(() => chunksOf([given], OPTIONS)).toThrow("results of 6 rows of a span: expected at most 4 at once");
  expect(sizes(chunksOf([rows(0, 8, { states: "all" })], OPTIONS))).toEqual([4, 4]);
});

test("vectors stay with their rows across chunks and entries", () => {
  const chunks = chunksOf([rows(0, 3, {}), rows(1, 9, { given: [2, 7] }), rows(2, 5, { given: [1, 3] })], OPTIONS);
  expect(chunks.map(numbers)).toEqual([
    [undefined, undefined, undefined, undefined, undefined, 2, 3, 4],
    [5, 6, undefined, undefined, undefined, 1, 2, undefined],
    [undefined],
  ]);
  expect(chunks.map(({ given }) => given)).toEqual([3, 4, 0]);
});

test("a row has the position of its token, or one or three positions of its own", () => {
  const positions = Int32Array.from({ length: 6 }, (_, i) => i);
  const [chunk] = chunksOf(
    [rows(0, 2, {}), rows(1, 2, { positions: Int32Array.of(7, 7) }), rows(2, 2, { positions })],
    OPTIONS,
  );
  expect(chunk!.rows.map(({ position }) => position)).toEqual([
    [10, 10, 10],
    [11, 11, 11],
    [7, 7, 7],
    [7, 7, 7],
    [0, 1, 2],
    [3, 4, 5],
  ]);
  expect(chunk!.rows.map(({ cell }) => cell)).toEqual([10, 11, 10, 11, 10, 11]);
});
