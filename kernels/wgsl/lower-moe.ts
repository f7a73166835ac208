/**
 * A mixture of experts → dispatches: the router, the choice, the products of the chosen experts. For few rows gate and
 * up are one dispatch, and down with the sum over experts another. For many, each product reads an expert's weights
 * once for all rows that chose it.
 */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import { AppError } from "../../src/base/index.ts";
import type { Buf, Step, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Operand } from "./dispatch.ts";
import {
  ACTIVATIONS,
  again,
  batch,
  gate,
  gatingParams,
  grid,
  NONE,
  read,
  update,
  valueOf,
  vector,
  WG,
  write,
  type Context,
  type StepDispatch,
} from "./lowering.ts";
import { factorOf, lowRank, matmul } from "./lower-matmul.ts";
import { expertParams, expertsOf, matrixOf, stackLinear, stackSum } from "./lower-stacks.ts";

/** Maximum outputs of a router, and groups of them: they are in workgroup memory. */
const OUTPUTS_MAX = 512;
const GROUPS_MAX = 128;
/** Storage buffers of moe_gated. */
const GATED_BUFFERS = 9;
/** Choices per workgroup of moe_matmul, see moe_group. */
const TILE_ROWS = 32;

type StepOf<Op> = Extract<Step, { op: Op }>;
type Moe = StepOf<"moe">;
type Written = Operand & { value: Activation };

/** As in moe_route.wgsl. */
const SCORES = { softmax: 0, sigmoid: 1, softmax_chosen: 2, sqrt_softplus: 3 } as const;

/** The input of the experts and their choice. */
interface Routed {
  readonly input: Activation;
  readonly choices: Activation;
}

export function lowerMoe(step: Moe, context: Context): StepDispatch[] {
  const input = valueOf(step.x, context);
  const logits = { name: "moe.router", dim: step.router.outDim };
  const from = valueOf(step.routed ?? step.x, context);
  const scored = matmul({ out: logits, x: from, w: step.router, b: step.routerB }, context);
  const choices = write({ name: "moe.choices", dim: 2 * step.nUsed }, input, context);
  const given = step.chosen && read(valueOf(step.chosen, context));
  const chosen = route(step, { logits: valueOf(logits, context), choices, given });
  const gated = context.isGemm ? undefined : fusible(step, context);
  const routed = { input, choices: choices.value };
  return [...scored, chosen, ...(gated ? fused(gated, routed, context) : apart(step, routed, context))];
}

/** The choice of experts and their shares. */
function route(
  step: Moe,
  { logits, choices, given }: { logits: Activation; choices: Written; given: Operand | undefined },
): StepDispatch {
  const { router, selectB, nUsed, normalize, scale, routing } = step;
  const { groups = { count: 0, used: 0 }, perExpert = 1, score = "softmax" } = routing ?? {};
  check("experts", router.outDim, OUTPUTS_MAX);
  check("groups of experts", groups.count, GROUPS_MAX);
  return {
    kernel: "moe_route",
    operands: [read(logits), vector(selectB), choices, given ?? NONE],
    params: {
      outputs: router.outDim,
      used: nUsed,
      score: SCORES[score],
      perExpert,
      groups: groups.count,
      groupsUsed: groups.used,
      hasBias: selectB ? 1 : 0,
      hasGiven: given ? 1 : 0,
      normalize: normalize ? 1 : 0,
      scale,
    },
    grid: { ...grid(logits), x: 1 },
  };
}

function check(what: string, count: number, most: number): void {
  if (count <= most) return;
  throw new AppError("unsupported", `${count} ${what}: the GPU kernels take at most ${most}`);
}

/**
 * The step, if one kernel can compute gate and up: both are cut between the same experts, no weight has low-rank
 * changes, inputs are not weighted, and the device can bind that many buffers.
 */
function fusible(step: Moe, { piecesOf, buffersMax = GATED_BUFFERS }: Context): (Moe & { gate: Weight }) | undefined {
  const { gate: gateW, up, down, routing } = step;
  if (
    !gateW ||
    buffersMax < GATED_BUFFERS ||
    routing?.weighInput ||
    [gateW, up, down].some(({ lowRank: changes }) => changes)
  )
    return undefined;
  const cuts = (w: Weight): string =>
    piecesOf(w)
      .map((piece) => Object.values(expertsOf(piece, w)).join())
      .join(" ");
  return cuts(gateW) === cuts(up) ? { ...step, gate: gateW } : undefined;
}

