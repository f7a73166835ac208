/**
 * Step → dispatches: one entry per op. Pure: what it needs to know of a device, the pieces of a tensor, it is given.
 */
import { AppError } from "../../src/base/errors.ts";
import type { Activation as Act, Buf, Ops, Step, Weight } from "../../src/backend/step.ts";
import type { Activation, Dispatch, Operand, Param, Piece, RowKind } from "./dispatch.ts";

/** Threads of an elementwise workgroup. */
const WG = 64;
/** Columns that a workgroup of the matrix-vector kernels makes. */
const COLUMNS = 4;
/** Rows and columns that a workgroup makes: of the kernel for few rows, and of the one for many. */
const TILES = { linear: { rows: 4, columns: COLUMNS }, matmul: { rows: 32, columns: 64 } };
/** Weights that a dequantizer gives at once. */
const EIGHT = 8;
/** Largest head of the attention kernels: their query lies in workgroup memory, their sums in registers. */
const HEAD_DIM_MAX = 256;

const ACTIVATIONS: Readonly<Record<Act, number>> = { silu: 0, gelu: 1, gelu_erf: 2, relu: 3, relu_sqr: 4 };

export interface LowerOptions {
  /** For runs of many rows: each workgroup takes several. */
  readonly many: boolean;
  readonly ctxLen: number;
  /** The pieces of a tensor, in order. Experts are never split. */
  piecesOf(weight: Weight): readonly Piece[];
}

/** What a lowering of one step works with. */
interface Context extends LowerOptions {
  /** Which rows the buffers hold now. */
  readonly rows: Map<string, RowKind>;
}

type Draft = Omit<Dispatch, "step">;

/** The dispatches of a whole list of steps. Throws `unsupported` for shapes that no kernel takes. */
export function lower(steps: readonly Step[], options: LowerOptions): Dispatch[] {
  const context: Context = { ...options, rows: new Map() };
  return steps.flatMap((step, index) => {
    // TypeScript cannot see that ops[step.op] takes the very step it was indexed by.
    const drafts = (ops[step.op] as (step: Step, context: Context) => Draft[])(step, context);
    return drafts.map((draft) => ({ ...draft, step: index }));
  });
}

const f32 = (value: number): Param => ({ f32: value });
const batch: Operand = { kind: "batch" };
const vector = (weight: Weight | undefined): Operand => ({ kind: "vector", weight });

/** The present value of a buffer. */
function valueOf(buf: Buf, context: Context, times = 1): Activation {
  return { buf, rows: context.rows.get(buf.name) ?? "all", times };
}

const read = (value: Activation): Operand => ({ kind: "activation", value, access: "read" });
const update = (value: Activation): Operand => ({ kind: "activation", value, access: "update" });

/** A new value of a buffer, for the same rows as what it is made from. */
function write(buf: Buf, like: Activation, context: Context, times = like.times): Operand & { value: Activation } {
  context.rows.set(buf.name, like.rows);
  return { kind: "activation", value: { buf, rows: like.rows, times }, access: "write" };
}

/** Workgroups of a kernel with one thread, or with one of eight values, for each value of a row. */
const grid = (value: Activation, perThread = 1): Dispatch["grid"] => ({
  x: Math.ceil(value.buf.dim / perThread / WG),
  rows: value.rows,
  times: value.times,
  rowsEach: 1,
});

const rowBytesOf = ({ quant, inDim }: Weight): number => (inDim / quant.blockLen) * quant.blockBytes;

/** The parts of a matrix, each with its first row inside the piece and inside the matrix. */
function partsOf(weight: Weight, context: Context) {
  return context.piecesOf(weight).flatMap((piece) => {
    const first = Math.max(weight.rowStart, piece.first);
    const end = Math.min(weight.rowStart + weight.outDim, piece.first + piece.count);
    return end > first
      ? [{ piece, first: first - piece.first, column: first - weight.rowStart, count: end - first }]
      : [];
  });
}

/** The same operand for all but the first of several dispatches that write parts of one value. */
const again = (out: Operand & { value: Activation }, i: number): Operand => (i === 0 ? out : update(out.value));

