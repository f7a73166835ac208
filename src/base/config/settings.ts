/** Each setting: its variables, expected form and default value. See `config.ts`. */
import { BACKEND_CHOICES } from "../backends.ts";
import { isAbsolute, join } from "node:path";
import { KERNELS_EXPECTED, parseKernels, type KernelChoice } from "../kernel-tuning.ts";
import { KV_CACHE_TYPES, parseKvCacheType, type KvCacheType } from "../kv-cache-type.ts";
import { orDefault, tolerateAddress, tolerateKvCacheType, type Tolerate } from "./foreign.ts";
import {
  autoWhereZero,
  isHostPattern,
  isOriginPattern,
  parseAddress,
  parseBool,
  parseBytes,
  parseInteger,
  parseList,
  parseMs,
  parsePath,
  parseWebAddress,
  PORT_DEFAULT,
  type Address,
} from "./values.ts";

/** Metric names in `/metrics`: ours, or also vLLM's, which routers know. */
const METRICS_DIALECTS = ["hearth", "vllm"] as const;
export type MetricsDialect = (typeof METRICS_DIALECTS)[number];
const HOUR_MS = 3_600_000;
/** With a lower limit, a healthy runner on a busy machine would be killed. */
const STEP_MS_MIN = 1000;
export type BackendSetting = (typeof BACKEND_CHOICES)[number];
/** Instruction sets that have SIMD kernels. */
const SIMD_LEVELS = ["auto", "amx", "vnni", "avxvnni", "avx2", "sse41", "i8mm", "neon", "neon80"] as const;
export type SimdSetting = (typeof SIMD_LEVELS)[number];

export interface Setting<T> {
  /** Key in the file; absent: the setting's name. */
  readonly key?: string;
  /** Environment variables; the first one that is set wins. */
  readonly env: readonly string[];
  /** The expected form, for error messages. */
  readonly expected: string;
  /** Values that belong to another setting, and the advice for each. */
  readonly instead?: Readonly<Record<string, string>>;
  /** The value, or undefined if it is invalid. Texts come from any source, other types from the file. */
  readonly parse: (value: unknown) => T | undefined;
  readonly initial: (home: string) => T;
  /** Interprets a variable of Ollama; absent: the usual rules apply. */
  readonly tolerates?: Tolerate<T>;
}

const setting = <T>(row: Setting<T>): Setting<T> => row;

