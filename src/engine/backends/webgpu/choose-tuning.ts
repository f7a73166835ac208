/** Chooses a program's kernels: the requested ones, the fastest here, or the plain ones. */
import { AppError, attendsByMatrix, formatTuning, PLAIN, type Tuning } from "../../../base/index.ts";
import { quants, type QuantName } from "../../formats/quant/index.ts";
import type { LoadOptions } from "../../program/backend.ts";
import type { TuningStore } from "../../program/tuning-store.ts";
import type { Weight } from "../../program/step.ts";
import type { Device } from "./device.ts";
import type { ShapeClass } from "./trial.ts";
import { canRun, checkedFor, searchTunings, STAGES, type TuneOptions, type Tunings } from "./tune.ts";
import { readTunings, tuningKey, writeTunings } from "./tunings.ts";

/** Classes of row lengths: each covers lengths up to 1.5 times its own. */
const DIMS = [1024, 4096, 8192];

/**
 * Never less precise than `options` allow. Searches once per device, and stores the result in `tunings`; without that,
 * and on software adapters, there is no search. Throws `unsupported` if the device cannot run the requested kernels.
 */
export async function chooseTuning(
  device: Device,
  shape: ShapeClass | undefined,
  { gpuKernels = "auto", precise, small = false, tunings, signal }: LoadOptions,
): Promise<Tuning> {
  const exact = precise || (small && typeof gpuKernels === "string"); // explicitly requested kernels are used
  let tuning = PLAIN;
  if (typeof gpuKernels !== "string") tuning = checked(device, gpuKernels);
  else if (tunings && shape && !device.facts.software) {
    const found = await tuningsOf(device, shape, { store: tunings, signal });
    tuning = exact || gpuKernels === "exact" ? found.exact : found.fast;
  }
  const isRounded = tuning.packed || tuning.f16 || tuning.matrix || tuning.attention;
  return exact && isRounded ? { ...tuning, packed: false, f16: false, matrix: false, attention: false } : tuning;
}

/**
 * The stored result, or that of a search now, which continues where the last one ended early. A failed search does not
 * prevent a run.
 */
export async function tuningsOf(
  device: Device,
  shape: ShapeClass,
  { store, ...options }: TuneOptions & { store: TuningStore },
): Promise<Tunings> {
  const key = await tuningKey(device, shape);
  const stored = await readTunings(store, key);
  const known = stored && canRun(device, stored.exact) && canRun(device, stored.fast) ? stored : undefined;
  const isChecked = (shape.others ?? []).every((quant) => known?.checked?.includes(quant));
  if (known?.stages === STAGES && isChecked) return known;
  try {
    const searched = known?.stages === STAGES ? known : await searchTunings(device, shape, { ...options, from: known });
    const found = shape.others ? await checkedFor(device, shape, searched) : searched;
    await writeTunings(store, key, found).catch(() => {}); // it is searched again next time
    return found;
  } catch (error) {
    if (error instanceof AppError && error.code === "too_large") return { exact: PLAIN, fast: PLAIN, stages: 0 };
    throw error;
  }
}

/** The kind of matrix with most of a program's bytes, which determines its speed, and the other block types. */
export function shapeOf(matrices: readonly Weight[]): ShapeClass | undefined {
  const bytes = new Map<string, number>();
  let largest: ShapeClass | undefined;
  for (const { quant, inDim, outDim } of matrices) {
    const dim = DIMS.find((each) => inDim <= 1.5 * each) ?? DIMS.at(-1)!; // there is at least one
    const key = `${quant.name} ${dim}`;
    const total = (bytes.get(key) ?? 0) + (outDim * inDim * quant.blockBytes) / quant.blockLen;
    bytes.set(key, total);
    if (total >= Math.max(...bytes.values()) && Object.hasOwn(quants, quant.name))
      largest = { quant: quant.name as QuantName, dim }; // a registered type
  }
  const names = new Set(matrices.map(({ quant }) => quant.name).filter((name) => Object.hasOwn(quants, name)));
  names.delete(largest?.quant ?? "");
  return largest && names.size > 0 ? { ...largest, others: [...names] as QuantName[] } : largest; // registered types
}

function checked(device: Device, tuning: Tuning): Tuning {
  if (canRun(device, tuning)) return tuning;
  const { facts, gpu } = device;
  const { maxComputeInvocationsPerWorkgroup: threads, maxComputeWorkgroupStorageSize: bytes } = facts.limits;
  const noHalves = tuning.attention && !attendsByMatrix(device.matrix);
  const type = noHalves ? " of float16" : "";
  const noMatrix = noHalves || (tuning.matrix && !device.matrix);
  const matrices = noMatrix ? `no subgroup matrices${type} with float32 sums` : undefined;
  const lacks = tuning.f16 && !gpu.features.has("shader-f16") ? "no shader-f16" : matrices;
  const has = lacks ?? `workgroups of ${threads} threads and ${bytes} bytes`;
  throw new AppError("unsupported", `kernels ${formatTuning(tuning)}: GPU '${facts.name}' has ${has}`);
}
