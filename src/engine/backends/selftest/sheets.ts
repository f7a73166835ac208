/**
 * The computations that a kernel library does before it is trusted: every op, and products of every block type, for one
 * row, a few and many. A test names each missing op.
 */
import { quants, type QuantName } from "../../formats/quant/index.ts";
import type { Rows } from "../../program/backend.ts";
import type { Activation, Buf, Step } from "../../program/step.ts";
import { given } from "./given-sheet.ts";
import { CTX_LEN, rope, SheetBuilder, SLOTS, VOCAB, type Sheet } from "./sheet.ts";

/** Rows of a matrix: a panel of the widest level, and part of a second one. */
const OUT_DIM = 40;
/** A row has three blocks of the widest types: some kernels take two at once. */
const IN_DIM = 768;
/** Weights of a row that is added: one block of the widest types. */
const ROW_DIM = 256;
type Attention = Extract<Step, { op: "attention" }>;
type Heads = Pick<Attention, "nHeads" | "nKvHeads" | "headDim"> & Partial<Attention>;
/** Heads of attention. */
const HEADS = { nHeads: 4, nKvHeads: 2, headDim: 32 };
const ONE_HEAD = { nHeads: 1, nKvHeads: 1, headDim: 16 };
const ACTS: readonly Activation[] = [
  "silu",
  "gelu",
  "gelu_erf",
  "relu",
  "relu_sqr",
  "sigmoid",
  "tanh",
  "softplus",
  "elu",
];

export const makeSheets = (): Sheet[] => [products(), small(), mixers(), experts(), parts(), encoder(), given()];

/** Numbers of sequences in a decode step: products have other kernels for each. */
const EACH_COUNT = [1, 2, 3, 4, 5, 6, 7, SLOTS];
const FEW_COUNTS = [1, 3, SLOTS];

/** Prompts of many rows and of few, then decode steps of this many sequences each. */
function mixedBatches(counts: readonly number[] = FEW_COUNTS): Sheet["batches"] {
  const lengths = new Int32Array(SLOTS);
  const next = (slot: number, count: number): Rows => {
    const start = lengths[slot]!;
    lengths[slot] = start + count;
    const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 5 + (start + i) * 7 + 3) % VOCAB);
    return { slot, start, tokens, logits: "all" };
  };
  return [
    [next(0, 37)],
    Array.from({ length: SLOTS - 1 }, (_, i) => next(i + 1, 3)),
    ...counts.map((count) => Array.from({ length: count }, (_, slot) => next(slot, 1))),
  ];
}

/** A product of every block type, and a sum of rows of every type. */
function products(): Sheet {
  const sheet = new SheetBuilder("products", IN_DIM);
  attend(sheet);
  const sum = sheet.buf(ROW_DIM);
  sheet.steps.push({ op: "slice", out: sum, x: sheet.x, heads: 1, at: 0 });
  for (const quant of Object.keys(quants) as QuantName[]) {
    sheet.collect(sheet.linear(OUT_DIM, { quant }));
    sheet.steps.push({ op: "addPosition", x: sum, table: sheet.matrix(ROW_DIM, CTX_LEN, { quant }) });
  }
  sheet.collect(sum);
  return sheet.finish(mixedBatches(EACH_COUNT));
}

/** Rank of low-rank changes. */
const RANK = 4;

/** Products that only small models have, where all types but one are unpacked to float32, and low-rank changes. */
function small(): Sheet {
  const dim = 256;
  const sheet = new SheetBuilder("small", dim);
  attend(sheet);
  for (const quant of ["q8_0", "q4_K"] as const) sheet.collect(sheet.linear(OUT_DIM, { quant }));
  for (const quant of ["f16", "f32"] as const) {
    const lowRank = [{ a: sheet.matrix(dim, RANK, { quant }), b: sheet.matrix(RANK, OUT_DIM, { quant }) }];
    const out = sheet.buf(OUT_DIM);
    sheet.steps.push({ op: "linear", out, x: sheet.x, w: { ...sheet.matrix(dim, OUT_DIM), lowRank } });
    sheet.collect(out);
  }
  return sheet.finish(mixedBatches());
}

