/** The pool's record of a model in memory, or of one that is loading. */
import { assert } from "../../base/index.ts";
import type { LoadingOptions, LoadMessage } from "../../engine/index.ts";
import { weightsKey, type PoolModel } from "./load-message.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { LoadedModel } from "../requests/runtime.ts";

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
  /** Number of messages from the runner when it was last idle; undefined: not idle since its start. */
  receivedIdle: number | undefined;
  /** Ends as soon as its last lease is returned. */
  expiring: boolean;
  /** The reason that it was killed during its work; undefined if it was not. */
  cut: "hang" | "force" | undefined;
  usedAtMs: number;
  /** Models with other adapters that requests have used with this runner, by their adapters. */
  readonly beside: Map<string, Beside>;
}

interface Beside {
  readonly model: PoolModel;
  users: number;
}

/** Counts a request of a model with other adapters than the entry's own; returns a function that ends it. */
export function countBorrower({ model: own, beside }: Entry, model: PoolModel): () => void {
  const key = weightsKey(model);
  if (key === weightsKey(own)) return () => {};
  const joined = beside.get(key) ?? { model, users: 0 };
  beside.set(key, joined);
  joined.users++;
  return () => void joined.users--;
}

/** Returns whether the wanted number of layers is on the GPU, or would be after another load. */
function hasLayers({ load, runner }: Entry, { gpuLayers: wanted }: LoadMessage): boolean {
  if (wanted === undefined || wanted === load.gpuLayers) return true;
  const there = runner?.info.gpuLayers;
  if (there) return Math.min(wanted, there.all) === there.count;
  return runner !== undefined && (wanted === 0 || load.gpuLayers !== 0); // no GPU, or none that the backend can use
}

/** Returns whether a model accepts new requests: neither the model nor its process is about to end. */
export const stays = ({ expiring, runner }: Entry): boolean => !expiring && runner?.alive !== false;

/** Returns whether a loaded model serves a request; load options that the request omits match anything. */
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

/** Sequences that are assumed to decode at once until a runner has chosen their number. */
const SLOTS_LOADING = 4;

/** Sequences that decode at once. */
export const slotsOf = ({ load, runner }: Entry): number =>
  runner?.info.slots ?? (load.slots === "auto" ? SLOTS_LOADING : load.slots);

/** The model of a runner, and the models that use it with other adapters, which need few more bytes. */
export function describe(entry: Entry): LoadedModel[] {
  const { model, runner, beside } = entry;
  assert(runner, `${model.name} is listed before it is loaded`);
  const { bytes, vramBytes, ctxLen, placement } = runner.info;
  const describeOne = (each: PoolModel): LoadedModel => ({
    name: each.name,
    digest: each.digest,
    paths: { model: each.path, adapters: each.adapters, files: each.files ?? [] },
    sizeBytes: bytes.weights + bytes.kv + bytes.scratch,
    vramBytes,
    ...(placement && { placement }),
    ...(runner.streamed && { streamed: runner.streamed }),
    ctxLen,
    expiresAt: new Date(entry.expiresAtMs),
    pid: runner.pid,
  });
  const others = [...beside.values()].map((other) => describeOne(other.model));
  return [describeOne(model), ...others.map((other) => ({ ...other, sizeBytes: 0, vramBytes: 0, isBeside: true }))];
}
