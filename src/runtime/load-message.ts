/** What the pool knows of models and of its settings, and the message that loads one with the other. */
import { availableParallelism } from "node:os";
import type { KernelChoice, KvCacheType, NamedFile } from "../base/index.ts";
import type { LoadingOptions, LoadMessage, TemplateChoice } from "../engine/index.ts";
import type { RunnerProcess } from "./runner-process.ts";

/** Values of the setting that may come to a GPU. */
const GPU_BACKENDS: ReadonlySet<string> = new Set(["auto", "webgpu"]);
/** The files that make a loaded model: names that share them share a runner. */
export interface PoolWeights {
  readonly path: string;
  /** In the order in which they are laid over the model. */
  readonly adapters: readonly string[];
  /** Makes rows of images; undefined: the model's own file does, where anything does. */
  readonly projector?: string | undefined;
  /** Drafts for it; undefined: nothing does. */
  readonly draft?: string | undefined;
  /** What the model is, where the file at `path` only describes it. */
  readonly files?: readonly NamedFile[];
}

/** What the pool must know of a model in the store. */
export interface PoolModel extends PoolWeights {
  /** Name with tag, for people. */
  readonly name: string;
  readonly digest: string;
  /** Bytes of all its files. */
  readonly weightBytes: number;
  /** Of the name that is asked for; names that share weights may differ in it. */
  readonly template: TemplateChoice;
  /** Called before a runner is started: throws what is wrong with the files. */
  readonly check?: () => Promise<void>;
}

export interface PoolOptions {
  readonly backend: string;
  /** Of models whose requests do not say; `auto`: as there is memory. */
  readonly ctxLen: number | "auto";
  readonly numParallel: number;
  /** undefined: the pool decides. */
  readonly maxLoaded: number | undefined;
  readonly maxQueue: number;
  readonly keepAliveMs: number;
  readonly cacheDir: string | undefined;
  /** Bytes that snapshots of prefixes may take in that folder; undefined or 0: none are kept. */
  readonly snapshotBytes?: number | undefined;
  /** Bytes that models may take on the GPU together; undefined: what there is. */
  readonly gpuMemory?: number | undefined;
  /** Which kernels a GPU runs; undefined: `auto`. */
  readonly gpuKernels?: KernelChoice | undefined;
  /** Level of the SIMD kernels; undefined: the best of this machine. */
  readonly simdLevel?: string | undefined;
  /** How keys and values are kept; undefined: `f16`. */
  readonly kvType?: KvCacheType | undefined;
  /** How long a runner may show no progress while requests wait for it; undefined or Infinity: as long as it likes. */
  readonly stepTimeoutMs?: number | undefined;
  /** Told of a runner that took longer, before it is ended. */
  readonly onHang?: (name: string, pid: number | undefined) => void;
  readonly start: (load: LoadMessage, signal: AbortSignal) => Promise<RunnerProcess>;
  /** Bytes of memory that a new process could use now. */
  readonly freeBytes: () => number;
}

/** Equal where the files are. */
export const weightsKey = ({ path, projector = "", draft = "", files = [], adapters }: PoolWeights): string =>
  JSON.stringify([path, projector, draft, files, ...adapters]);

export function loadMessage(model: PoolModel, options: LoadingOptions, pool: PoolOptions): LoadMessage {
  return {
    kind: "load",
    path: model.path,
    projector: model.projector,
    draft: model.draft,
    adapters: model.adapters,
    files: model.files ?? [],
    template: model.template,
    backend: pool.backend,
    gpuLayers: gpuLayersOf(options, pool),
    gpuMemory: pool.gpuMemory,
    gpuKernels: pool.gpuKernels,
    simdLevel: pool.simdLevel,
    kvType: pool.kvType,
    ctxLen: options.num_ctx === undefined ? pool.ctxLen : Math.max(4, options.num_ctx),
    slots: pool.numParallel,
    chunk: Math.max(1, options.num_batch ?? 512),
    threads: Math.max(0, Math.min(options.num_thread ?? 0, availableParallelism())), // more would only wait for cores
    precise: false,
    cacheDir: pool.cacheDir,
    snapshotBytes: pool.snapshotBytes,
  };
}

/** A negative number, like none, leaves it open; a backend without a GPU has nothing to put there. */
function gpuLayersOf({ num_gpu = -1 }: LoadingOptions, { backend }: PoolOptions): number | undefined {
  return num_gpu < 0 || !GPU_BACKENDS.has(backend) ? undefined : num_gpu;
}
