/** Step → dispatches: one entry per op. Pure: facts on the device, the pieces of a tensor, are parameters. */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import { AppError, PLAIN } from "../../src/base/index.ts";
import type { Variant } from "../../src/engine/program/describe.ts";
import type { Ops, Step, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Dispatch, Operand } from "./dispatch.ts";
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
  lowerAttention,
  lowerBidirectionalAttention,
  lowerLatentAttention,
  lowerSharedAttention,
} from "./lower-attention.ts";
import { matmul, partsOf } from "./lower-matmul.ts";
import { lowerHeadLinear, lowerMoe } from "./lower-moe.ts";
import { inPlace, partOps } from "./lower-parts.ts";
import { recurrentOps } from "./lower-recurrent.ts";

/** More rows than any run has. */
const ROWS_ALL = 2 ** 32 - 1;
/** Weights per call of a dequantizer. */
const EIGHT = 8;

/** The dispatches of a whole list of steps. Throws `unsupported` for shapes that no kernel takes. */
export function lower(steps: readonly Step[], options: LowerOptions): Dispatch[] {
  const context: Context = { tuning: PLAIN, ...options, rows: new Map() };
  return steps.flatMap((step, index) => {
    // TypeScript cannot see that ops[step.op] takes the step it was indexed by.
    const lowered = (ops[step.op] as (step: Step, context: Context) => StepDispatch[])(step, context);
    return lowered.map((lowered) => ({ ...lowered, step: index }));
  });
}

/** Looks up rows of a table by a number of each row, in every piece that may hold them. */
function lookUp(
  kernel: "embed" | "add_position",
  { table, out, scale }: { table: Weight; out: Operand & { value: Activation }; scale: number },
  context: Context,
): StepDispatch[] {
  if (table.lowRank)
    throw new AppError("unsupported", `tensor '${table.name}': the GPU kernels take no adapters of tables`);
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
    },
    grid: grid(out.value, EIGHT),
  }));
}

/** Supported variants, see describe.ts. */
export const variants: ReadonlySet<Variant> = new Set<Variant>([
  "deltaRule: a bound",
  "embed: a second table",
  "attention: sinks",
  "attention: ALiBi",
  "attention: chunks",
  "attention: values of their own size",
  "bidirectionalAttention: ALiBi",
  "bidirectionalAttention: a window",
  "bidirectionalAttention: shared keys",
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
  "limits of a gate",
  "sigmoid or tanh",
]);

export const ops: Ops<StepDispatch[], Context, "unsupported"> = {
  embed({ out, table, scale }, context) {
    return lookUp("embed", { table, out: write(out, { buf: out, rows: "all", times: 1 }, context), scale }, context);
  },

  input({ out }, context) {
    const y = write(out, { buf: out, rows: "all", times: 1 }, context);
    const operands: Operand[] = [{ kind: "input" }, batch, y];
    // a table whose row r is the run's row r
    const params = { dim: out.dim, first: 0, count: ROWS_ALL, rowStart: 0, rowBytes: 4 * out.dim, scale: 1 };
    return [{ kernel: "embed", quants: ["f32"], operands, params, grid: grid(y.value, EIGHT) }];
  },

  ...partOps,

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
        operands: [update(value), { kind: "rope", rope }, batch],
        params: { dim: x.dim, heads, headDim, pairs, step: step!, apart: apart! },
        grid: { ...grid(value), x: Math.ceil((heads * pairs) / WG) },
      },
    ];
  },

  attention: lowerAttention,

  sharedAttention: lowerSharedAttention,

  latentAttention: lowerLatentAttention,

  bidirectionalAttention: lowerBidirectionalAttention,

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

  moe: lowerMoe,

  headLinear: lowerHeadLinear,

  addPosition({ x, table }, context) {
    const value = valueOf(x, context);
    return lookUp("add_position", { table, out: { kind: "activation", value, access: "update" }, scale: 1 }, context);
  },

  addGiven: () => [], // all rows have ids here

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
