/**
 * Settings, and the only reader of environment variables, flags and the configuration file. Later wins: default, file
 * (`--config`, else `$HEARTH_CONFIG`, else `~/.hearth/hearth.json5`), environment, flags. Each `HEARTH_X` falls back to
 * the `OLLAMA_X` that people already have set. A value that cannot be understood is an error, never a default; only in
 * an `OLLAMA_X` that Ollama itself would start with it is a warning.
 */
import { isAbsolute, join } from "node:path";
import { AppError, messageOf } from "./base/errors.ts";
import { KERNELS_EXPECTED, parseKernels, type KernelChoice } from "./base/kernel-tuning.ts";
import { KV_CACHE_TYPES, parseKvCacheType, type KvCacheType } from "./base/kv-cache-type.ts";
import {
  isForeign,
  orDefault,
  tolerateAddress,
  tolerateKvCacheType,
  unusedVariables,
  type Tolerate,
  type Tolerated,
} from "./config/foreign.ts";
import { readDocument, type Document } from "./config/document.ts";
import {
  autoWhereZero,
  isOriginPattern,
  parseAddress,
  parseBool,
  parseBytes,
  parseInteger,
  parseList,
  parseMs,
  parsePath,
  PORT_DEFAULT,
  type Address,
} from "./config/values.ts";

export type { Address } from "./config/values.ts";

/** In whose words `/metrics` is: ours, or vLLM's beside them, which routers know. */
const METRICS_DIALECTS = ["hearth", "vllm"] as const;
export type MetricsDialect = (typeof METRICS_DIALECTS)[number];
const HOUR_MS = 3_600_000;
const BACKENDS = ["auto", "webgpu", "simd", "onnx", "wasm", "cpu"] as const;
type BackendSetting = (typeof BACKENDS)[number];
/** Instruction sets that the SIMD kernels are built for. */
const SIMD_LEVELS = ["auto", "vnni", "avx2", "neon"] as const;
type SimdSetting = (typeof SIMD_LEVELS)[number];

interface Setting<T> {
  /** Environment variables, the first that is set wins. */
  readonly env: readonly string[];
  /** What the value looks like, for the error message. */
  readonly expected: string;
  /** The value, or undefined where it is none. Texts come from anywhere, other types from the file. */
  readonly parse: (value: unknown) => T | undefined;
  readonly initial: (home: string) => T;
  /** What a variable of Ollama is taken for; absent: it has to be as the others. */
  readonly tolerates?: Tolerate<T>;
}

/** Parts of the file that others read: see `gateway/`. */
const SECTIONS: readonly string[] = ["hooks", "agents", "session", "channels", "gateway", "database"];

const setting = <T>(row: Setting<T>): Setting<T> => row;