/** Gate and up at once, then down with the sum. */
function fused(step: Moe & { gate: Weight }, routed: Routed, context: Context): StepDispatch[] {
  const { gate: gateW, up, nUsed } = step;
  const { input, choices } = routed;
  const inner = write({ name: "moe.up", dim: up.outDim }, input, context, nUsed);
  const shared = write({ name: "moe.shared", dim: 1 }, input, context);
  const upPieces = context.piecesOf(up);
  const { vectors, ...offsets } = gatedVectors(step);
  const noMlp = { sharedCount: 0, first3: 0, rowBytes3: 0, first4: 0, rowBytes4: 0 };
  const gated = context.piecesOf(gateW).map((piece, i): StepDispatch => {
    const [w, w2] = [matrixOf(gateW, piece), matrixOf(up, upPieces[i]!)]; // both are cut between the same experts
    return {
      kernel: "moe_gated",
      quants: [gateW, up].map(({ quant }) => quant.name),
      operands: [read(input), w, w2, w, w2, read(choices), vectors, again(inner, i), again(shared, i)],
      params: {
        ...expertParams(gateW, piece),
        count: gateW.outDim,
        expertRowsUp: up.tensorRows,
        rowStartUp: up.rowStart,
        rowBytesUp: rowBytesOf(up),
        used: nUsed,
        ...gatingParams(step),
        allExperts: up.experts,
        hasNorm: 0,
        eps: 0,
        ...offsets,
        ...noMlp,
      },
      grid: { x: Math.ceil(gateW.outDim / context.tuning.columns), rows: input.rows, times: nUsed, rowsEach: 1 },
    };
  });
  return [...gated, ...down(step, { ...routed, inner: inner.value }, context)];
}

/** Factors and biases of gate and up in sequence, and where they begin: one more than the offset, or 0. */
function gatedVectors({ gate: gateW, up, gateB, upB }: Moe & { gate: Weight }) {
  const { experts, outDim } = up;
  const all = (length: number, value: number): Float32Array => new Float32Array(length).fill(value);
  const factors = gateW.scale || up.scale ? [gateW, up].map(({ scale }) => scale ?? all(experts, 1)) : [];
  const biases = gateB || upB ? [gateB, upB].map((b) => b ?? all(experts * outDim, 0)) : [];
  const vectors: Operand = { kind: "vectors", weights: [...factors, ...biases] };
  const hasFactors = factors.length > 0 ? 1 : 0;
  return { vectors, hasFactors, hasBias: biases.length > 0 ? 1 + 2 * experts * hasFactors : 0 };
}

/** The products with the last matrices, and the sum over a row's experts. */
function down(step: Moe, { input, choices, inner }: Routed & { inner: Activation }, context: Context): StepDispatch[] {
  const { down: w, downB: b, nUsed: used, out, routing } = step;
  const y = write(out, input, context);
  return stackSum({ y, x: inner, w, b, choices: read(choices), used, weighs: !routing?.weighInput }, context);
}

/** Each product separately. */
function apart(step: Moe, { input, choices }: Routed, context: Context): StepDispatch[] {
  const { out, nUsed, gate: gateW, gateB, up, upB, down: downW, downB, routing } = step;
  const groups = context.isGemm ? group({ input, choices, nExperts: up.experts }, nUsed, context) : undefined;
  const make = (name: string, dim: number): Written => write({ name, dim }, input, context, nUsed);
  const multiply = (y: Written, x: Activation, w: Weight, b: Weight | undefined): StepDispatch[] =>
    expertMatmul({ y, x, w, b, choices, groups }, context);
  const weighed = routing?.weighInput ? make("moe.weighed", step.x.dim) : undefined;
  const x = weighed?.value ?? input;
  const gated = gateW && make("moe.gate", gateW.outDim);
  const inner = make("moe.up", up.outDim);
  const first: StepDispatch[] = [
    ...(groups ? [groups.lowered] : []),
    ...(weighed ? [weigh(input, choices, weighed)] : []),
    ...(gated ? multiply(gated, x, gateW, gateB) : []),
    ...multiply(inner, x, up, upB),
    ...activated(step, gated?.value, inner.value),
  ];
  if (!context.isGemm && !downW.lowRank)
    return [...first, ...down(step, { input, choices, inner: inner.value }, context)];
  const outward = make("moe.down", downW.outDim);
  const sum: StepDispatch = {
    kernel: "moe_sum",
    operands: [read(outward.value), read(choices), write(out, input, context)],
    params: { dim: out.dim, used: nUsed, weighs: weighed ? 0 : 1 },
    grid: { ...grid(input), x: Math.ceil(out.dim / WG) },
  };
  return [...first, ...multiply(outward, inner.value, downW, downB), sum];
}

/** The input of every choice, times its share. */
function weigh(input: Activation, choices: Activation, out: Written): StepDispatch {
  const params = { dim: input.buf.dim, used: out.value.times };
  return { kernel: "moe_weigh", operands: [read(input), read(choices), out], params, grid: grid(out.value) };
}

/** The activation between the matrices of experts, with a gate or without. */
function activated(step: Moe, gated: Activation | undefined, inner: Activation): StepDispatch[] {
  if (gated) return [gate(gated, inner, step)];
  if (step.act === "swiglu_oai") return []; // needs a gate
  const params = { dim: inner.buf.dim, kind: ACTIVATIONS[step.act] };
  return [{ kernel: "activate", operands: [update(inner)], params, grid: grid(inner) }];
}

