/** Step → dispatches: one entry per op. Pure: facts about the device and the pieces of a tensor are parameters. */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import { AppError, PLAIN } from "../../src/base/index.ts";
import type { Variant } from "../../src/engine/program/describe.ts";
import type { Ops, RopeScaling, Step, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Dispatch, Operand, Params } from "./dispatch.ts";
import {
  ACTIVATIONS,
  again,
  batch,
  gate,
  grid,
  read,
  update,
  valueOf,
  WG,
  write,
  type Context,
  type StepDispatch,
  type LowerOptions,
} from "./lowering.ts";
import {
  forget,
  lowerAttention,
  lowerBidirectionalAttention,
  lowerCompressedAttention,
  lowerCrossAttention,
  lowerLatentAttention,
  lowerRemember,
  lowerSharedAttention,
} from "./lower-attention.ts";
import { lowerChoosePositions } from "./lower-choose.ts";
import { add, matmul, partsOf } from "./lower-matmul.ts";
import { lowerHeadLinear, lowerMoe, transposedHeads } from "./lower-moe.ts";
import { delayReturns, lowerHostStep } from "./lower-host.ts";
import { inPlace, partOps } from "./lower-parts.ts";
import { recurrentOps } from "./lower-recurrent.ts";

/** More rows than any run has; as a token: none. */
const ROWS_ALL = 2 ** 32 - 1;
const NO_TOKEN = 2 ** 32 - 1;
/** Weights per call of a dequantizer. */
const EIGHT = 8;

/** The dispatches of a whole list of steps. Throws `unsupported` for shapes that no kernel takes. */
export function lower(steps: readonly Step[], options: LowerOptions): Dispatch[] {
  const context: Context = { tuning: PLAIN, ...options, rows: new Map() };
  const dispatches = steps.flatMap((step, index) => {
    // TypeScript cannot see that ops[step.op] takes the step it was indexed by.
    const lowered = (ops[step.op] as (step: Step, context: Context) => StepDispatch[])(step, context);
    return lowered.map((lowered) => ({ ...lowered, step: index }));
  });
  return options.hostSteps ? delayReturns(dispatches) : dispatches;
}

/** Looks up rows of a table by a number of each row, in every piece that may hold them. */
function lookUp(
  kernel: "embed" | "add_position",
  { table, out, scale, more }: { table: Weight; out: Operand & { value: Activation }; scale: number; more?: Params },
  context: Context,
): StepDispatch[] {
  return partsOf(table, context).map(({ piece }, i) => ({
    kernel,
    quants: [table.quant.name],
    operands: [{ kind: "matrix", tensor: table.name, piece: piece.index }, batch, again(out, i)],
    params: {
      dim: table.inDim,
      first: piece.first,
      count: piece.count,
      rowStart: table.rowStart,
      rowBytes: rowBytesOf(table),
      scale: scale * (table.scale?.[0] ?? 1),
      ...more,
    },
    grid: grid(out.value, EIGHT),
  }));
}

/** y += scale · (row of b) · a for each change of a table. Rows given as vectors may get anything. */
function changeRows(
  { y, table, scale, more }: { y: Activation; table: Weight; scale: number; more: Params },
  context: Context,
): StepDispatch[] {
  return (table.lowRank ?? []).flatMap(({ a, b }) => {
    const inner = write({ name: "lowRank.inner", dim: b.inDim }, y, context);
    const looked = lookUp("embed", { table: b, out: inner, scale: 1, more }, context);
    const change = write({ name: "lowRank.change", dim: a.inDim }, y, context);
    const wide = transposedHeads({ y: change, x: inner.value, w: a }, context);
    return [...looked, ...wide, add(y, change.value, { out: y.buf, scale }, context)];
  });
}

/** Writes parts of the rows' given vectors to the value, or adds them; no dispatch if all rows have ids. */
function give(y: Activation, params: { at: number; adds: 0 | 1 }, { givenDim = 0 }: Context): StepDispatch[] {
  if (givenDim === 0) return [];
  return [
    {
      kernel: "give",
      operands: [{ kind: "given" }, batch, update(y)],
      params: { dim: y.buf.dim, givenDim, ...params },
      grid: { ...grid(y), gives: true },
    },
  ];
}

/** The number of pairs that each part of a position rotates; without sections time rotates all. */
function sectionParams({ rotaryDim, sections }: RopeScaling): Params {
  const [time, height, width] = sections?.pairs ?? [rotaryDim / 2, 0, 0];
  return { time, height, width, interleaved: sections?.interleaved ? 1 : 0 };
}

/** Supported variants, see describe.ts. */
export const variants: ReadonlySet<Variant> = new Set<Variant>([
  "adapters by row",
  "deltaRule: a bound",
  "embed: a second table",
  "attention: sinks",
  "attention: ALiBi",
  "attention: a bias by distance",
  "attention: chunks",
  "attention: values of their own size",
  "bidirectionalAttention: ALiBi",
  "bidirectionalAttention: a bias by distance",
  "bidirectionalAttention: a window",
  "bidirectionalAttention: shared keys",
  "bidirectionalAttention: spans",
  "rope: inside a head",
  "choosePositions: closed blocks",
  "rmsNorm: several weights",
  "layerNorm: parts of a row",
  "clamp: uneven limits",
  "gatedMlp: swiglu_oai",
  "moe: no gate",
  "moe: biases",
  "moe: swiglu_oai",
  "moe: a router of its own",
  "moe: routing",
  "moe: several outputs for an expert",
  "moe: sqrt_softplus",
  "moe: experts chosen before",
  "limits of a gate",
  "soft limits of a gate",
  "sigmoid or tanh",
]);