/** One row per setting: the key is its name in the file and, in kebab-case, the flag. */
const SETTINGS = {
  host: setting<Address>({
    env: ["HEARTH_HOST", "OLLAMA_HOST"],
    expected: "[http://]host[:port], with a port from 0 to 65535",
    parse: parseAddress,
    tolerates: ({ text }) => tolerateAddress(text),
    initial: () => ({ hostname: "127.0.0.1", port: PORT_DEFAULT }),
  }),
  models: setting<string>({
    env: ["HEARTH_MODELS", "OLLAMA_MODELS"],
    expected: "the path of a folder",
    parse: parsePath,
    initial: (home) => join(home, "models"),
  }),
  backend: setting<BackendSetting>({
    env: ["HEARTH_BACKEND"],
    expected: BACKENDS.join(", "),
    parse: (value) => BACKENDS.find((name) => name === value),
    initial: () => "auto",
  }),
  gpuMemory: setting<number | "auto">({
    env: ["HEARTH_GPU_MEMORY"],
    expected: "'auto', or bytes such as '6GiB', '512MB' or 1000000",
    parse: (value) => (value === "auto" ? "auto" : parseBytes(value)),
    initial: () => "auto",
  }),
  gpuKernels: setting<KernelChoice>({
    env: ["HEARTH_GPU_KERNELS"],
    expected: KERNELS_EXPECTED,
    parse: (value) => parseKernels(String(value)),
    initial: () => "auto",
  }),
  simd: setting<SimdSetting>({
    env: ["HEARTH_SIMD"],
    expected: SIMD_LEVELS.join(", "),
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
  snapshots: setting<number>({
    env: ["HEARTH_SNAPSHOTS"],
    expected: "'off', or bytes such as '4GiB'",
    parse: (value) => (value === "off" || value === false || Number(value) === 0 ? 0 : parseBytes(value)),
    initial: () => 4 * 2 ** 30,
  }),
  numParallel: setting<number>({
    env: ["HEARTH_NUM_PARALLEL", "OLLAMA_NUM_PARALLEL"],
    expected: "a whole number from 1 to 256",
    parse: (value) => parseInteger(value, { min: 1, max: 256 }),
    tolerates: orDefault,
    initial: () => 4,
  }),
  maxLoadedModels: setting<number | "auto">({
    env: ["HEARTH_MAX_LOADED_MODELS", "OLLAMA_MAX_LOADED_MODELS"],
    expected: "'auto' or a whole number",
    parse: (value) => (value === "auto" ? "auto" : parseInteger(value, { min: 0, max: 1e6 }) || autoWhereZero(value)),
    tolerates: orDefault,
    initial: () => "auto",
  }),
  maxQueue: setting<number>({
    env: ["HEARTH_MAX_QUEUE", "OLLAMA_MAX_QUEUE"],
    expected: "a whole number from 1",
    parse: (value) => parseInteger(value, { min: 1, max: 1e6 }),
    tolerates: orDefault,
    initial: () => 512,
  }),
  keepAlive: setting<number>({
    env: ["HEARTH_KEEP_ALIVE", "OLLAMA_KEEP_ALIVE"],
    expected: "a duration such as '5m', or seconds; negative: for ever",
    parse: (value) => parseMs(value, (ms) => (ms < 0 ? Infinity : ms)),
    tolerates: orDefault,
    initial: () => 5 * 60_000,
  }),
  contextLength: setting<number | "auto">({
    env: ["HEARTH_CONTEXT_LENGTH", "OLLAMA_CONTEXT_LENGTH"],
    expected: "'auto' or a whole number of tokens, at least 4 (0: auto)",
    parse: (value) =>
      value === "auto" ? "auto" : (autoWhereZero(value) ?? parseInteger(value, { min: 4, max: 2 ** 24 })),
    tolerates: orDefault,
    initial: () => "auto",
  }),
  loadTimeout: setting<number>({
    env: ["HEARTH_LOAD_TIMEOUT", "OLLAMA_LOAD_TIMEOUT"],
    expected: "a duration such as '5m', or seconds; 0 or negative: none",
    parse: (value) => parseMs(value, (ms) => (ms <= 0 ? Infinity : ms)),
    tolerates: orDefault,
    initial: () => 5 * 60_000,
  }),
  shutdownGrace: setting<number>({
    env: ["HEARTH_SHUTDOWN_GRACE"],
    expected: "a duration such as '10s', or seconds, from 0 to an hour",
    parse: (value) => parseMs(value, (ms) => (ms >= 0 && ms <= HOUR_MS ? Math.round(ms) : undefined)),
    initial: () => 10_000,
  }),
  drainDelay: setting<number>({
    env: ["HEARTH_DRAIN_DELAY"],
    expected: "a duration such as '5s', or seconds, from 0 to an hour",
    parse: (value) => parseMs(value, (ms) => (ms >= 0 && ms <= HOUR_MS ? Math.round(ms) : undefined)),
    initial: () => 0,
  }),
  origins: setting<readonly string[]>({
    env: ["HEARTH_ORIGINS", "OLLAMA_ORIGINS"],
    expected:
      "origins separated by commas, each with at most one '*' or with http://, https:// or an extension's scheme",
    parse: (value) => parseList(value, isOriginPattern),
    initial: () => [],
  }),
  apiKeys: setting<readonly string[]>({
    env: ["HEARTH_API_KEYS"],
    expected: "keys separated by commas, without blanks",
    parse: (value) => parseList(value, (key) => /^[\x21-\x7e]+$/.test(key)),
    initial: () => [],
  }),
  importDirs: setting<readonly string[]>({
    env: ["HEARTH_IMPORT_DIRS"],
    expected: "absolute paths of folders separated by commas",
    parse: (value) => parseList(value, (item) => isAbsolute(item) && !item.includes("\0")),
    initial: () => [],
  }),
  metricsDialect: setting<MetricsDialect>({
    env: ["HEARTH_METRICS_DIALECT"],
    expected: METRICS_DIALECTS.join(", "),
    parse: (value) => METRICS_DIALECTS.find((dialect) => dialect === value),
    initial: () => "hearth",
  }),
  noPrune: setting<boolean>({
    env: ["HEARTH_NOPRUNE", "OLLAMA_NOPRUNE"],
    expected: "true or false",
    parse: parseBool,
    tolerates: ({ parsed }) =>
      parsed === undefined ? { value: true, warning: "what is not false counts as true" } : { value: parsed },
    initial: () => false,
  }),
  otherStores: setting<boolean>({
    env: ["HEARTH_OTHER_STORES"],
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

export interface Config {
  /** Gateway database, keys, caches. */
  readonly home: string;
  readonly host: Address;
  readonly models: string;
  readonly backend: BackendSetting;
  /** Bytes that models may take on the GPU together; `auto`: what there is. */
  readonly gpuMemory: number | "auto";
  /** Which kernels a GPU runs. */
  readonly gpuKernels: KernelChoice;
  readonly simd: SimdSetting;
  readonly kvCacheType: KvCacheType;
  /** Bytes of disk that prefixes of finished chats may take; 0: none are kept there. */
  readonly snapshots: number;
  /** Sequences that one model decodes at once. */
  readonly numParallel: number;
  /** `auto`: as many as fit. */
  readonly maxLoadedModels: number | "auto";
  /** Requests that may wait for a model. */
  readonly maxQueue: number;
  /** Infinity: for ever. */
  readonly keepAliveMs: number;
  /** Tokens; `auto`: as there is memory. */
  readonly contextLength: number | "auto";
  /** Time without progress after which a load has failed; Infinity: never. */
  readonly loadTimeoutMs: number;
  /** How long answers and turns may take to finish once the server was told to stop. */
  readonly shutdownGraceMs: number;
  /** How long it goes on taking requests once SIGTERM told it to stop, so that balancers can leave it first. */
  readonly drainDelayMs: number;
  /** Patterns of browser origins, added to the built-in ones. */
  readonly origins: readonly string[];
  /** Empty: no authentication. */
  readonly apiKeys: readonly string[];
  /** Folders that requests may name files in; empty: none. */
  readonly importDirs: readonly string[];
  /** Folders where another server's models may be, which are served beside our own and only read. */
  readonly otherStores: readonly string[];
  readonly metricsDialect: MetricsDialect;
  /** Keep blobs that no model refers to. */
  readonly noPrune: boolean;
  readonly debug: boolean;
  /** Warnings about the environment, a line each. */
  readonly warnings: readonly string[];
}

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** By setting name; undefined where not given. Also `config` (a path) and `home`. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The user's home folder. */
  readonly home: string;
}

interface Found {
  readonly value: unknown;
  /** Where the value came from, for the message. */
  readonly where: string;
}

/** Throws `bad_request` naming the setting, where it was set, what was expected and what was found. */
export function readConfig(sources: ConfigSources): Config {
  const file = settingsOf(readConfigFile(sources));
  const warnings = unusedVariables(sources.env);
  const find = (name: string, env: readonly string[]): Found | undefined =>
    findFlag(sources.flags, name) ?? findEnv(sources.env, env) ?? file(name);
  const found = find("home", ["HEARTH_HOME"]);
  const home = found
    ? checked(parsePath(found.value), { name: "home", found, expected: "the path of a folder" })
    : join(sources.home, ".hearth");
  const value = <T>(name: string, row: Setting<T>): T => {
    const found = find(name, row.env);
    if (!found) return row.initial(home);
    const tolerated = toleratedValue(row, found, row.initial(home));
    if (tolerated?.warning) warnings.push(`${found.where}='${String(found.value)}': ${tolerated.warning}`);
    return tolerated ? tolerated.value : checked(row.parse(found.value), { name, found, expected: row.expected });
  };
  return {
    home,
    host: value("host", SETTINGS.host),
    models: value("models", SETTINGS.models),
    backend: value("backend", SETTINGS.backend),
    gpuMemory: value("gpuMemory", SETTINGS.gpuMemory),
    gpuKernels: value("gpuKernels", SETTINGS.gpuKernels),
    simd: value("simd", SETTINGS.simd),
    kvCacheType: value("kvCacheType", SETTINGS.kvCacheType),
    snapshots: value("snapshots", SETTINGS.snapshots),
    numParallel: value("numParallel", SETTINGS.numParallel),
    maxLoadedModels: value("maxLoadedModels", SETTINGS.maxLoadedModels),
    maxQueue: value("maxQueue", SETTINGS.maxQueue),
    keepAliveMs: value("keepAlive", SETTINGS.keepAlive),
    contextLength: value("contextLength", SETTINGS.contextLength),
    loadTimeoutMs: value("loadTimeout", SETTINGS.loadTimeout),
    shutdownGraceMs: value("shutdownGrace", SETTINGS.shutdownGrace),
    drainDelayMs: value("drainDelay", SETTINGS.drainDelay),
    origins: value("origins", SETTINGS.origins),
    apiKeys: value("apiKeys", SETTINGS.apiKeys),
    importDirs: value("importDirs", SETTINGS.importDirs),
    metricsDialect: value("metricsDialect", SETTINGS.metricsDialect),
    noPrune: value("noPrune", SETTINGS.noPrune),
    otherStores: value("otherStores", SETTINGS.otherStores) ? otherStores(sources) : [],
    debug: value("debug", SETTINGS.debug),
    warnings,
  };
}

/** Where Ollama keeps its models, for a person and as a service; `OLLAMA_MODELS` replaces the usual places. */
function otherStores({ env, home }: ConfigSources): string[] {
  if (findEnv(env, ["OLLAMA_MODELS"])) return [];
  return [join(home, ".ollama", "models"), "/usr/share/ollama/.ollama/models"];
}

/** Undefined where the value is not from a variable of Ollama, or has to be as the others. */
function toleratedValue<T>(row: Setting<T>, { value, where }: Found, initial: T): Tolerated<T> | undefined {
  if (!isForeign(where)) return undefined;
  return row.tolerates?.({ text: String(value), parsed: row.parse(value), initial, expected: row.expected });
}

/**
 * The configuration file: the one that was asked for, else the one in the user's home, which may be missing.
 * Throws `bad_request`.
 */
export function readConfigFile(sources: ConfigSources): Document | undefined {
  const { path, askedBy } = configPath(sources);
  try {
    return readDocument(path, sources.env);
  } catch (error) {
    if (error instanceof AppError) throw error;
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT"; // node:fs throws nothing else
    if (missing && askedBy === undefined) return undefined;
    throw new AppError("bad_request", `${askedBy ?? "configuration"}: cannot read '${path}': ${messageOf(error)}`);
  }
}

/** Where the configuration file is, or would be. `askedBy`: the flag or variable that names it. */
export function configPath({ env, flags, home }: ConfigSources): { path: string; askedBy: string | undefined } {
  const asked = findFlag(flags, "config") ?? findEnv(env, ["HEARTH_CONFIG"]);
  return { path: asked ? String(asked.value) : join(home, ".hearth", "hearth.json5"), askedBy: asked?.where };
}

/** A lookup among the settings of the file. Sections are for those who know them. */
function settingsOf(file: Document | undefined): (name: string) => Found | undefined {
  if (!file) return () => undefined;
  for (const name of Object.keys(file.root)) {
    if (name === "home" || Object.hasOwn(SETTINGS, name) || SECTIONS.includes(name)) continue;
    const known = ["home", ...Object.keys(SETTINGS), ...SECTIONS].join(", ");
    throw new AppError("bad_request", `${file.where([name])}: unknown setting '${name}'; known: ${known}`);
  }
  const { root } = file;
  return (name) => (Object.hasOwn(root, name) ? { value: root[name], where: file.where([name]) } : undefined);
}

function findFlag(flags: ConfigSources["flags"], name: string): Found | undefined {
  const value = flags[name];
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return value === undefined ? undefined : { value, where: flag };
}

/** Blanks and quotes around a value are not part of it; an empty variable is an unset one. */
function findEnv(env: ConfigSources["env"], names: readonly string[]): Found | undefined {
  for (const name of names) {
    const value = env[name]?.trim().replace(/^["']+|["']+$/g, "");
    if (value) return { value, where: name };
  }
  return undefined;
}

function checked<T>(value: T | undefined, at: { name: string; found: Found; expected: string }): T {
  if (value !== undefined) return value;
  const shown = at.name === "apiKeys" ? "(not shown)" : `'${String(at.found.value)}'`;
  throw new AppError("bad_request", `${at.found.where}: setting '${at.name}': expected ${at.expected}, got ${shown}`);
}