/** The choices of a run in the order of their experts. */
interface Groups {
  readonly lowered: StepDispatch;
  readonly order: Activation;
  readonly tiles: Activation;
  readonly nExperts: number;
}

function group(
  { input, choices, nExperts }: { input: Activation; choices: Activation | undefined; nExperts: number },
  nUsed: number,
  context: Context,
): Groups {
  const order = write({ name: "moe.order", dim: nUsed }, input, context);
  // Each tile has at least one choice, so `tiles` has at most one entry per choice; the additional one holds their
  // number.
  const tiles = write({ name: "moe.tiles", dim: 4 * nUsed }, input, context);
  const lowered: StepDispatch = {
    kernel: "moe_group",
    operands: [choices ? read(choices) : NONE, order, tiles, batch],
    params: { experts: nExperts, used: nUsed, wanted: input.rows === "wanted" ? 1 : 0, cyclic: choices ? 0 : 1 },
    grid: { x: 1, rows: input.rows, times: 1, rowsEach: Number.MAX_SAFE_INTEGER },
  };
  return { lowered, order: order.value, tiles: tiles.value, nExperts };
}

/**
 * y[i] = W[e] · x + b[e] for each choice i of an expert e. A row of x serves `times` choices. Without choices, row i
 * uses expert i modulo their number.
 */
function expertMatmul(
  parts: {
    y: Written;
    x: Activation;
    w: Weight;
    b?: Weight | undefined;
    choices: Activation | undefined;
    groups: Groups | undefined;
  },
  context: Context,
): StepDispatch[] {
  const { y, x, w, b, choices, groups } = parts;
  const { times } = y.value;
  const given = factorOf(x, w, context);
  const apart = (): StepDispatch[] => stackLinear({ y, x, w, b, choices: choices ? read(choices) : NONE }, context);
  const grouped = ({ order, tiles, nExperts }: Groups): StepDispatch[] =>
    context.piecesOf(w).map((piece, i) => ({
      kernel: "moe_matmul",
      quants: [w.quant.name],
      operands: [
        read(given.value),
        matrixOf(w, piece),
        read(order),
        read(tiles),
        { kind: "constant", values: w.scale },
        again(y, i),
        vector(b),
      ],
      params: {
        ...expertParams(w, piece),
        count: w.outDim,
        xDiv: times / x.times,
        hasFactors: w.scale ? 1 : 0,
        hasBias: b ? 1 : 0,
      },
      grid: {
        x: Math.ceil(w.outDim / context.tuning.tileColumns),
        rows: x.rows,
        times,
        rowsEach: TILE_ROWS,
        more: nExperts,
      },
    }));
  const lowered = groups ? grouped(groups) : apart();
  const multiply = (part: Weight, from: Activation, to: Buf): StepDispatch[] =>
    expertMatmul({ y: write(to, y.value, context), x: from, w: part, choices, groups }, context);
  return [...given.made, ...lowered, ...lowRank({ y: y.value, x, w, multiply }, context)];
}

/** A matrix for each head: experts that all rows choose, each for its own part of the row. */
export function lowerHeadLinear({ out, x, w, transposed }: StepOf<"headLinear">, context: Context): StepDispatch[] {
  const heads = w.experts;
  const { rows } = valueOf(x, context);
  const parts = ({ name, dim }: Buf): Activation => ({ buf: { name, dim: dim / heads }, rows, times: heads });
  const [input, value] = [parts(x), parts(out)];
  const y = write(value.buf, value, context);
  if (transposed) return transposedHeads({ y, x: input, w }, context);
  const groups = context.isGemm
    ? group({ input: { ...input, times: 1 }, choices: undefined, nExperts: heads }, heads, context)
    : undefined;
  return [
    ...(groups ? [groups.lowered] : []),
    ...expertMatmul({ y, x: input, w, choices: undefined, groups }, context),
  ];
}

export function transposedHeads(
  { y, x, w }: { y: Written; x: Activation; w: Weight },
  context: Context,
): StepDispatch[] {
  if (w.lowRank) throw new AppError("unsupported", `tensor '${w.name}': the GPU kernels take no adapters of heads`);
  return context.piecesOf(w).map((piece, i): StepDispatch => {
    const { first, count } = expertsOf(piece, w);
    const factors: Operand = { kind: "constant", values: w.scale };
    return {
      kernel: "head_transposed",
      quants: [w.quant.name],
      operands: [read(x), matrixOf(w, piece), factors, batch, again(y, i)],
      params: {
        inDim: w.inDim,
        outDim: w.outDim,
        heads: w.experts,
        firstHead: first,
        headRows: w.tensorRows,
        rowStart: w.rowStart,
        rowBytes: rowBytesOf(w),
        hasFactors: w.scale ? 1 : 0,
        wanted: x.rows === "wanted" ? 1 : 0,
      },
      grid: { x: count * Math.ceil(w.inDim / 512), rows: x.rows, times: 1, rowsEach: 4 },
    };
  });
}
