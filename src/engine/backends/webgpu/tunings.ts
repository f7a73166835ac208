/** Stored results of searches for the fastest kernels: their keys and their text form. */
import { kernelSource } from "../../../../kernels/wgsl/sources.ts";
import { formatTuning, parseKernels, PLAIN, type Tuning } from "../../../base/index.ts";
import { quants, type QuantName } from "../../formats/quant/index.ts";
import { utf8Bytes } from "../../text/utf8.ts";
import type { TuningStore } from "../../program/tuning-store.ts";
import type { Device } from "./device.ts";
import type { ShapeClass } from "./trial.ts";
import { STAGES, type Tunings } from "./tune.ts";

/** Identifies device, driver, kernels and kind of matrix. */
export async function tuningKey(device: Device, { quant, dim }: ShapeClass): Promise<string> {
  const { vendor, architecture, device: model, description } = device.gpu.adapterInfo;
  const { subgroups, matrix } = device;
  const changes: Partial<Tuning>[] = [{}, { loads16: true }, { packed: true, f16: true }];
  if (matrix) changes.push({ matrix: true });
  const sources = changes.flatMap((change) => {
    const variant = { subgroups, matrix, tuning: { ...PLAIN, ...change } };
    return (["linear", "matmul", "to_halves"] as const).map((kernel) => kernelSource(kernel, [quant], variant));
  });
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", utf8Bytes(sources.join())));
  const version = digest.toHex().slice(0, 16);
  return [vendor, architecture, model, description, quant, dim, version].join("|");
}

/** undefined: missing or invalid */
export async function readTunings(store: TuningStore, key: string): Promise<Tunings | undefined> {
  const stored = await store.read(key);
  if (typeof stored !== "object" || stored === null) return undefined;
  const { exact, fast, stages, checked, wrong } = stored as Partial<Record<keyof Tunings, unknown>>; // checked next
  const [exactly, fastest] = [exact, fast].map(parseTuning);
  const isCount = typeof stages === "number" && Number.isInteger(stages) && stages >= 0 && stages <= STAGES;
  if (!exactly || !fastest || exactly.packed || !isCount) return undefined;
  const names = Array.isArray(checked) ? checked.filter(isQuantName) : [];
  const texts = Array.isArray(wrong) ? wrong.filter((each) => typeof each === "string") : [];
  return {
    exact: exactly,
    fast: fastest,
    stages,
    ...(names.length > 0 ? { checked: names } : {}),
    ...(texts.length > 0 ? { wrong: texts } : {}),
  };
}

export function writeTunings(store: TuningStore, key: string, { exact, fast, ...others }: Tunings): Promise<void> {
  return store.write(key, { exact: formatTuning(exact), fast: formatTuning(fast), ...others });
}

const isQuantName = (name: unknown): name is QuantName => typeof name === "string" && Object.hasOwn(quants, name);

function parseTuning(text: unknown): Tuning | undefined {
  const choice = typeof text === "string" ? parseKernels(text) : undefined;
  return typeof choice === "object" ? choice : undefined;
}
