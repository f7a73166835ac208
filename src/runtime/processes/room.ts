/**
 * Memory of loaded models. Mapped weights lie in the file cache, which the system counts as free, so this module
 * subtracts the weights of loaded models. Only ONNX Runtime keeps repacked copies.
 */
import { backendTraits } from "../../base/index.ts";
import type { EngineInfo } from "../../engine/index.ts";

/** Bytes of a runner besides its weights and its KV cache. */
const RUNNER_BYTES = 150 * 2 ** 20;
const REPACKED = 1.5;

interface Resident {
  readonly model: { readonly weightBytes: number };
  readonly load: { readonly cacheMemory?: number | undefined };
  /** Undefined while it loads. */
  readonly info: Pick<EngineInfo, "bytes" | "vramBytes"> | undefined;
}

/** Bytes that a loaded model takes. The KV cache grows with use. */
export const neededBytes = ({ weightBytes }: { readonly weightBytes: number }, backend: string): number =>
  backendTraits(backend).repacks ? REPACKED * weightBytes : weightBytes + RUNNER_BYTES;

/** Free bytes without the loaded models' weights in the file cache. */
export function freeBeside(residents: readonly Resident[], free: number, backend: string): number {
  if (backendTraits(backend).repacks) return free;
  const mapped = residents.map(({ model, info }) => Math.max(0, model.weightBytes - (info?.vramBytes ?? 0)));
  return free - sum(mapped);
}

/** Bytes by which loaded models may still grow: reserved caches get memory only when written. */
export const promisedBytes = (residents: readonly Resident[]): number =>
  sum(residents.map(({ load, info }) => Math.min(info?.bytes.kv ?? 0, load.cacheMemory ?? 0)));

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