export const ops: Ops<StepDispatch[], Context, "unsupported"> = {
  embed({ out, table, scale, vectorToken }, context) {
    const y = write(out, { buf: out, rows: "all", times: 1 }, context);
    const more = { givenToken: vectorToken ?? NO_TOKEN, byRow: 0 };
    const looked = [
      ...lookUp("embed", { table, out: y, scale, more }, context),
      ...changeRows({ y: y.value, table, scale, more }, context),
    ];
    return vectorToken === undefined ? [...looked, ...give(y.value, { at: 0, adds: 0 }, context)] : looked;
  },

  lookup({ out, values }, context) {
    const y = write(out, { buf: out, rows: "all", times: 1 }, context);
    const operands: Operand[] = [{ kind: "constant", values }, batch, y];
    return [
      { kernel: "lookup", operands, params: { dim: out.dim, tokens: values.length / out.dim }, grid: grid(y.value) },
    ];
  },

  input({ out }, context) {
    const y = write(out, { buf: out, rows: "all", times: 1 }, context);
    const operands: Operand[] = [{ kind: "input" }, batch, y];
    // a table whose row r is the run's row r
    const table = { first: 0, count: ROWS_ALL, rowStart: 0, rowBytes: 4 * out.dim };
    const params = { dim: out.dim, ...table, scale: 1, givenToken: NO_TOKEN, byRow: 1 };
    return [{ kernel: "embed", quants: ["f32"], operands, params, grid: grid(y.value, EIGHT) }];
  },

  ...partOps,

  linear({ out, x, w, b }, context) {
    return matmul({ out, x: valueOf(x, context), w, b }, context);
  },

  rope({ x, heads, headDim, rope, at = 0 }, context) {
    const value = valueOf(x, context);
    const pairs = rope.rotaryDim / 2;
    const [step, apart] = rope.style === "norm" ? [2, 1] : [1, pairs];
    return [
      {
        kernel: "rope",
        operands: [update(value), { kind: "rope", rope }, batch],
        params: { dim: x.dim, heads, headDim, at, pairs, step: step!, apart: apart!, ...sectionParams(rope) },
        grid: { ...grid(value), x: Math.ceil((heads * pairs) / WG) },
      },
    ];
  },

  attention: lowerAttention,

  sharedAttention: lowerSharedAttention,

  latentAttention: lowerLatentAttention,

  compressedAttention: lowerCompressedAttention,

  choosePositions: lowerChoosePositions,

  bidirectionalAttention: lowerBidirectionalAttention,

  crossAttention: lowerCrossAttention,

  remember: lowerRemember,

  keepRemembering: ({ x }, context) => [forget(x, context)],

  mlp({ out, x, act, up, upB, down, downB }, context) {
    const inner = { name: "mlp.inner", dim: up.outDim };
    const first = matmul({ out: inner, x: valueOf(x, context), w: up, b: upB }, context);
    const activated = valueOf(inner, context);
    return [
      ...first,
      ...inPlace("activate", { x: activated, params: { kind: ACTIVATIONS[act] } }),
      ...matmul({ out, x: activated, w: down, b: downB }, context),
    ];
  },

  gatedMlp({ out, x, act, limit, ...w }, context) {
    const input = valueOf(x, context);
    const gated = { name: "gatedMlp.gate", dim: w.gate.outDim };
    const up = { name: "gatedMlp.up", dim: w.up.outDim };
    return [
      ...matmul({ out: gated, x: input, w: w.gate, b: w.gateB }, context),
      ...matmul({ out: up, x: input, w: w.up, b: w.upB }, context),
      gate(valueOf(gated, context), valueOf(up, context), { act, limit }),
      ...matmul({ out, x: valueOf(up, context), w: w.down, b: w.downB }, context),
    ];
  },

  moe: (step, context) => (context.hostSteps?.has(step) ? lowerHostStep(step, context) : lowerMoe(step, context)),

  headLinear: lowerHeadLinear,

  addPosition({ x, table }, context) {
    if (table.lowRank)
      throw new AppError("unsupported", `tensor '${table.name}': the GPU kernels take no adapters of positions`);
    const value = valueOf(x, context);
    return lookUp("add_position", { table, out: { kind: "activation", value, access: "update" }, scale: 1 }, context);
  },

  addGiven: ({ x, at }, context) => give(valueOf(x, context), { at, adds: 1 }, context),

  takeRows({ out, x }, context) {
    const taken: Activation = { buf: out, rows: "wanted", times: 1 };
    return [
      {
        kernel: "take_rows",
        operands: [read(valueOf(x, context)), batch, write(out, taken, context)],
        params: { dim: x.dim },
        grid: grid(taken),
      },
    ];
  },

  ...recurrentOps,
};
