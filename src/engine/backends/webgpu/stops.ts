/** The places of a pass where the device waits for a step that the CPU computes. */
import type { Dispatch, RowKind } from "../../../../kernels/wgsl/dispatch.ts";
import { handedDim } from "../../program/describe.ts";
import type { Step } from "../../program/step.ts";

/** A step that the CPU computes, and its place among the dispatches of a pass. */
export interface Stop {
  readonly step: Step;
  /** The inputs are complete after this many dispatches. */
  readonly handed: number;
  /** The first dispatch that needs the result. */
  readonly returned: number;
  readonly rows: RowKind;
  /** Values per row of the inputs. */
  readonly dim: number;
}

/**
 * The first dispatch from `at` on before which a run may pause. Not between a stop and the dispatch that takes its
 * result: the run of another sequence would use the same buffers.
 */
export const cutFrom = (stops: readonly Stop[], at: number): number =>
  stops.reduce((cut, { handed, returned }) => (handed <= cut && cut <= returned ? returned + 1 : cut), at);

/** The stops of a pass, in order. */
export function stopsOf(dispatches: readonly Dispatch[], steps: readonly Step[]): Stop[] {
  const has = ({ operands }: Dispatch, kind: "handed" | "returned"): boolean =>
    operands.some((operand) => operand.kind === kind);
  return dispatches.flatMap((dispatch, i) => {
    if (!has(dispatch, "handed")) return [];
    const step = steps[dispatch.step]!; // a dispatch names the step that it was lowered from
    const returned = dispatches.findIndex((each) => each.step === dispatch.step && has(each, "returned"));
    return [{ step, handed: i + 1, returned, rows: dispatch.grid.rows as RowKind, dim: handedDim(step) }];
  });
}
