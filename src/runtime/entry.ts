/** A model in memory, or on its way there, as the pool keeps it. */
import { assert } from "../base/index.ts";
import type { LoadingOptions, LoadMessage } from "../engine/index.ts";
import type { PoolModel } from "./load-message.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { LoadedModel } from "./runtime.ts";

export interface Entry {
  readonly model: PoolModel;
  readonly load: LoadMessage;
  readonly starting: Promise<RunnerProcess>;
  readonly abort: AbortController;
  readonly closed: PromiseWithResolvers<void>;
  runner: RunnerProcess | undefined;
  users: number;
  keepAliveMs: number;
  expiresAtMs: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Messages that the runner had sent when it was last idle; undefined: it was not, since it was started. */
  heardIdle: number | undefined;
  /** Ends as soon as its last lease is returned. */
  expiring: boolean;
  /** Why it was ended in the middle of its work; undefined: it was not. */
  cut: "hang" | "force" | undefined;
  usedAtMs: number;
}

/** Whether as many layers are on the GPU as are wanted there, or would be after another load. */
function hasLayers({ load, runner }: Entry, { gpuLayers: wanted }: LoadMessage): boolean {
  if (wanted === undefined || wanted === load.gpuLayers) return true;
  const there = runner?.info.gpuLayers;
  if (there) return Math.min(wanted, there.all) === there.count;
  return runner !== undefined && (wanted === 0 || load.gpuLayers !== 0); // no GPU, or none that can
}

/** Whether new requests may come to a model: it is not about to end, nor its process. */
export const stays = ({ expiring, runner }: Entry): boolean => !expiring && runner?.alive !== false;

/** Whether a loaded model serves a request: load options that the request leaves open match anything. */
export function compatible(entry: Entry, wanted: LoadMessage, options: LoadingOptions): boolean {
  const { load, runner } = entry;
  const trained = runner?.info.ctxLenTrained ?? Infinity;
  const there = load.ctxLen === "auto" ? runner?.info.ctxLen : load.ctxLen;
  const sameCtx =
    wanted.ctxLen !== "auto" && there !== undefined && Math.min(wanted.ctxLen, trained) === Math.min(there, trained);
  return (
    (options.num_ctx === undefined || sameCtx) &&
    hasLayers(entry, wanted) &&
    (options.num_batch === undefined || wanted.chunk === load.chunk) &&
    (options.num_thread === undefined || wanted.threads === load.threads)
  );
}

export function describe(entry: Entry): LoadedModel {
  const { model, runner } = entry;
  assert(runner, `${model.name} is listed before it is loaded`);
  const { bytes, vramBytes, ctxLen } = runner.info;
  return {
    name: model.name,
    digest: model.digest,
    paths: { model: model.path, adapters: model.adapters, files: model.files ?? [] },
    sizeBytes: bytes.weights + bytes.kv + bytes.scratch,
    vramBytes,
    ctxLen,
    expiresAt: new Date(entry.expiresAtMs),
    pid: runner.pid,
  };
}
