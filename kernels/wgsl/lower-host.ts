/**
 * Steps that the CPU computes in the middle of a program: their inputs are copied to a buffer that it reads, their
 * result comes from a buffer that it writes. Everything else of the program stays on the device.
 */
import { AppError } from "../../src/base/index.ts";
import type { Step } from "../../src/engine/program/step.ts";
import type { Dispatch, Operand } from "./dispatch.ts";
import { grid, read, valueOf, write, type Context, type StepDispatch } from "./lowering.ts";

/** The only op that the CPU may compute. */
type HostStep = Extract<Step, { op: "moe" }>;

/** Two dispatches. Between them the device waits for the CPU. */
export function lowerHostStep({ x, routed, chosen, out }: HostStep, context: Context): StepDispatch[] {
  if (routed && chosen)
    throw new AppError("unsupported", "experts on the CPU: a router of its own, and experts chosen before");
  const input = valueOf(x, context);
  const second = routed ?? chosen;
  const dim = x.dim + (second?.dim ?? 0);
  const shape = { ...grid(input), x: grid({ ...input, buf: { name: "handed", dim } }).x };
  const handed: Operand = { kind: "handed" };
  const hand: StepDispatch = second
    ? {
        kernel: "join",
        operands: [read(input), read(valueOf(second, context)), handed],
        params: { dim, first: x.dim, second: second.dim },
        grid: shape,
      }
    : { kernel: "slice", operands: [read(input), handed], params: copyOf(dim), grid: shape };
  const y = write(out, input, context);
  const take: StepDispatch = {
    kernel: "slice",
    operands: [{ kind: "returned" }, y],
    params: copyOf(out.dim),
    grid: grid(y.value),
  };
  return [hand, take];
}

/** Parameters of a slice that is the whole row. */
const copyOf = (dim: number) => ({ dim, length: dim, part: dim, first: 0 });

/**
 * Moves each dispatch that reads the CPU's result after the following dispatches that do not need it, such as a shared
 * expert's: the device runs these while the CPU computes.
 */
export function delayReturns(list: readonly Dispatch[]): Dispatch[] {
  const out: Dispatch[] = [];
  let late: Dispatch | undefined;
  for (const dispatch of list) {
    if (late && dispatch.operands.some((operand) => isOfResult(operand, late!))) {
      out.push(late);
      late = undefined;
    }
    if (dispatch.operands.some(({ kind }) => kind === "returned")) late = dispatch;
    else out.push(dispatch);
  }
  return late ? [...out, late] : out;
}

/** Returns whether an operand is the value that `take` writes. */
const isOfResult = (operand: Operand, take: Dispatch): boolean =>
  operand.kind === "handed" ||
  (operand.kind === "activation" &&
    take.operands.some((own) => own.kind === "activation" && own.value.buf.name === operand.value.buf.name));
