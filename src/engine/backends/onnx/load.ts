/**
 * Loads a program: lowers it to a graph, packs its weights, and opens a session on it. Large models go through the
 * cache of packed graphs (`cache.ts`): the first load writes an entry and opens that, later ones only open it.
 */
import type { Pointer } from "bun:ffi";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lower, ops, variants } from "../../../../kernels/onnx/lower.ts";
import { makeHalfTable } from "../../../../kernels/onnx/weights.ts";
import { AppError, messageOf } from "../../../base/index.ts";
import type { LoadOptions, Program, Session } from "../../program/backend.ts";
import { runsWhole, weightsOf } from "../../program/describe.ts";
import { withChanges } from "../../program/low-rank.ts";
import { checkOps } from "../missing-ops.ts";
import { statesEnd } from "../../program/states.ts";
import type { Weight } from "../../program/step.ts";
import { bindApi } from "./api.ts";
import { entryName, findEntry, makeEntry, MODEL_NAME, pruneEntries, WEIGHTS_NAME } from "./cache.ts";
import { makeFolder, removeFolder } from "./folders.ts";
import type { Executor, KvCache } from "./executor.ts";
import { makeFallbackExecutor } from "./fallback.ts";
import { makeKvCache } from "./kv-cache.ts";
import { canCallNative, checkTelemetryOff, findLibrary, openLibrary } from "./library.ts";
import { createSession, makeNativeExecutor, makeRuntime, type Runtime } from "./native.ts";
import { dropFilePages, makePageDropper } from "./residency.ts";
import { makeSession } from "./session.ts";
import { physicalCores } from "./threads.ts";
import { createWeightFile, planWeightFile } from "./weight-file.ts";

/** Smaller models are packed quickly, and an entry would only be clutter. */
const CACHED_BYTES_MIN = 64 * 2 ** 20;
/** Share of packing in a first load; the rest is ONNX Runtime's and reports no progress. */
const PACKING_SHARE = 0.5;

interface Opening {
  readonly program: Program;
  readonly options: LoadOptions;
  readonly threads: number;
  readonly cache: KvCache;
}

interface Loading {
  readonly program: Program;
  readonly options: LoadOptions;
  readonly runtime: Runtime;
  readonly libraryVersion: string;
  readonly threads: number;
}

/** Settings for tests. */
export interface LoadSettings {
  /** False uses the JavaScript binding; undefined: uses it only if native functions cannot be called. */
  readonly native?: boolean;
  /** From this many bytes on, packed weights are kept in `cacheDir`. */
  readonly cachedBytesMin?: number;
}

/**
 * Loads a program. Throws `unsupported` if ONNX Runtime cannot be used here, `runner` if it refuses the graph,
 * `too_large` if the disk has no room for the packed weights.
 */
export async function loadSession(
  program: Program,
  options: LoadOptions,
  { native = canCallNative(), cachedBytesMin = CACHED_BYTES_MIN }: LoadSettings = {},
): Promise<Session> {
  checkOps(program, { name: "onnx", ops, variants });
  const threads = options.threads > 0 ? options.threads : physicalCores();
  const file = planWeightFile(WEIGHTS_NAME);
  const { lowered } = lower(program, {
    file,
    precise: options.precise,
    encoder: runsWhole(program.steps),
    half: new Float32Array(0),
    packed: () => {},
    statesEnd: statesEnd(program),
  });
  const cache = makeKvCache(lowered.caches, options);
  const opening: Opening = { program, options, threads, cache };
  const cached = file.byteLength() >= cachedBytesMin && cache.layers.length > 0; // an encoder is packed in seconds
  const executor = native ? openNative(opening, cached) : await openFallback(opening);
  options.onProgress?.(1);
  return makeSession({
    program,
    lowered,
    executor,
    cache,
    backend: "onnx",
    device: `CPU (${threads} thread${threads === 1 ? "" : "s"}${native ? "" : ", JavaScript binding"})`,
    weightBytes: file.byteLength(),
  });
}

