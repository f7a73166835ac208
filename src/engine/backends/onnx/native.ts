/**
 * Runs a graph through ONNX Runtime's C API. The library reads and writes every input and output in place in our
 * memory; past and present of the KV cache are the same memory, so the cost of a run does not depend on the cache's
 * size.
 */
import { ptr, type Pointer } from "bun:ffi";
import { assert } from "../../../base/index.ts";
import { cString, handleOf, pathString, pointerArray, type Api } from "./api.ts";
import type { Executor, Feed, KvCache, Pass } from "./executor.ts";

const ELEMENT_TYPE = { float: 1, int32: 6, int64: 7 } as const; // ONNXTensorElementDataType
const LOG_ERROR = 3; // OrtLoggingLevel
const OPTIMIZE_NONE = 0; // GraphOptimizationLevel
const OPTIMIZE_ALL = 99;
const ALLOCATOR_DEVICE = 0; // OrtAllocatorType
const MEMORY_DEFAULT = 0; // OrtMemType

/**
 * Smaller weights are packed again at each load: in the file it saves, the library aligns only larger ones (1.30.0),
 * and its kernels locate data in a packed weight by its address modulo 64.
 */
const SAVED_BYTES_MIN = 1024 * 1024;

interface SessionSettings {
  readonly threads: number;
  /** Destination of the optimized graph and its packed weights; then the graph is not run. */
  readonly saveTo?: { readonly model: string; readonly weightsName: string };
  /** The graph is a saved one. */
  readonly optimized?: boolean;
}

/** The library's objects that a session is made from. */
export interface Runtime {
  readonly api: Api;
  readonly env: Pointer;
}

export function makeRuntime(api: Api): Runtime {
  const name = cString("hearth");
  return { api, env: handleOf((out) => api.CreateEnv(LOG_ERROR, name, out)) };
}

/** Creates a session from a model file. May take seconds and cannot be stopped. */
export function createSession({ api, env }: Runtime, modelPath: string, settings: SessionSettings): Pointer {
  const options = handleOf((out) => api.CreateSessionOptions(out));
  const config = (key: string, value: string): void => api.AddSessionConfigEntry(options, cString(key), cString(value));
  try {
    api.SetIntraOpNumThreads(options, settings.threads);
    api.SetInterOpNumThreads(options, 1);
    api.DisableMemPattern(options); // shapes change from run to run
    api.SetSessionGraphOptimizationLevel(options, settings.optimized ? OPTIMIZE_NONE : OPTIMIZE_ALL);
    if (settings.saveTo) {
      api.SetOptimizedModelFilePath(options, pathString(settings.saveTo.model));
      config("session.optimized_model_external_initializers_file_name", settings.saveTo.weightsName);
      config("session.optimized_model_external_initializers_min_size_in_bytes", String(SAVED_BYTES_MIN));
      config("session.save_external_prepacked_constant_initializers", "1");
    }
    return handleOf((out) => api.CreateSession(env, pathString(modelPath), options, out));
  } finally {
    api.ReleaseSessionOptions(options);
  }
}

/** Runs a session over a KV cache; owns both handles afterwards. */
export function makeNativeExecutor({ api, env }: Runtime, session: Pointer, cache: KvCache): Executor {
  const memory = handleOf((out) => api.CreateCpuMemoryInfo(ALLOCATOR_DEVICE, MEMORY_DEFAULT, out));
  const shrink = handleOf((out) => api.CreateRunOptions(out));
  api.AddRunConfigEntry(shrink, cString("memory.enable_memory_arena_shrinkage"), cString("cpu:0"));
  const caches = new Map<string, readonly Pointer[]>();
  const cacheOutputs = cache.layers.flatMap(({ layer }) => [`ok.${layer}`, `ov.${layer}`]);
  const outputNames = { logits: namesOf(["logits", ...cacheOutputs]), states: namesOf(["states", ...cacheOutputs]) };
  const cacheNames = cache.layers.flatMap(({ layer }) => [`pk.${layer}`, `pv.${layer}`]);
  let inputNames: { names: readonly string[]; array: CStrings } | undefined;

  const tensor = (feed: Feed): Pointer => {
    const count = feed.shape.reduce((product, dim) => product * dim, 1);
    assert(count <= feed.data.length, `${feed.name}: shape of ${count} elements over ${feed.data.length}`);
    const shape = BigInt64Array.from(feed.shape, BigInt);
    const bytes = BigInt(count * feed.data.BYTES_PER_ELEMENT);
    const type = ELEMENT_TYPE[feed.type];
    const data = feed.data.length > 0 ? feed.data : new Float32Array(1);
    const rank = BigInt(shape.length);
    const dims = shape.length > 0 ? shape : null;
    return handleOf((out) => api.CreateTensorWithDataAsOrtValue(memory, data, bytes, dims, rank, type, out));
  };

  /** Tensors on the caches of a range of slots, made once per range. */
  const cacheTensors = (lowSlot: number, batch: number): readonly Pointer[] => {
    const key = `${lowSlot} ${batch}`;
    const known = caches.get(key);
    if (known) return known;
    const made = cache.layers.flatMap(({ layer, nKvHeads, headDim, keys, values }) => {
      const slotSize = nKvHeads * cache.ctxLen * headDim;
      const shape = [batch, nKvHeads, cache.ctxLen, headDim];
      return [keys, values].map((all) => {
        const data = all.subarray(lowSlot * slotSize, (lowSlot + batch) * slotSize);
        return tensor({ name: `cache ${layer}`, type: "float", shape, data });
      });
    });
    caches.set(key, made);
    return made;
  };

  const run = ({ lowSlot, batch, feeds, result, large }: Pass): void => {
    const names = [...feeds.map((feed) => feed.name), ...cacheNames];
    if (!inputNames) inputNames = { names, array: namesOf(names) };
    assert(names.length === inputNames.names.length, "every run has the same inputs");
    const shared = cacheTensors(lowSlot, batch);
    const inputs: Pointer[] = [];
    try {
      for (const feed of feeds) inputs.push(tensor(feed));
      inputs.push(tensor({ ...result, type: "float" }));
      const output = inputs.at(-1)!; // just pushed
      const ins = pointerArray([...inputs.slice(0, -1), ...shared]);
      const outs = pointerArray([output, ...shared]);
      const { pointers: inNames } = inputNames.array;
      const { pointers: outNames } = outputNames[result.name];
      api.Run(session, large ? shrink : null, inNames, ins, BigInt(ins.length), outNames, BigInt(outs.length), outs);
    } finally {
      for (const input of inputs) api.ReleaseValue(input);
    }
  };

  return {
    run: async (pass) => run(pass),
    close() {
      for (const tensors of caches.values()) for (const each of tensors) api.ReleaseValue(each);
      caches.clear();
      api.ReleaseRunOptions(shrink);
      api.ReleaseMemoryInfo(memory);
      api.ReleaseSession(session);
      api.ReleaseEnv(env);
    },
  };
}

/** An array of C strings, kept alive together. */
interface CStrings {
  readonly pointers: BigUint64Array;
  readonly buffers: readonly Uint8Array[];
}

function namesOf(names: readonly string[]): CStrings {
  const buffers = names.map((name) => cString(name));
  return { pointers: BigUint64Array.from(buffers, (buffer) => BigInt(ptr(buffer))), buffers };
}
