/**
 * Cases of cross attention: memories of several lengths, replaced memories, and rows with and without a memory in one
 * run.
 */
import type { Memory, Rows } from "../../src/engine/program/backend.ts";
import type { Buf, Step } from "../../src/engine/program/step.ts";
import { makeRng } from "../../src/engine/text/rng.ts";
import { attention, gatedMlp, linear, makeCase, plainRope, rows, type Case, type Draft } from "./draft.ts";
import { gaussian } from "./weights.ts";

const [DIM, MEMORY_DIM] = [32, 24];

interface Heads {
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
}

/** A memory of `count` random rows. */
export function memoryOf(id: string, count: number, dim = MEMORY_DIM): Memory {
  const rng = makeRng(Bun.hash.crc32(id));
  return { id, rows: Float32Array.from({ length: count * dim }, () => gaussian(rng)) };
}

interface MemoryCase {
  readonly heads: Heads;
  readonly rowsMax: number;
  readonly batches?: Case["batches"];
  /** Layers of cross attention; default: one. */
  readonly layers?: number;
  /** The product after cross attention has a bias, as in Whisper. */
  readonly biased?: boolean;
}

/** Self attention, then gated layers of cross attention with their MLP, as in Llama 3.2 Vision. */
export function memoryCase(name: string, { batches = [], layers = 1, ...options }: MemoryCase): Case {
  const remembering: Step[] = [{ op: "input", out: given }];
  const { program, ...rest } = makeCase(name, { dim: DIM, ctxLen: 48, batches }, (draft) => {
    const { x, steps } = draft;
    add(draft, linear({ ...draft, x: attention(draft, self) }, draft.matrix({ inDim: 64, outDim: DIM })), 1);
    for (let layer = 1; layer <= layers; layer++) {
      remembering.push(...cross(draft, { ...options, layer }));
      const inner = gatedMlp(draft, { dim: DIM, ffnDim: 48, act: "silu" });
      steps.push({ op: "keepRemembering", x: inner });
      add(draft, inner, 0.7);
    }
    return x;
  });
  return { ...rest, program: { ...program, memory: { steps: remembering, rows: options.rowsMax } } };
}

const given = { name: "memory", dim: MEMORY_DIM };
const self = { nHeads: 4, nKvHeads: 2, headDim: 16, rope: plainRope };

const add = ({ x, steps }: Draft, b: Buf, scale: number): void =>
  void steps.push({ op: "add", out: x, a: x, b, scale });

/** Adds cross attention of x to x; returns the steps that remember. */
function cross(
  draft: Draft,
  { heads, rowsMax, biased = false, layer }: Omit<MemoryCase, "layers" | "batches"> & { layer: number },
): Step[] {
  const { nHeads, nKvHeads, headDim } = heads;
  const width = nHeads * headDim;
  const q = linear(
    draft,
    draft.matrix({ inDim: DIM, outDim: width, size: 1.5 / Math.sqrt(DIM) }),
    undefined,
    "q.cross",
  );
  draft.steps.push({ op: "rmsNorm", out: q, x: q, w: draft.vector(headDim, { mean: 1.5 }), eps: 1e-5 });
  const out = { name: "heads.cross", dim: width };
  draft.steps.push({ op: "crossAttention", out, q, layer, ...heads, scale: 1 / Math.sqrt(headDim), rows: rowsMax });
  const bias = biased ? draft.vector(DIM) : undefined;
  add(draft, linear({ ...draft, x: out }, draft.matrix({ inDim: width, outDim: DIM }), bias, "y.cross"), 0.8);
  const [k, v] = ["k.cross", "v.cross"].map((name) => ({ name, dim: nKvHeads * headDim })) as [Buf, Buf];
  const project = (buf: Buf): Step => {
    const w = draft.matrix({ inDim: MEMORY_DIM, outDim: buf.dim, size: 1 / Math.sqrt(MEMORY_DIM) });
    return { op: "linear", out: buf, x: given, w };
  };
  return [
    project(k),
    project(v),
    { op: "rmsNorm", out: k, x: k, w: draft.vector(headDim, { mean: 1.5 }), eps: 1e-5 },
    { op: "remember", k, v, layer, nKvHeads, headDim },
  ];
}

const withMemory = (run: Rows, memory: Memory): Rows => ({ ...run, memory });

/** Prefill before and with a memory, decode in company of rows without one, a newer memory, and none again. */
function companyBatches(counts: readonly [number, number]): Case["batches"] {
  const [first, second] = counts.map((count) => memoryOf(`memory of ${count}`, count)) as [Memory, Memory];
  return [
    [rows(0, 0, 3, "all")],
    [withMemory(rows(0, 3, 4, "all"), first)],
    [rows(1, 0, 5, "none"), withMemory(rows(2, 0, 2, "last"), second)],
    [withMemory(rows(0, 7, 1, "last"), first), rows(1, 5, 1, "last"), withMemory(rows(2, 2, 1, "last"), second)],
    [withMemory(rows(0, 8, 2, "all"), second), withMemory(rows(1, 6, 1, "last"), first)],
    [rows(0, 10, 1, "last")],
    [withMemory(rows(0, 11, 34, "all"), first)],
  ];
}

export const memoryCases = (): Case[] => [
  memoryCase("crossAttention: 4 heads on 2 of 16, memories of 1 and 7 rows", {
    heads: { nHeads: 4, nKvHeads: 2, headDim: 16 },
    rowsMax: 9,
    batches: companyBatches([1, 7]),
  }),
  memoryCase("crossAttention: 6 heads on 1 of 40, memories of 33 and 300 rows", {
    heads: { nHeads: 6, nKvHeads: 1, headDim: 40 },
    rowsMax: 300,
    batches: companyBatches([33, 300]),
  }),
  memoryCase("crossAttention: 2 heads on 2 of 64, memories of 600 and 513 rows", {
    heads: { nHeads: 2, nKvHeads: 2, headDim: 64 },
    rowsMax: 600,
    batches: companyBatches([600, 513]),
  }),
  memoryCase("crossAttention: 3 heads on 3 of 24, with a bias behind", {
    heads: { nHeads: 3, nKvHeads: 3, headDim: 24 },
    rowsMax: 40,
    batches: companyBatches([40, 3]),
    biased: true,
  }),
];