/** Steps that read other rows of their sequence. */
function mixers(): Sheet {
  const sheet = new SheetBuilder("mixers", 64);
  const { steps } = sheet;
  const variants: readonly Heads[] = [
    HEADS,
    { nHeads: 8, nKvHeads: 1, headDim: 32, window: 9, softCap: 20 },
    { nHeads: 3, nKvHeads: 3, headDim: 64, sinks: sheet.vector(3, 1) },
    { nHeads: 8, nKvHeads: 2, headDim: 48, alibi: 8 },
    { nHeads: 6, nKvHeads: 2, headDim: 32, window: 8, chunked: true },
  ];
  for (const [layer, heads] of variants.entries()) attend(sheet, layer, heads);
  const layer = variants.length;
  const again = sheet.buf(HEADS.nHeads * HEADS.headDim);
  const q = sheet.linear(again.dim);
  steps.push({ op: "sharedAttention", out: again, q, layer, source: 0, ...HEADS, scale: 0.3, window: 0, softCap: 0 });
  sheet.collect(again);
  latent(sheet, layer + 1);
  recurrent(sheet, layer + 2);
  choose(sheet, layer + 7);
  remember(sheet, layer + 11);
  compress(sheet, layer + 14);
  return sheet.finish(mixedBatches());
}

/** Without attention no row counts as a decode row, and decode rows use other kernels than prompts. */
function attend(sheet: SheetBuilder, layer = 0, { nHeads, nKvHeads, headDim, ...more }: Heads = ONE_HEAD): void {
  const [q, k, v] = [nHeads, nKvHeads, nKvHeads].map((heads) => sheet.linear(heads * headDim)) as [Buf, Buf, Buf];
  const turn = { ...rope, style: layer % 2 === 0 ? "norm" : "neox" } as const;
  for (const each of [q, k]) {
    sheet.steps.push({ op: "rmsNorm", out: each, x: each, w: sheet.vector(headDim, 1), eps: 1e-5 });
    sheet.steps.push({ op: "rope", x: each, heads: each.dim / headDim, headDim, rope: turn });
  }
  const out = sheet.buf(nHeads * headDim);
  const shape = { layer, nHeads, nKvHeads, headDim, scale: 0.2, window: 0, softCap: 0, ...more };
  sheet.steps.push({ op: "attention", out, q, k, v, rope: turn, ...shape });
  sheet.collect(out);
}

/** Attention to chosen positions: by a sum of all heads of an indexer, and by one for each KV head. */
function choose(sheet: SheetBuilder, layer: number): void {
  const headDim = 16;
  for (const [i, isSum] of [true, false].entries()) {
    const [heads, count, block] = isSum ? [9, 12, 1] : [HEADS.nKvHeads, 3, 4];
    const [q, k] = [sheet.linear(heads * headDim), sheet.linear(headDim)];
    const out = sheet.buf(isSum ? count : heads * count);
    const weights = isSum ? { weights: sheet.linear(heads) } : {};
    const at = { layer: layer + 2 * i, cache: layer + 2 * i + 1, rope: undefined };
    const sizes = { heads, headDim, count, block, local: isSum ? 0 : 1 };
    sheet.steps.push({ op: "choosePositions", out, q, k, ...weights, ...at, ...sizes });
    const choice = { chosen: out, chosenBlock: block };
    if (isSum) latent(sheet, at.layer, choice);
    else attend(sheet, at.layer, { ...HEADS, ...choice });
  }
}

function latent(sheet: SheetBuilder, layer: number, choice: Pick<Attention, "chosen" | "chosenBlock"> = {}): void {
  const [nHeads, headDim, valueDim] = [HEADS.nHeads, 24, 16];
  const turn = { ...rope, rotaryDim: 8 };
  const [q, k] = [sheet.linear(nHeads * headDim), sheet.linear(headDim)];
  const out = sheet.buf(nHeads * valueDim);
  sheet.steps.push(
    { op: "rope", x: q, heads: nHeads, headDim, rope: turn },
    { op: "rope", x: k, heads: 1, headDim, rope: turn },
    { op: "latentAttention", out, q, k, layer, nHeads, headDim, valueDim, scale: 0.4, rope: turn, ...choice },
  );
  sheet.collect(out);
}

