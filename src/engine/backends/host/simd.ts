/** The SIMD backend: steps lowered to records that our C kernels run, which read GGUF blocks in place. */
import { readFileSync } from "node:fs";
import { AppError } from "../../../base/index.ts";
import type { Backend, LoadOptions } from "../../program/backend.ts";
import { physicalCores } from "../onnx/threads.ts";
import { checkOps, missingOps } from "../missing-ops.ts";
import { findLevel, type Level, type LevelOptions } from "./simd-library.ts";
import { ops, variants } from "../simd/lower.ts";
import { sleepFunctions } from "./sleep-functions.ts";
import { makeStreamingHost } from "./streaming.ts";
import { makeNativeMemory } from "./simd-memory.ts";
import { slotBytes } from "../simd/kv.ts";
import type { Engine } from "../simd/passes.ts";
import { makeSession } from "../simd/session.ts";
import { makeStepSession } from "../simd/step-session.ts";
import { EarlyWorkers, startThreadPool } from "./simd-workers.ts";

interface Library extends Level {
  /** Identifies the build of the kernels. */
  readonly build: string;
}

export const simdBackend = makeSimdBackend();

interface Options extends LevelOptions {
  /** Memory for weights; default: all that is available. */
  readonly weightBytes?: number | undefined;
}

/** The backend at a level; default: the machine's best. */
export function makeSimdBackend(options: Options = {}): Backend {
  /** By level: a loaded library cannot change, so it is read and checked once. */
  const libraries = new Map<string | undefined, Library>();
  const libraryOf = (level: string | undefined): Library => {
    const known = libraries.get(level);
    if (known) return known;
    const found = findLevel({ ...options, level });
    if ("reason" in found) throw new AppError("unsupported", found.reason);
    const library = { ...found, build: buildOf(found.file) };
    libraries.set(level, library);
    return library;
  };
  const engineFor = ({ simdLevel = options.level, threads: asked, begun }: LoadOptions): Engine => {
    const { title, build, features, words, panelRows, file } = libraryOf(simdLevel);
    const threads = threadsOf(asked);
    const early = begun instanceof EarlyWorkers ? begun : undefined;
    return {
      backend: "simd",
      level: title,
      build,
      features,
      threads,
      memory: makeNativeMemory(),
      words,
      panelRows,
      sleep: sleepFunctions(),
      streaming: makeStreamingHost(options.weightBytes),
      start: (header) => startThreadPool(file, header, { threads, early }),
    };
  };
  return {
    name: "simd",
    missing: (program) => missingOps(program, { ops, variants }),
    slotBytes,
    begin: ({ threads }) => new EarlyWorkers(threadsOf(threads)),
    async load(program, loadOptions) {
      checkOps(program, { name: "simd", ops, variants });
      return makeSession(program, loadOptions, engineFor(loadOptions));
    },
    async loadSteps(program, steps, loadOptions) {
      checkOps({ ...program, steps }, { name: "simd", ops, variants });
      return makeStepSession(program, steps, { ...loadOptions, engine: engineFor(loadOptions) });
    },
  };
}

const threadsOf = (asked: number): number => (asked > 0 ? asked : physicalCores());

const buildOf = (file: string): string => Bun.hash.xxHash3(readFileSync(file)).toString(36);
