/** Chooses whether attention of prompts uses subgroup matrices: only if they are correct and faster on the device. */
import { cacheTypeOf, memoryType } from "../../../../kernels/wgsl/cache.ts";
import { matrixKernel } from "../../../../kernels/wgsl/lower-attention.ts";
import { kernelSource } from "../../../../kernels/wgsl/sources.ts";
import { AppError, checkNotCancelled, PLAIN, type Tuning } from "../../../base/index.ts";
import type { LoadOptions } from "../../program/backend.ts";
import type { TuningStore } from "../../program/tuning-store.ts";
import type { Step } from "../../program/step.ts";
import { utf8Bytes } from "../../text/utf8.ts";
import { AttentionTrial, type AttentionShape } from "./attention-trial.ts";
import type { Device } from "./device.ts";
import { canRun } from "./tune.ts";

const MATRICES: Tuning = { ...PLAIN, attention: true };
/** A kernel is kept if it takes less than this share of the other kernel's time. */
const FASTER = 0.97;
const SAMPLES = 3;
const REPEATS = 4;
/** Maximum error, relative to the sum of squares. Float16 leaves about 3e-7. */
const NMSE_MAX = 1e-5;

/** The result of a trial. */
export interface AttentionFound {
  readonly faster: boolean;
  readonly right: boolean;
}

/**
 * `tuning`, with subgroup matrices for attention if they are correct and faster on this device for all heads of the
 * program that can use them. Tries them once per device and heads, and stores the result in `tunings`. Nothing is tried
 * without `tunings`, on software adapters, and for float32.
 */
export async function withAttention(
  device: Device,
  tuning: Tuning,
  { steps, options }: { steps: readonly Step[]; options: LoadOptions },
): Promise<Tuning> {
  const { gpuKernels = "auto", precise, small = false, tunings, signal } = options;
  if (!tunings || gpuKernels !== "auto" || precise || small) return tuning;
  if (device.facts.software || !canRun(device, MATRICES)) return tuning;
  const shapes = attentionShapes(device, steps, options);
  for (const shape of shapes) {
    const { right, faster } = await foundFor(device, shape, { tunings, signal });
    if (!right || !faster) return tuning;
  }
  return shapes.length > 0 ? { ...tuning, attention: true } : tuning;
}

/** The different heads of a program whose attention could run on subgroup matrices. */
function attentionShapes({ matrix }: Device, steps: readonly Step[], options: LoadOptions): AttentionShape[] {
  const cacheType = cacheTypeOf(steps, options);
  const shapes = steps.flatMap((step): [string, AttentionShape][] => {
    if (step.op !== "attention" && step.op !== "crossAttention") return [];
    const { nHeads, nKvHeads, headDim } = step;
    const shape =
      step.op === "attention"
        ? { nHeads, nKvHeads, headDim, valueDim: step.valueDim ?? headDim, cacheType }
        : { nHeads, nKvHeads, headDim, valueDim: headDim, cacheType: memoryType(cacheType, headDim) };
    return matrixKernel(shape, { tuning: MATRICES, matrix }) ? [[Object.values(shape).join(), shape]] : [];
  });
  return [...new Map(shapes).values()];
}

/** The stored result, or that of a trial now. */
async function foundFor(
  device: Device,
  shape: AttentionShape,
  { tunings, signal }: { tunings: TuningStore; signal?: AbortSignal | undefined },
): Promise<AttentionFound> {
  const key = await keyOf(device, shape);
  const stored = await tunings.read(key);
  if (isFound(stored)) return stored;
  try {
    checkNotCancelled(signal);
    const found = await tryMatrices(device, shape);
    await tunings.write(key, { ...found }).catch(() => {}); // it is tried again next time
    return found;
  } catch (error) {
    if (error instanceof AppError && error.code === "too_large") return { right: true, faster: false };
    throw error;
  }
}

/** Compares and times both kernels. Throws `too_large` if there is no room for the trial. */
export async function tryMatrices(device: Device, shape: AttentionShape, rows?: number): Promise<AttentionFound> {
  const trial = await AttentionTrial.make(device, shape, rows);
  try {
    const expected = await trial.results(PLAIN);
    const got = await trial.results(MATRICES);
    const error = expected.reduce((sum, value, i) => sum + (value - got[i]!) ** 2, 0);
    const power = expected.reduce((sum, value) => sum + value ** 2, 0);
    if (!(power > 0 && error <= NMSE_MAX * power)) return { right: false, faster: false }; // also refuses NaN
    const [plainMs, matrixMs] = [await timeOf(trial, PLAIN), await timeOf(trial, MATRICES)];
    return { right: true, faster: matrixMs <= FASTER * plainMs };
  } catch (error) {
    if (error instanceof AppError && error.code === "unsupported") return { right: false, faster: false };
    throw error;
  } finally {
    trial.destroy();
  }
}

async function timeOf(trial: AttentionTrial, tuning: Tuning): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < SAMPLES; i++) least = Math.min(least, await trial.time(tuning, REPEATS));
  return least;
}

/** Identifies device, driver, kernels and heads. */
async function keyOf({ gpu, subgroups, matrix }: Device, shape: AttentionShape): Promise<string> {
  const { vendor, architecture, device: model, description } = gpu.adapterInfo;
  const kernel = matrixKernel(shape, { tuning: MATRICES, matrix })!; // every shape here has one
  const sources = ([kernel, "attention_tile"] as const).map((each) =>
    kernelSource(each, [shape.cacheType], { subgroups, matrix, tuning: MATRICES }),
  );
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", utf8Bytes(sources.join())));
  const version = digest.toHex().slice(0, 16);
  return [vendor, architecture, model, description, "attention", ...Object.values(shape), version].join("|");
}

function isFound(stored: unknown): stored is AttentionFound {
  if (typeof stored !== "object" || stored === null) return false;
  const { faster, right } = stored as Partial<Record<keyof AttentionFound, unknown>>; // checked next
  return typeof faster === "boolean" && typeof right === "boolean";
}