/** Steps that keep a state in place of keys and values. */
function recurrent(sheet: SheetBuilder, layer: number): void {
  const { x, steps } = sheet;
  const conv = sheet.buf(x.dim);
  const w = sheet.matrix(4, x.dim, { size: 0.5 });
  steps.push({ op: "causalConv", out: conv, x, w, b: sheet.vector(x.dim), act: "silu", layer });
  sheet.collect(conv);
  for (const [i, bound] of [undefined, -2].entries()) {
    const [nHeads, nKeyHeads, headDim] = [4, 2, 16];
    const width = bound === undefined ? nHeads : nHeads * headDim; // bounded decays are per channel
    const [q, k, v] = [nKeyHeads, nKeyHeads, nHeads].map((heads) => sheet.linear(heads * headDim)) as [Buf, Buf, Buf];
    const [alpha, beta] = [sheet.linear(width), sheet.linear(nHeads)];
    for (const each of [q, k]) steps.push({ op: "l2Norm", out: each, x: each, run: headDim, eps: 1e-6 });
    const [a, dt] = [sheet.vector(nHeads, -0.3, 0.1), sheet.vector(width, 0.2)];
    const out = sheet.buf(nHeads * headDim);
    const heads = i === 0 ? "modulo" : "repeat";
    const shape = {
      layer: layer + 1 + i,
      nHeads,
      nKeyHeads,
      headDim,
      heads,
      scale: 1.7,
      ...(bound && { bound }),
    } as const;
    steps.push({ op: "deltaRule", out, q, k, v, alpha, beta, a, dt, ...shape });
    sheet.collect(out);
  }
  for (const [i, decays] of [1, 8].entries()) {
    const [nHeads, headDim, stateDim, nGroups] = decays === 1 ? [4, 8, 16, 2] : [20, 1, decays, 1];
    const [values, dt] = [sheet.linear(nHeads * headDim), sheet.linear(nHeads)];
    const [b, c] = [sheet.linear(nGroups * stateDim), sheet.linear(nGroups * stateDim)];
    const a = { ...sheet.vector(nHeads * decays, -0.6, 0.1), inDim: decays, outDim: nHeads, tensorRows: nHeads };
    const weights = { dtB: sheet.vector(nHeads), a, d: sheet.vector(nHeads, 1) };
    const out = sheet.buf(nHeads * headDim);
    const shape = { layer: layer + 3 + i, nHeads, headDim, stateDim, nGroups };
    steps.push({ op: "selectiveScan", out, x: values, dt, b, c, ...weights, ...shape });
    sheet.collect(out);
  }
}

/** The steps of RWKV 6 and 7. */
function remember(sheet: SheetBuilder, layer: number): void {
  const [nHeads, headDim] = [4, 16];
  const previous = sheet.buf(sheet.x.dim);
  sheet.steps.push({ op: "previousRow", out: previous, x: sheet.x, layer });
  sheet.collect(previous);
  for (const [i, nKeyHeads] of [2, 4].entries()) {
    const dims = [nHeads, nHeads, nKeyHeads, nKeyHeads, nHeads, nHeads].map((heads) => heads * headDim);
    const [r, w, k, v, a, b] = dims.map((dim) => sheet.linear(dim)) as [Buf, Buf, Buf, Buf, Buf, Buf]; // one per dim
    sheet.steps.push({ op: "l2Norm", out: a, x: a, run: headDim, eps: 1e-6 }); // else states grow
    sheet.steps.push({ op: "multiply", out: b, a, b, act: "sigmoid" });
    const out = sheet.buf(nHeads * headDim);
    const more = i === 0 ? { early: true, complement: true } : { a, b, bound: -0.6 };
    sheet.steps.push({ op: "wkv", out, r, w, k, v, layer: layer + 1 + i, nHeads, nKeyHeads, headDim, ...more });
    sheet.collect(out);
  }
}

