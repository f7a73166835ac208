/** Keeps what searches for fast kernels found in `gpu-kernels.json` of the cache folder. */
import { join } from "node:path";
import type { TuningStore } from "../../program/tuning-store.ts";
import { keptFile } from "./kept-file.ts";

const FILE_NAME = "gpu-kernels.json";

/** The store in that folder. If two processes write at once, one result is lost and searched again. */
export const tuningFile = (cacheDir: string): TuningStore => keptFile(join(cacheDir, FILE_NAME));