/** y = W · x + b, W with its low-rank changes. */
function matmul(
  { out, x, w, b }: { out: Buf; x: Activation; w: Weight; b?: Weight | undefined },
  context: Context,
): Draft[] {
  const y = write(out, x, context);
  const kernel = context.many ? "matmul" : "linear";
  const tile = TILES[kernel];
  const drafts = partsOf(w, context).map(({ piece, first, column, count }, i): Draft => {
    const matrix: Operand = { kind: "matrix", tensor: w.name, piece: piece.index };
    const shape = [w.inDim, count, first, rowBytesOf(w), column, out.dim];
    const residual = [0, f32(1)];
    return {
      kernel,
      quants: [w.quant.name],
      operands: [read(x), matrix, vector(b), vector(undefined), again(y, i), batch],
      params: [...shape, b ? 1 : 0, f32(w.scale?.[0] ?? 1), ...residual, x.rows === "wanted" ? 1 : 0],
      grid: { x: Math.ceil(count / tile.columns), rows: x.rows, times: x.times, rowsEach: tile.rows },
    };
  });
  const multiply = (part: Weight, from: Activation, to: Buf): Draft[] => matmul({ out: to, x: from, w: part }, context);
  return [...drafts, ...lowRank({ y: y.value, x, w, multiply }, context)];
}

/** y += b · (a · x) for each change of a matrix. */
function lowRank(
  parts: { y: Activation; x: Activation; w: Weight; multiply(w: Weight, from: Activation, to: Buf): Draft[] },
  context: Context,
): Draft[] {
  const { y, x, w, multiply } = parts;
  return (w.lowRank ?? []).flatMap(({ a, b }) => {
    const [inner, change] = [
      { name: "lowRank.inner", dim: a.outDim },
      { name: "lowRank.change", dim: b.outDim },
    ];
    const narrow = multiply(a, x, inner);
    const wide = multiply(b, { ...y, buf: inner }, change);
    return [...narrow, ...wide, add(y, { ...y, buf: change }, { out: y.buf, scale: 1 }, context)];
  });
}

/** out = a + b · scale */
function add(a: Activation, b: Activation, { out, scale }: { out: Buf; scale: number }, context: Context): Draft {
  const operands = [read(a), read(b), write(out, a, context)];
  return { kernel: "add", operands, params: [out.dim, f32(scale)], grid: grid(a) };
}

/** The rows of a table that `by` of a row says, in every piece that may hold them. */
function lookUp(
  kernel: "embed" | "add_position",
  { table, out, scale }: { table: Weight; out: Operand & { value: Activation }; scale: number },
  context: Context,
): Draft[] {
  if (table.lowRank)
    throw new AppError("unsupported", `tensor '${table.name}': the GPU kernels take no adapters of tables`);
  return partsOf(table, context).map(({ piece }, i) => ({
    kernel,
    quants: [table.quant.name],
    operands: [{ kind: "matrix", tensor: table.name, piece: piece.index }, batch, again(out, i)],
    params: [
      table.inDim,
      piece.first,
      piece.count,
      table.rowStart,
      rowBytesOf(table),
      f32(scale * (table.scale?.[0] ?? 1)),
    ],
    grid: grid(out.value, EIGHT),
  }));
}

/** A kernel that changes each value of a buffer for itself. */
function inPlace(
  kernel: Dispatch["kernel"],
  { x, others = [], params }: { x: Activation; others?: readonly Operand[]; params: readonly Param[] },
): Draft[] {
  return [{ kernel, operands: [update(x), ...others], params: [x.buf.dim, ...params], grid: grid(x) }];
}

function checkHeadDim(headDim: number): void {
  if (headDim > HEAD_DIM_MAX)
    throw new AppError("unsupported", `heads of ${headDim} values: the GPU kernels take at most ${HEAD_DIM_MAX}`);
}

/** up = act(gate) ⊙ up */
function gate(gated: Activation, up: Activation, act: Act): Draft {
  const params = [up.buf.dim, ACTIVATIONS[act]];
  return { kernel: "gate", operands: [read(gated), update(up)], params, grid: grid(up) };
}

