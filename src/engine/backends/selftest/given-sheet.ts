/** The sheet whose runs have memories, which rows attend to, and vectors in place of embeddings. */
import type { Memory, Rows } from "../../program/backend.ts";
import type { Buf, Step } from "../../program/step.ts";
import { makeRng } from "../../text/rng.ts";
import { SheetBuilder, VOCAB, type Sheet } from "./sheet.ts";

const DIM = 64;
const MEMORY_DIM = 32;
/** More than one block of scores. */
const MEMORY_ROWS = 300;

export function given(): Sheet {
  const sheet = new SheetBuilder("given", DIM);
  const { x, steps } = sheet;
  steps.push({ op: "addGiven", x, at: DIM });
  const [q, k, v] = [64, 32, 32].map((dim) => sheet.linear(dim)) as [Buf, Buf, Buf];
  const own = sheet.buf(q.dim);
  const shape = { nHeads: 2, nKvHeads: 1, headDim: 32, scale: 0.2 };
  steps.push({ op: "attention", out: own, q, k, v, layer: 0, ...shape, window: 0, softCap: 0, rope: undefined });
  sheet.collect(own);
  const memory = sheet.buf(MEMORY_DIM);
  const remembering: Step[] = [{ op: "input", out: memory }];
  for (const [i, [nHeads, nKvHeads, headDim]] of CROSSING.entries()) {
    const heads = { nHeads, nKvHeads, headDim, layer: 1 + i };
    const [keys, values] = ["k", "v"].map(() => sheet.buf(nKvHeads * headDim)) as [Buf, Buf];
    for (const out of [keys, values])
      remembering.push({ op: "linear", out, x: memory, w: sheet.matrix(MEMORY_DIM, out.dim) });
    remembering.push({ op: "remember", k: keys, v: values, ...heads });
    const out = sheet.buf(nHeads * headDim);
    const query = sheet.linear(out.dim);
    steps.push({ op: "crossAttention", out, q: query, ...heads, scale: 0.3, rows: MEMORY_ROWS });
    sheet.collect(out);
  }
  const kept = sheet.linear(DIM);
  steps.push({ op: "keepRemembering", x: kept });
  sheet.collect(kept);
  return sheet.finish(batches(), { steps: remembering, rows: MEMORY_ROWS });
}

/** Heads, heads of keys, and their size. */
const CROSSING = [
  [4, 2, 32],
  [6, 1, 40],
] as const;

/** Memories of one row, of several blocks, and a newer one; rows without one in company, and given rows. */
function batches(): Sheet["batches"] {
  const [one, most, newer] = [1, MEMORY_ROWS, 23].map(memoryOf) as [Memory, Memory, Memory];
  return [
    [rows(0, 0, 37, { memory: most })],
    [rows(1, 0, 5), rows(2, 0, 3, { memory: one }), rows(3, 0, 6, givenAt([1, 2, 4], 6))],
    [rows(0, 37, 1, { memory: most }), rows(1, 5, 1), rows(2, 3, 1, { memory: one }), rows(3, 6, 1)],
    [rows(0, 38, 4, { memory: newer })],
    [rows(0, 42, 1), rows(1, 6, 1, { memory: newer })],
  ];
}

function memoryOf(count: number): Memory {
  return { id: `memory of ${count}`, rows: randomValues(count * MEMORY_DIM, count) };
}

function rows(slot: number, start: number, count: number, more: Partial<Rows> = {}): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 5 + (start + i) * 7 + 3) % VOCAB);
  return { slot, start, tokens, logits: "all", ...more };
}

/** Vectors for some of `count` rows, twice as wide as embeddings. */
function givenAt(vectorRows: readonly number[], count: number): Partial<Rows> {
  const tokens = Int32Array.from({ length: count }, (_, i) => (vectorRows.includes(i) ? -1 : i));
  return { tokens, vectors: randomValues(vectorRows.length * 2 * DIM, count) };
}

function randomValues(count: number, seed: number): Float32Array {
  const rng = makeRng(seed);
  return Float32Array.from({ length: count }, () => 4 * rng.float() - 2);
}