/** Attention to a window and to entries of blocks: to all entries, and to chosen ones. */
function compress(sheet: SheetBuilder, layer: number): void {
  const { steps } = sheet;
  const [nHeads, headDim, ratio] = [HEADS.nHeads, 32, 4];
  const turn = (x: Buf): Step => ({
    op: "rope",
    x,
    heads: x.dim / headDim,
    headDim,
    rope,
    at: headDim - rope.rotaryDim,
  });
  const entriesOf = (overlap: boolean, at: number): Buf => {
    const out = sheet.buf(headDim);
    const width = overlap ? 2 * headDim : headDim;
    const parts = { x: sheet.linear(width), gate: sheet.linear(width), bias: sheet.matrix(width, ratio) };
    steps.push({ op: "compress", out, ...parts, layer: at, ratio, overlap });
    return out;
  };
  for (const [i, isChosen] of [false, true].entries()) {
    const at = layer + 2 * i;
    const [q, k, entries] = [sheet.linear(nHeads * headDim), sheet.linear(headDim), entriesOf(isChosen, at)];
    steps.push(turn(q), turn(k));
    const chosen = sheet.buf(3);
    if (isChosen) {
      const [query, key, weights] = [sheet.linear(9 * headDim), entriesOf(true, at), sheet.linear(9)];
      const sizes = { heads: 9, headDim, count: chosen.dim, block: ratio, local: 0, rope: undefined };
      const op = { op: "choosePositions", closed: true, layer: at, cache: at + 1, ...sizes } as const;
      steps.push({ ...op, out: chosen, q: query, k: key, weights });
    }
    const out = sheet.buf(nHeads * headDim);
    const shape = { layer: at, nHeads, headDim, scale: 0.2, window: 7, ratio, sinks: sheet.vector(nHeads, 1) };
    steps.push({ op: "compressedAttention", out, q, k, entries, ...shape, ...(isChosen && { chosen }) });
    sheet.collect(out);
  }
}

/** Mixtures of experts and MLPs, and how they are gated. */
function experts(): Sheet {
  const sheet = new SheetBuilder("experts", 256);
  const { x, steps } = sheet;
  attend(sheet);
  const [count, ffnDim] = [4, 64];
  type Moe = Extract<Step, { op: "moe" }>;
  const stack = (inDim: number, outDim: number, quant: QuantName) =>
    sheet.matrix(inDim, outDim, { quant, experts: count });
  const bias = (dim: number) => sheet.matrix(dim, 1, { experts: count, size: 0.3 });
  const add = (quant: QuantName, more: Partial<Moe> & Pick<Moe, "act" | "normalize">): void => {
    const out = sheet.buf(x.dim);
    const [gate, up] = [stack(x.dim, ffnDim, quant), stack(x.dim, ffnDim, quant)];
    const weights = { router: sheet.matrix(x.dim, count), gate, up, down: stack(ffnDim, x.dim, "q8_0") };
    steps.push({ op: "moe", out, x, ...weights, nUsed: 2, scale: 1.5, ...more });
    sheet.collect(out);
  };
  add("q4_K", { act: "silu", normalize: true });
  add("q4_0", {
    act: "gelu",
    normalize: true,
    routing: { score: "sigmoid", groups: { count: 2, used: 1 } },
    selectB: sheet.vector(count),
  });
  add("mxfp4", {
    act: "swiglu_oai",
    normalize: false,
    routing: { score: "softmax_chosen" },
    routerB: sheet.vector(count),
    gateB: bias(ffnDim),
    upB: bias(ffnDim),
    downB: bias(x.dim),
  });
  add("f16", { act: "relu_sqr", normalize: false, routing: { score: "sigmoid", weighInput: true } });
  const chosen = sheet.buf(2);
  steps.push({
    op: "lookup",
    out: chosen,
    values: Float32Array.from({ length: VOCAB * 2 }, (_, i) => (i * 7) % count),
  });
  add("q8_0", { act: "silu", normalize: true, routing: { score: "sqrt_softplus" }, chosen });
  const gated = sheet.buf(x.dim);
  const limit = { gate: 0.2, up: 0.3 };
  const inward = () => sheet.matrix(x.dim, ffnDim, { quant: "q6_K" });
  const down = () => sheet.matrix(ffnDim, x.dim, { quant: "q8_0" });
  steps.push({ op: "gatedMlp", out: gated, x, gate: inward(), up: inward(), down: down(), act: "silu", limit });
  sheet.collect(gated);
  const plain = sheet.buf(x.dim);
  const [upB, downB] = [sheet.vector(ffnDim), sheet.vector(x.dim)];
  steps.push({ op: "mlp", out: plain, x, up: inward(), upB, down: down(), downB, act: "gelu_erf" });
  sheet.collect(plain);
  return sheet.finish(mixedBatches());
}