const ops: Ops<Draft[], Context> = {
  embed({ out, table, scale }, context) {
    return lookUp("embed", { table, out: write(out, { buf: out, rows: "all", times: 1 }, context), scale }, context);
  },

  rmsNorm({ out, x, w, eps }, context) {
    const input = valueOf(x, context);
    return [
      {
        kernel: "rms_norm",
        operands: [read(input), vector(w), write(out, input, context)],
        params: [x.dim, w.inDim, f32(eps)],
        grid: { x: x.dim / w.inDim, rows: input.rows, times: 1, rowsEach: 1 },
      },
    ];
  },

  layerNorm({ out, x, w, b, eps }, context) {
    const input = valueOf(x, context);
    return [
      {
        kernel: "layer_norm",
        operands: [read(input), vector(w), vector(b), write(out, input, context)],
        params: [x.dim, b ? 1 : 0, f32(eps)],
        grid: { x: 1, rows: input.rows, times: 1, rowsEach: 1 },
      },
    ];
  },

  linear({ out, x, w, b }, context) {
    return matmul({ out, x: valueOf(x, context), w, b }, context);
  },

  rope({ x, heads, headDim, rope }, context) {
    const value = valueOf(x, context);
    const pairs = rope.rotaryDim / 2;
    const [step, apart] = rope.style === "norm" ? [2, 1] : [1, pairs];
    return [
      {
        kernel: "rope",
        operands: [update(value), { kind: "rope", rope, part: "cos" }, { kind: "rope", rope, part: "sin" }, batch],
        params: [x.dim, heads, headDim, pairs, step, apart],
        grid: { ...grid(value), x: Math.ceil((heads * pairs) / WG) },
      },
    ];
  },

  attention({ out, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window, softCap }, context) {
    checkHeadDim(headDim);
    const query = valueOf(q, context);
    const cache = (part: "keys" | "values"): Operand => ({ kind: "cache", layer, part });
    return [
      {
        kernel: "store_kv",
        operands: [read(valueOf(k, context)), read(valueOf(v, context)), cache("keys"), cache("values"), batch],
        params: [k.dim, context.ctxLen],
        grid: grid(valueOf(k, context)),
      },
      {
        kernel: "attention",
        operands: [read(query), cache("keys"), cache("values"), batch, write(out, query, context)],
        params: [nHeads, nKvHeads, headDim, context.ctxLen, window, f32(scale), f32(softCap)],
        grid: { ...grid(query), x: nHeads },
      },
    ];
  },

  bidirectionalAttention({ out, q, k, v, nHeads, headDim, scale }, context) {
    checkHeadDim(headDim);
    const query = valueOf(q, context);
    return [
      {
        kernel: "bidirectional_attention",
        operands: [
          read(query),
          read(valueOf(k, context)),
          read(valueOf(v, context)),
          batch,
          write(out, query, context),
        ],
        params: [nHeads, headDim, f32(scale)],
        grid: { ...grid(query), x: nHeads },
      },
    ];
  },

  mlp({ out, x, act, up, upB, down, downB }, context) {
    const inner = { name: "mlp.inner", dim: up.outDim };
    const first = matmul({ out: inner, x: valueOf(x, context), w: up, b: upB }, context);
    const activated = valueOf(inner, context);
    return [
      ...first,
      ...inPlace("activate", { x: activated, params: [ACTIVATIONS[act]] }),
      ...matmul({ out, x: activated, w: down, b: downB }, context),
    ];
  },

  gatedMlp({ out, x, act, ...w }, context) {
    const input = valueOf(x, context);
    const gated = { name: "gatedMlp.gate", dim: w.gate.outDim };
    const up = { name: "gatedMlp.up", dim: w.up.outDim };
    return [
      ...matmul({ out: gated, x: input, w: w.gate, b: w.gateB }, context),
      ...matmul({ out: up, x: input, w: w.up, b: w.upB }, context),
      gate(valueOf(gated, context), valueOf(up, context), act),
      ...matmul({ out, x: valueOf(up, context), w: w.down, b: w.downB }, context),
    ];
  },

  moe(step, context) {
    const { out, x, router, act, nUsed } = step;
    const input = valueOf(x, context);
    const logits = { name: "moe.router", dim: router.outDim };
    const routed = matmul({ out: logits, x: input, w: router }, context);
    const ids = write({ name: "moe.ids", dim: nUsed }, input, context);
    const shares = write({ name: "moe.shares", dim: nUsed }, input, context);
    const inner = (name: string, dim: number) => write({ name, dim }, input, context, nUsed);
    const [gated, up] = [inner("moe.gate", step.gate.outDim), inner("moe.up", step.up.outDim)];
    const down = inner("moe.down", step.down.outDim);
    const experts = (y: typeof up, x: Activation, w: Weight) => expertMatmul({ y, x, w, ids: ids.value }, context);
    return [
      ...routed,
      {
        kernel: "moe_route",
        operands: [read(valueOf(logits, context)), ids, shares],
        params: [router.outDim, nUsed, step.normalize ? 1 : 0, f32(step.scale)],
        grid: { x: 1, rows: input.rows, times: 1, rowsEach: 1 },
      },
      ...experts(gated, input, step.gate),
      ...experts(up, input, step.up),
      gate(gated.value, up.value, act),
      ...experts(down, up.value, step.down),
      {
        kernel: "moe_sum",
        operands: [read(down.value), read(shares.value), write(out, input, context)],
        params: [out.dim, nUsed],
        grid: { ...grid(input), x: Math.ceil(out.dim / WG) },
      },
    ];
  },

  add({ out, a, b, scale }, context) {
    return [add(valueOf(a, context), valueOf(b, context), { out, scale }, context)];
  },

  positionScale({ x, coef, floorScale, offset }, context) {
    return inPlace("position_scale", {
      x: valueOf(x, context),
      others: [batch],
      params: [f32(coef), f32(floorScale), f32(offset)],
    });
  },

  addPosition({ x, table }, context) {
    const value = valueOf(x, context);
    return lookUp("add_position", { table, out: { kind: "activation", value, access: "update" }, scale: 1 }, context);
  },

  addVector({ x, w }, context) {
    return inPlace("add_vector", { x: valueOf(x, context), others: [vector(w)], params: [] });
  },

  takeRows({ out, x }, context) {
    const taken: Activation = { buf: out, rows: "wanted", times: 1 };
    return [
      {
        kernel: "take_rows",
        operands: [read(valueOf(x, context)), batch, write(out, taken, context)],
        params: [x.dim],
        grid: grid(taken),
      },
    ];
  },

  softCap({ x, cap }, context) {
    return inPlace("soft_cap", { x: valueOf(x, context), params: [f32(cap)] });
  },

  scale({ x, by }, context) {
    return inPlace("scale", { x: valueOf(x, context), params: [f32(by)] });
  },
};

