/** Facts about models, the pool's settings, and the message that loads a model with them. */
import { availableParallelism } from "node:os";
import { backendTraits } from "../../base/index.ts";
import type { LoadingOptions, LoadMessage, TemplateChoice } from "../../engine/index.ts";
import type { RunnerProcess } from "./runner-process.ts";

/** The files of a loaded model: names with the same files share a runner. */
export type PoolWeights = Pick<LoadMessage, "path" | "adapters" | "projector" | "draft" | "files">;

/** A stored model in the form that the pool needs. */
export interface PoolModel extends PoolWeights {
  /** Name with tag, for messages. */
  readonly name: string;
  readonly digest: string;
  /** Bytes of all files together. */
  readonly weightBytes: number;
  /** The template of the requested name; names that share weights may differ in it. */
  readonly template: TemplateChoice;
  /** Called before a runner starts; throws if the files are unusable. */
  readonly check?: () => Promise<void>;
  /** Adapters that the request names besides the model's own. */
  readonly chosen?: readonly string[];
  /** The adapters of all models over the same base; absent: requests choose none, and the model's own apply to all. */
  readonly offers?: () => Promise<readonly Offer[]>;
}

/** An adapter that a runner loads in addition to its base, for requests that choose it. */
export interface Offer {
  readonly path: string;
  readonly bytes: number;
}

type ForAllModels = "backend" | "cacheDir" | "snapshotBytes" | "gpu" | "gpuKernels" | "simdLevel" | "kvType";

export interface PoolOptions extends Pick<LoadMessage, ForAllModels> {
  /** Default for requests without one; `auto`: depends on memory. */
  readonly ctxLen: number | "auto";
  /** Sequences that a model decodes at once; `auto`: depends on the GPU's memory. */
  readonly numParallel: number | "auto";
  /** undefined: the pool decides. */
  readonly maxLoaded: number | undefined;
  readonly maxQueue: number;
  readonly keepAliveMs: number;
  /** Bytes that all models together may take on the GPU; undefined: all that is free. */
  readonly gpuMemory?: number | undefined;
  /** The longest time without progress while requests wait; undefined or Infinity: no limit. */
  readonly stepTimeoutMs?: number | undefined;
  /** Called for a runner that exceeded it, before that is killed. */
  readonly onHang?: (name: string, pid: number | undefined) => void;
  readonly start: (load: LoadMessage, signal: AbortSignal) => Promise<RunnerProcess>;
  /** Bytes of memory available to a new process. */
  readonly freeBytes: () => number;
}

/** A key that is equal for equal files. */
export const weightsKey = ({ path, projector = "", draft = "", files = [], adapters }: PoolWeights): string =>
  JSON.stringify([path, projector, draft, files, ...adapters]);

export function loadMessage(model: PoolModel, options: LoadingOptions, pool: PoolOptions): LoadMessage {
  const { path, projector, draft, adapters, files = [], template } = model;
  const { backend, gpuMemory, gpu, gpuKernels, simdLevel, kvType, cacheDir, snapshotBytes } = pool;
  const ofModel = { path, projector, draft, adapters, files, template };
  const ofAll = { backend, gpuMemory, gpu, gpuKernels, simdLevel, kvType, cacheDir, snapshotBytes };
  return {
    kind: "load",
    ...ofModel,
    ...ofAll,
    gpuLayers: gpuLayersOf(options, pool),
    ctxLen: options.num_ctx === undefined ? pool.ctxLen : Math.max(4, options.num_ctx),
    slots: pool.numParallel,
    chunk: Math.max(1, options.num_batch ?? 512),
    threads: Math.max(0, Math.min(options.num_thread ?? 0, availableParallelism())), // more would only wait for cores
    precise: false,
  };
}

/** A negative or missing number leaves it open; backends without a GPU have no layers on one. */
function gpuLayersOf({ num_gpu = -1 }: LoadingOptions, { backend }: PoolOptions): number | undefined {
  const mayUseGpu = backend === "auto" || backendTraits(backend).onGpu;
  return num_gpu < 0 || !mayUseGpu ? undefined : num_gpu;
}
