/** Errors, numbers, texts, time and the log, on any host. */
export { abortable, reasonOf } from "./abortable.ts";
export { ADAPTERS_MAX, BACKEND_CHOICES, BACKENDS_IN_WORDS, backendTraits, type BackendName } from "./backends.ts";
export { inBlocks } from "./blocks.ts";
export { isRecent, isTimeZone, nowNs, secondsBetween, setBackDetector, systemClock, type Clock } from "./clock.ts";
export { formatDuration, formatTime, parseDuration, parseKeepAlive } from "./duration.ts";
export {
  AppError,
  assert,
  checkNotCancelled,
  codeOf,
  isTemporary,
  messageOf,
  shuttingDown,
  type Code,
} from "./errors.ts";
export { inTime } from "./in-time.ts";
export { jsonExcess, nestsDeeper, type JsonLimits } from "./json-depth.ts";
export {
  attendsByMatrix,
  KERNELS_EXPECTED,
  PLAIN,
  rowsAtOnce,
  SIZES,
  fits,
  formatTuning,
  parseKernels,
  type KernelChoice,
  type SizeName,
  type SubgroupMatrix,
  type Tuning,
} from "./kernel-tuning.ts";
export type { KvCacheType } from "./kv-cache-type.ts";
export { linesOf } from "./lines.ts";
export { makeLogger, makeStreamLogger, type Logger } from "./log.ts";
export { isLoopback } from "./loopback.ts";
export { isPlainName, type NamedFile } from "./named-file.ts";
export { nearest, unknownNameMessage } from "./nearest.ts";
export { once } from "./once.ts";
export { remembering } from "./remembering.ts";
export { parseRetryAfter, retryAfter } from "./retry-after.ts";
export { shortened } from "./shortened.ts";
export { runInThread } from "./thread-job.ts";
export {
  isObject,
  optional,
  ownValue,
  readBoolean,
  readFields,
  readList,
  readName,
  readText,
  shown,
  unexpected,
  type Fields,
  type Read,
} from "./untrusted.ts";
export { API_VERSION, VERSION } from "./version.ts";