function openNative({ program, options, threads, cache }: Opening, cached: boolean): Executor {
  const library = openLibrary();
  const runtime = makeRuntime(bindApi(library));
  const loading: Loading = { program, options, runtime, libraryVersion: library.version, threads };
  const { cacheDir } = options;
  const session = cacheDir !== undefined && cached ? openCached(loading, cacheDir) : openDirect(loading);
  return makeNativeExecutor(runtime, session, cache);
}

async function openFallback({ program, options, threads, cache }: Opening): Promise<Executor> {
  const found = findLibrary();
  if ("reason" in found) throw new AppError("unsupported", found.reason);
  checkTelemetryOff();
  const folder = makeFolder();
  try {
    writeGraph(program, folder, options);
    return await makeFallbackExecutor(join(folder, MODEL_NAME), { threads, cache });
  } finally {
    removeFolder(folder);
  }
}

/** Opens a session on temporary files: afterwards the library has packed or mapped what it needs. */
function openDirect({ program, options, runtime, threads }: Loading): Pointer {
  const folder = makeFolder();
  try {
    writeGraph(program, folder, options);
    return createSession(runtime, join(folder, MODEL_NAME), { threads });
  } finally {
    removeFolder(folder);
  }
}

/** Opens a session on a cache entry, which is created if it is missing or the library refuses it. */
function openCached(loading: Loading, cacheDir: string): Pointer {
  const name = entryName(loading.program, { libraryVersion: loading.libraryVersion, precise: loading.options.precise });
  const found = findEntry(cacheDir, name);
  if (found) {
    try {
      return openEntry(loading, found);
    } catch {
      removeFolder(found); // damaged in a part that was not checked
    }
  }
  const entry = makeEntry(cacheDir, name, (folder) => buildEntry(loading, folder));
  pruneEntries(cacheDir, name);
  return openEntry(loading, entry);
}

function openEntry({ runtime, threads }: Loading, folder: string): Pointer {
  const session = createSession(runtime, join(folder, MODEL_NAME), { threads, optimized: true });
  dropFilePages(join(folder, WEIGHTS_NAME));
  return session;
}

/** Lets the library pack the graph for this CPU and save the result. */
function buildEntry({ program, options, runtime, threads }: Loading, folder: string): void {
  const source = mkdtempSync(join(folder, "source-"));
  writeGraph(program, source, options);
  const saveTo = { model: join(folder, MODEL_NAME), weightsName: WEIGHTS_NAME };
  runtime.api.ReleaseSession(createSession(runtime, join(source, MODEL_NAME), { threads, saveTo }));
  removeFolder(source);
}

/** Writes a program's graph and packed weights to a folder. */
function writeGraph(program: Program, folder: string, { precise, onProgress }: LoadOptions): void {
  const file = createWeightFile(join(folder, WEIGHTS_NAME), WEIGHTS_NAME);
  const total = program.steps.flatMap(packedMatrices).reduce((sum, w) => sum + w.inDim * w.outDim * w.experts, 0);
  let done = 0;
  const packed = (weights: number): void => {
    done += weights;
    onProgress?.(Math.min(1, done / Math.max(1, total)) * PACKING_SHARE);
  };
  try {
    const encoder = runsWhole(program.steps);
    const { model } = lower(program, {
      file,
      precise,
      encoder,
      half: makeHalfTable(),
      packed,
      statesEnd: statesEnd(program),
    });
    writeFileSync(join(folder, MODEL_NAME), model());
  } catch (error) {
    const full = error instanceof Error && "code" in error && error.code === "ENOSPC";
    if (!full) throw error;
    throw new AppError("too_large", `${folder}: no room for the packed weights: ${messageOf(error)}`, { cause: error });
  } finally {
    file.close();
    Bun.gc(true); // frees the packed chunks: hundreds of megabytes that would otherwise stay
    makePageDropper(program.steps.flatMap(packedMatrices).map((w) => program.weights.read(w.name)))();
  }
}

/** The packed matrices of a step, and their low-rank changes. */
const packedMatrices = (step: Program["steps"][number]): readonly Weight[] =>
  weightsOf(step, "matrix", "experts").flatMap(withChanges);