/** y[i] = W[ids[i]] · x[i], where every row of x has `nUsed` choices, or is itself one. */
function expertMatmul(
  { y, x, w, ids }: { y: Operand & { value: Activation }; x: Activation; w: Weight; ids: Activation },
  context: Context,
): Draft[] {
  const drafts = context.piecesOf(w).map((piece, i): Draft => ({
    kernel: "moe_linear",
    quants: [w.quant.name],
    operands: [
      read(x),
      { kind: "matrix", tensor: w.name, piece: piece.index },
      read(ids),
      { kind: "constant", values: w.scale },
      again(y, i),
    ],
    params: [
      w.inDim,
      w.outDim,
      piece.first / w.tensorRows,
      piece.count / w.tensorRows,
      w.tensorRows,
      w.rowStart,
      rowBytesOf(w),
      y.value.times / x.times,
      w.scale ? 1 : 0,
    ],
    grid: { x: Math.ceil(w.outDim / COLUMNS), rows: x.rows, times: y.value.times, rowsEach: 1 },
  }));
  const multiply = (part: Weight, from: Activation, to: Buf): Draft[] =>
    expertMatmul({ y: write(to, y.value, context), x: from, w: part, ids }, context);
  return [...drafts, ...lowRank({ y: y.value, x, w, multiply }, context)];
}