/** One row per setting, by its name in `Config` and, in kebab-case, the flag. */
export const SETTINGS = {
  host: setting<Address>({
    env: ["HEARTH_HOST", "OLLAMA_HOST"],
    expected: "[http://]host[:port], with a port from 0 to 65535; a port alone is ':11434'",
    parse: parseAddress,
    tolerates: ({ text }) => tolerateAddress(text),
    initial: () => ({ hostname: "127.0.0.1", port: PORT_DEFAULT }),
  }),
  tlsCertificate: setting<string | undefined>({
    key: "tls.certificate",
    env: ["HEARTH_TLS_CERTIFICATE"],
    expected: "the path of a file in PEM: the certificate, and those between it and its authority",
    parse: parsePath,
    initial: () => undefined,
  }),
  tlsKey: setting<string | undefined>({
    key: "tls.key",
    env: ["HEARTH_TLS_KEY"],
    expected: "the path of a file in PEM: the certificate's private key, without a passphrase",
    parse: parsePath,
    initial: () => undefined,
  }),
  models: setting<string>({
    key: "models.folder",
    env: ["HEARTH_MODELS", "OLLAMA_MODELS"],
    expected: "the path of a folder",
    parse: parsePath,
    initial: (home) => join(home, "models"),
  }),
  /** The server where agents find their models; undefined: this process. */
  modelsUrl: setting<string | undefined>({
    key: "models.url",
    env: ["HEARTH_MODELS_URL"],
    expected: "the address of a Hearth server, or of a router in front of some: http:// or https://",
    parse: parseWebAddress,
    initial: () => undefined,
  }),
  /** Bearer token for that server. */
  modelsKey: setting<string | undefined>({
    key: "models.key",
    env: ["HEARTH_MODELS_KEY"],
    expected: "a key without blanks",
    parse: (value) => (typeof value === "string" && /^[\x21-\x7e]+$/.test(value) ? value : undefined),
    initial: () => undefined,
  }),
  /**
   * The registry of names without a host; models are pulled from it at their first use. Undefined: models are not
   * pulled.
   */
  modelsSource: setting<URL | undefined>({
    key: "models.source",
    env: ["HEARTH_MODELS_SOURCE"],
    expected: "the address of a registry: http:// or https://, a host, no path and no password ('models.sourceLogin')",
    parse: (value) => {
      const address = parseWebAddress(value);
      const url = address === undefined ? undefined : new URL(address);
      return url?.pathname === "/" ? url : undefined;
    },
    initial: () => undefined,
  }),
  modelsSourceLogin: setting<string | undefined>({
    key: "models.sourceLogin",
    env: ["HEARTH_MODELS_SOURCE_LOGIN"],
    expected: "a user and a password with a colon between them",
    parse: (value) => (typeof value === "string" && /^[^\s:]+:[^\r\n]+$/.test(value) ? value : undefined),
    initial: () => undefined,
  }),
  /** Bytes of disk for models pulled that way. */
  modelsCacheBytes: setting<number>({
    key: "models.cacheBytes",
    env: ["HEARTH_MODELS_CACHE"],
    expected: "bytes such as '200GiB'",
    parse: parseBytes,
    initial: () => Infinity,
  }),
  backend: setting<BackendSetting>({
    env: ["HEARTH_BACKEND"],
    expected: BACKEND_CHOICES.join(", "),
    parse: (value) => BACKEND_CHOICES.find((name) => name === value),
    initial: () => "auto",
  }),
  /** The GPU's name, or a part of it; several are separated by commas. Undefined: the best, and similar ones. */
  gpu: setting<string | undefined>({
    env: ["HEARTH_GPU"],
    expected: "names of GPUs, or parts of them, separated by commas: 'hearth devices' lists them",
    parse: (value) => (typeof value === "string" && /^[\x20-\x7e]+$/.test(value) ? value : undefined),
    initial: () => undefined,
  }),
  /** Bytes that all models together may take on the GPU; `auto`: all that is free. */
  gpuMemory: setting<number | "auto">({
    env: ["HEARTH_GPU_MEMORY"],
    expected: "'auto', or bytes such as '6GiB', '512MB' or 1000000",
    parse: (value) => (value === "auto" ? "auto" : parseBytes(value)),
    initial: () => "auto",
  }),
  /** The GPU kernels to run. */
  gpuKernels: setting<KernelChoice>({
    env: ["HEARTH_GPU_KERNELS"],
    expected: KERNELS_EXPECTED,
    parse: (value) => parseKernels(String(value)),
    initial: () => "auto",
  }),
  simd: setting<SimdSetting>({
    env: ["HEARTH_SIMD"],
    expected: SIMD_LEVELS.join(", "),
    instead: { wasm: "HEARTH_BACKEND=wasm runs these kernels as WebAssembly" },
    parse: (value) => SIMD_LEVELS.find((level) => level === value),
    initial: () => "auto",
  }),
  kvCacheType: setting<KvCacheType>({
    env: ["HEARTH_KV_CACHE_TYPE", "OLLAMA_KV_CACHE_TYPE"],
    expected: KV_CACHE_TYPES.join(", "),
    parse: parseKvCacheType,
    tolerates: tolerateKvCacheType,
    initial: () => "f16",
  }),
  /** Bytes of disk for prefixes of finished chats; 0: none are stored. */
  snapshots: setting<number>({
    env: ["HEARTH_SNAPSHOTS"],
    expected: "'off', or bytes such as '4GiB'",
    parse: (value) => (value === "off" || value === false || Number(value) === 0 ? 0 : parseBytes(value)),
    initial: () => 4 * 2 ** 30,
  }),
  /** Sequences that one model decodes at once; `auto`: on a GPU as many as its memory allows. */
  numParallel: setting<number | "auto">({
    env: ["HEARTH_NUM_PARALLEL", "OLLAMA_NUM_PARALLEL"],
    expected: "'auto' or a whole number from 1 to 256",
    parse: (value) => (value === "auto" ? "auto" : parseInteger(value, { min: 1, max: 256 })),
    tolerates: orDefault,
    initial: () => "auto",
  }),
  /** `auto`: as many as fit. */
  maxLoadedModels: setting<number | "auto">({
    env: ["HEARTH_MAX_LOADED_MODELS", "OLLAMA_MAX_LOADED_MODELS"],
    expected: "'auto' or a whole number",
    parse: (value) => (value === "auto" ? "auto" : parseInteger(value, { min: 0, max: 1e6 }) || autoWhereZero(value)),
    tolerates: orDefault,
    initial: () => "auto",
  }),
  /** Requests that may wait for a model. */
  maxQueue: setting<number>({
    env: ["HEARTH_MAX_QUEUE", "OLLAMA_MAX_QUEUE"],
    expected: "a whole number from 1",
    parse: (value) => parseInteger(value, { min: 1, max: 1e6 }),
    tolerates: orDefault,
    initial: () => 512,
  }),
  /** Infinity: models are never unloaded. */
  keepAliveMs: setting<number>({
    key: "keepAlive",
    env: ["HEARTH_KEEP_ALIVE", "OLLAMA_KEEP_ALIVE"],
    expected: "a duration such as '5m', or seconds; negative: for ever",
    parse: (value) => parseMs(value, (ms) => (ms < 0 ? Infinity : ms)),
    tolerates: orDefault,
    initial: () => 5 * 60_000,
  }),
  /** Tokens; `auto`: depends on memory. */
  contextLength: setting<number | "auto">({
    env: ["HEARTH_CONTEXT_LENGTH", "OLLAMA_CONTEXT_LENGTH"],
    expected: "'auto' or a whole number of tokens, at least 4 (0: auto)",
    parse: (value) =>
      value === "auto" ? "auto" : (autoWhereZero(value) ?? parseInteger(value, { min: 4, max: 2 ** 24 })),
    tolerates: orDefault,
    initial: () => "auto",
  }),
  /** A load fails after this time without progress; Infinity: never. */
  loadTimeoutMs: setting<number>({
    key: "loadTimeout",
    env: ["HEARTH_LOAD_TIMEOUT", "OLLAMA_LOAD_TIMEOUT"],
    expected: "a duration such as '5m', or seconds; 0 or negative: none",
    parse: (value) => parseMs(value, (ms) => (ms <= 0 ? Infinity : ms)),
    tolerates: orDefault,
    initial: () => 5 * 60_000,
  }),
  /** Time after which a runner without progress counts as hung and is ended. */
  stepTimeoutMs: setting<number>({
    key: "stepTimeout",
    env: ["HEARTH_STEP_TIMEOUT"],
    expected: "a duration such as '10m', or seconds; 0 or negative: none",
    parse: (value) => parseMs(value, (ms) => (ms <= 0 ? Infinity : Math.max(STEP_MS_MIN, ms))),
    initial: () => 10 * 60_000,
  }),
  /** Time in which answers and turns may finish after a stop. */
  shutdownGraceMs: setting<number>({
    key: "shutdownGrace",
    env: ["HEARTH_SHUTDOWN_GRACE"],
    expected: "a duration such as '10s', or seconds, from 0 to an hour",
    parse: (value) => parseMs(value, (ms) => (ms >= 0 && ms <= HOUR_MS ? Math.round(ms) : undefined)),
    initial: () => 10_000,
  }),
  /** Time after SIGTERM in which requests are still accepted, so that load balancers can leave first. */
  drainDelayMs: setting<number>({
    key: "drainDelay",
    env: ["HEARTH_DRAIN_DELAY"],
    expected: "a duration such as '5s', or seconds, from 0 to an hour",
    parse: (value) => parseMs(value, (ms) => (ms >= 0 && ms <= HOUR_MS ? Math.round(ms) : undefined)),
    initial: () => 0,
  }),
  /** Host names that requests may use for this server, besides its own. */
  hosts: setting<readonly string[]>({
    env: ["HEARTH_HOSTS"],
    expected:
      "host names separated by commas, without ports ('*.name': all below it, '*': any); HEARTH_HOST says where to listen",
    parse: (value) => parseList(value, isHostPattern),
    initial: () => [],
  }),
  /** Patterns of browser origins, added to the built-in ones. */
  origins: setting<readonly string[]>({
    env: ["HEARTH_ORIGINS", "OLLAMA_ORIGINS"],
    expected:
      "origins separated by commas, each with at most one '*' or with http://, https:// or an extension's scheme",
    parse: (value) => parseList(value, isOriginPattern),
    initial: () => [],
  }),
  /** Empty: no authentication. */
  apiKeys: setting<readonly string[]>({
    env: ["HEARTH_API_KEYS"],
    expected: "keys separated by commas, without blanks",
    parse: (value) => parseList(value, (key) => /^[\x21-\x7e]+$/.test(key)),
    initial: () => [],
  }),
  /** Folders whose files requests may name; empty: none. */
  importDirs: setting<readonly string[]>({
    env: ["HEARTH_IMPORT_DIRS"],
    expected: "absolute paths of folders separated by commas",
    parse: (value) => parseList(value, (item) => isAbsolute(item) && !item.includes("\0")),
    initial: () => [],
  }),
  /** Limits of the responses kept for later requests: their number, their bytes, and the time since their last use. */
  responsesCount: setting<number>({
    key: "responses.count",
    env: ["HEARTH_RESPONSES"],
    expected: "a whole number, or 'off'",
    parse: (value) => (value === "off" || value === false ? 0 : parseInteger(value, { min: 0, max: 1e8 })),
    initial: () => 10_000,
  }),
  responsesBytes: setting<number>({
    key: "responses.bytes",
    env: ["HEARTH_RESPONSES_BYTES"],
    expected: "bytes such as '1GiB'",
    parse: parseBytes,
    initial: () => 2 ** 30,
  }),
  responsesAge: setting<number>({
    key: "responses.age",
    env: ["HEARTH_RESPONSES_AGE"],
    expected: "a duration such as '720h', or seconds; 0 or negative: no limit",
    parse: (value) => parseMs(value, (ms) => (ms <= 0 ? Infinity : ms)),
    initial: () => 30 * 24 * HOUR_MS,
  }),
  metricsDialect: setting<MetricsDialect>({
    env: ["HEARTH_METRICS_DIALECT"],
    expected: METRICS_DIALECTS.join(", "),
    parse: (value) => METRICS_DIALECTS.find((dialect) => dialect === value),
    initial: () => "hearth",
  }),
  /** Keep blobs that no model refers to. */
  noPrune: setting<boolean>({
    env: ["HEARTH_NOPRUNE", "OLLAMA_NOPRUNE"],
    expected: "true or false",
    parse: parseBool,
    tolerates: ({ parsed }) =>
      parsed === undefined ? { value: true, warning: "what is not false counts as true" } : { value: parsed },
    initial: () => false,
  }),
  /** Serves models of other servers, whose folders are only read. */
  sharesStores: setting<boolean>({
    key: "otherStores",
    env: ["HEARTH_OTHER_STORES"],
    expected: "true or false",
    parse: parseBool,
    initial: () => true,
  }),
  /** Start the process of the next model in advance. */
  spareRunner: setting<boolean>({
    env: ["HEARTH_SPARE_RUNNER"],
    expected: "true or false",
    parse: parseBool,
    initial: () => true,
  }),
  debug: setting<boolean>({
    env: ["HEARTH_DEBUG", "OLLAMA_DEBUG"],
    expected: "true or false",
    parse: parseBool,
    tolerates: orDefault,
    initial: () => false,
  }),
} as const;

/** Values by their names in `SETTINGS`. */
export type Values = { readonly [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]["initial"]> };
