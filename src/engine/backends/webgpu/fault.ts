/** Finds the origin of NaN values: runs once more, and checks the output of each dispatch. */
import type { Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import type { KernelName } from "../../../../kernels/wgsl/sources.ts";
import { AppError } from "../../../base/index.ts";
import type { Program } from "../../program/backend.ts";
import { stepName } from "../../program/step-name.ts";
import type { Device } from "./device.ts";
import { replay, splitsIn, type Counts, type Pass, type Recorded } from "./record.ts";
import type { Stop } from "./stops.ts";
import { MAP_READ, USAGE } from "./usage.ts";

/** Kernels that write indexes in place of values, or leave some values unchanged. */
const UNCHECKED: ReadonlySet<KernelName> = new Set(["moe_route", "moe_group", "score_positions", "choose_positions"]);

interface FaultParts {
  readonly device: Device;
  readonly program: Program;
  /** The pass that returned them. */
  readonly pass: Pass;
  /** Counts of the run whose batch is still on the device. */
  readonly counts: Counts;
  /** Computes a step of the CPU again. */
  readonly runStop: (stop: Stop) => Promise<void> | undefined;
}

/** The error that names the first step that wrote NaN or Infinity. Keys and values are restored. */
export async function findFault({ device, program, pass, counts, runStop }: FaultParts): Promise<AppError> {
  const { path } = program.weights;
  for (const [i, recorded] of pass.dispatches.entries()) {
    for (const stop of pass.stops) if (stop.returned === i) await runStop(stop);
    const bad = await firstBad(device, pass, recorded, counts);
    if (!bad) continue;
    const step = pass.steps[recorded.source.step]!; // recorded by the lowering
    const what = `step ${recorded.source.step} (${stepName(step, tensorsOf(recorded.source))})`;
    return new AppError("runner", `${path}: ${what}: expected numbers, got ${bad.value} at ${bad.where}`);
  }
  return new AppError(
    "runner",
    `${path}: results: expected numbers, got NaN or Infinity, but only numbers when run again`,
  );
}

/** Runs a dispatch and checks its output. */
async function firstBad(device: Device, { bufferOf }: Pass, recorded: Recorded, counts: Counts) {
  const { source, splits } = recorded;
  const encoder = device.gpu.createCommandEncoder();
  const pass = encoder.beginComputePass();
  const runs = replay(pass, recorded, counts);
  pass.end();
  if (!runs) return undefined;
  const written = source.operands.find((operand) => operand.kind === "activation" && operand.access !== "read");
  // The result of a row with several splits is incomplete until they are joined, that of one without a memory until
  // it is cleared.
  const isJoined = splits === undefined || splitsIn(recorded, counts) === 1;
  const isWhole = isJoined && !(recorded.ofMemory && counts.forgotten > 0);
  if (written?.kind !== "activation" || UNCHECKED.has(source.kernel) || !isWhole) {
    device.submit(encoder.finish());
    return undefined;
  }
  const { value } = written;
  const { dim } = value.buf;
  const size = 4 * dim * value.times * counts[value.rows];
  const copy = device.gpu.createBuffer({ label: "fault", size, usage: USAGE.mapRead | USAGE.copyDst });
  try {
    encoder.copyBufferToBuffer(bufferOf(written), 0, copy, 0, size);
    device.submit(encoder.finish());
    await device.wait(() => copy.mapAsync(MAP_READ));
    const values = new Float32Array(copy.getMappedRange());
    const at = values.findIndex((each) => !Number.isFinite(each));
    if (at < 0) return undefined;
    return { value: values[at], where: `row ${Math.floor(at / dim)}, value ${at % dim}` };
  } finally {
    copy.destroy();
  }
}

/** The tensors that a dispatch reads; at least one of them contains NaN or Infinity. */
function tensorsOf({ operands }: Dispatch): string[] {
  return operands.flatMap((operand) => {
    if (operand.kind === "matrix") return [operand.tensor];
    if (operand.kind === "vector") return operand.weight ? [operand.weight.name] : [];
    return operand.kind === "vectors" ? operand.weights.flatMap((each) => ("name" in each ? [each.name] : [])) : [];
  });
}
