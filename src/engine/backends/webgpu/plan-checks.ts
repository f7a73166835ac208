/** Refusals of a plan: weights that no kernel reads, and more rows or workgroups than a device takes. */
import { UNIFORM_BATCH } from "../../../../kernels/wgsl/batch.ts";
import { groupsOf, type Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import { DEQUANTIZERS } from "../../../../kernels/wgsl/sources.ts";
import { AppError } from "../../../base/index.ts";
import type { Program } from "../../program/backend.ts";
import { weightsOf } from "../../program/describe.ts";
import { withChanges } from "../../program/low-rank.ts";
import type { Weight } from "../../program/step.ts";
import type { Capacity } from "./allocate.ts";
import { GRID_MAX } from "./record.ts";

export const matricesOf = ({ steps, memory }: Pick<Program, "steps" | "memory">): Weight[] =>
  [...steps, ...(memory?.steps ?? [])]
    .flatMap((step) => weightsOf(step, "matrix", "experts", "router", "embedding", "table"))
    .flatMap(withChanges);

/** Throws `unsupported`, naming the tensor and its type. */
export function checkQuants(program: Program): void {
  const { weights } = program;
  for (const { name, quant } of matricesOf(program)) {
    if (DEQUANTIZERS[quant.name]) continue;
    const known = Object.keys(DEQUANTIZERS).join(", ");
    const text = `${weights.path}: tensor '${name}': the GPU kernels read ${known}, got ${quant.name}`;
    throw new AppError("unsupported", text);
  }
}

/** Throws `unsupported` for too many rows, `too_large` for too many workgroups. */
export function checkGrid(dispatches: readonly Dispatch[], capacity: Capacity, { weights }: Program): void {
  for (const { kernel, grid, operands } of dispatches) {
    const isShort = operands.some((operand) => operand.kind === "batch" && operand.uniform);
    if (isShort && capacity.all > UNIFORM_BATCH.rowsMax) {
      const text = `${weights.path}: ${kernel}: expected at most ${UNIFORM_BATCH.rowsMax} rows at once, got ${capacity.all}`;
      throw new AppError("unsupported", text);
    }
    const groups = groupsOf(grid, capacity);
    if (groups <= GRID_MAX) continue;
    const text = `${weights.path}: ${kernel}: expected at most ${GRID_MAX} workgroups, got ${groups}: shorten the context`;
    throw new AppError("too_large", text);
  }
}