/** Elementwise steps and copies. */
function parts(): Sheet {
  const sheet = new SheetBuilder("parts", 96);
  const { x, steps } = sheet;
  const { dim } = x;
  attend(sheet);
  for (const act of ACTS) {
    const [a, b] = [sheet.linear(65), sheet.linear(65)];
    steps.push({ op: "multiply", out: a, a, b, act });
    sheet.collect(a);
    steps.push({ op: "activate", x: b, act });
    sheet.collect(b);
  }
  const change = (make: (y: Buf) => Step): void => {
    const y = sheet.linear(dim);
    steps.push(make(y));
    sheet.collect(y);
  };
  const like = sheet.linear(40);
  change((y) => ({ op: "rmsNorm", out: y, x: y, w: sheet.vector(dim, 1), eps: 1e-5 }));
  change((y) => ({ op: "bareRmsNorm", out: y, x: y, run: 32, eps: 1e-5 }));
  change((y) => ({ op: "layerNorm", out: y, x: y, w: sheet.vector(dim, 1), b: sheet.vector(dim), eps: 1e-5 }));
  change((y) => ({ op: "bareLayerNorm", out: y, x: y, eps: 1e-5 }));
  change((y) => ({ op: "clamp", x: y, min: -0.25, max: 0.75 }));
  change((y) => ({ op: "softCap", x: y, cap: 0.7 }));
  change((y) => ({ op: "scale", x: y, by: 1.3 }));
  change((y) => ({ op: "addVector", x: y, w: sheet.vector(dim) }));
  change((y) => ({ op: "multiplyVector", x: y, w: sheet.vector(dim, 1.5) }));
  change((y) => ({ op: "multiplyVector", x: y, w: sheet.vector(1, 1.5), divide: true }));
  change((y) => ({ op: "matchLength", x: y, like }));
  change((y) => ({ op: "keepLargest", x: y, factor: -0.5 }));
  change((y) => ({ op: "positionScale", x: y, coef: 0.1, floorScale: 8, offset: 1 }));
  const [weights, streams] = [sheet.linear(15), sheet.buf(2 * 32)];
  const vectors = { scale: sheet.vector(3, 1), base: sheet.vector(15) };
  steps.push({ op: "streamWeights", x: weights, ...vectors, streams: 3, eps: 0.01, iterations: 3 });
  steps.push({ op: "mixParts", out: streams, x, weights, at: 6, parts: 3 });
  for (const each of [weights, streams]) sheet.collect(each);
  const slice = sheet.buf(3 * 20);
  steps.push({ op: "slice", out: slice, x, heads: 3, at: 7 });
  sheet.collect(slice);
  for (const transposed of [false, true]) {
    const out = sheet.buf(transposed ? dim : 60);
    const w = sheet.matrix(32, 20, { experts: 3, quant: transposed ? "q8_0" : "f32" });
    steps.push({ op: "headLinear", out, x: transposed ? slice : x, w, transposed });
    sheet.collect(out);
  }
  return sheet.finish(mixedBatches());
}

/** Attention in both directions. */
function encoder(): Sheet {
  const sheet = new SheetBuilder("encoder", 64);
  const { x, steps } = sheet;
  const { nHeads, nKvHeads, headDim } = HEADS;
  const bias = { values: Float32Array.from({ length: nHeads * 15 }, (_, i) => ((7 * i) % 15) / 8 - 1), far: 7 };
  for (const more of [{}, { window: 4 }, { bias }]) {
    const [q, k, v] = [nHeads, nKvHeads, nKvHeads].map((heads) => sheet.linear(heads * headDim)) as [Buf, Buf, Buf];
    const out = sheet.buf(nHeads * headDim);
    steps.push({ op: "bidirectionalAttention", out, q, k, v, ...HEADS, scale: 0.2, ...more });
    sheet.collect(out);
  }
  const conv = sheet.buf(x.dim);
  steps.push({ op: "centeredConv", out: conv, x, w: sheet.matrix(3, x.dim, { size: 0.6 }), b: sheet.vector(x.dim) });
  sheet.collect(conv);
  const tokens = Int32Array.from({ length: 41 }, (_, i) => (7 * i + 3) % VOCAB);
  const both = [tokens, tokens.subarray(0, 5)].map((each, slot) => ({
    slot,
    start: 0,
    tokens: each,
    logits: "all" as const,
  }));
  return sheet.finish([both, both.slice(1)]);
}
