/**
 * `hearth serve`: builds the parts, prints one line, and serves until a signal. SIGTERM and SIGINT let running requests
 * finish for a while; no runner ever outlives this process.
 */
import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import { checkBackend, slowOnCpu, trimSnapshots } from "../engine/backends/index.ts";
import { availableMemory, collectWhenIdle, programFile, totalMemory } from "../base/system.ts";
import { AppError, isLoopback, type Logger, makeStreamLogger, messageOf, systemClock, VERSION } from "../base/index.ts";
import type { Gateway, ModelSource } from "../gateway/index.ts";
import { type OtlpOptions, type OtlpTarget, Tracer } from "../base/tracing.ts";
import type { OpenParts } from "../gateway/operate/open.ts";
import { type Config, type ConfigSources, hasSections, readConfig, readConfigFile } from "../base/config/index.ts";
import type { LoadMessage } from "../engine/index.ts";
import {
  probeInChild,
  makeRemoteRuntime,
  makeRuntime,
  RunnerProcess,
  SpareRunner,
  spawnRunner,
  logLoad,
} from "../runtime/index.ts";
import type { McpServers } from "../runtime/mcp/index.ts";
import type { ChatRuntime, Runtime } from "../runtime/portable.ts";
import {
  type Lifecycle,
  type Machine,
  makeHandlers,
  MetricExporter,
  readTls,
  startHookListener,
  startServer,
  storedModels,
  watchDescriptors,
  watchTls,
  type TlsPair,
} from "../server/index.ts";
import type { CheckModel } from "../library/making.ts";
import {
  ensureKey,
  hasEmbedded,
  installEmbedded,
  type Library,
  makeLibrary,
  makeRegistry,
  makeStoreLock,
  openOthers,
  openStore,
  pruneDaily,
  pruneLater,
  pruneStore,
  type Registry,
  type SourceParts,
  type StoreLock,
  withOthers,
  withSource,
} from "../library/index.ts";
import { isFileFormat, type Store } from "../library/portable.ts";
import { gpuMemoryHere } from "./gpu-memory.ts";
import { forcedLevel, type Kernels, makeKernels } from "./kernels.ts";
import { stopOnSignal } from "./stop-on-signal.ts";
import { buildPageAhead } from "../page/build-ahead.ts";

/** A runner is started in advance after this idle time, if ten times its memory is free. */
const SPARE_AFTER_MS = 2000;
const SPARE_ROOM = 512 * 2 ** 20;

/** The folder of the model that ships with Hearth. */
const EMBEDDED_MODEL = "models/hearth";

interface ServeOptions extends ConfigSources {
  /** Command line that starts this program again. */
  readonly command: readonly string[];
}

/** True if models of an architecture can run here. */
async function runs(architecture: string): Promise<boolean> {
  const { archs } = await import("../engine/architectures/index.ts");
  return Object.hasOwn(archs, architecture) || isFileFormat(architecture);
}

/** Loads the architectures only when a model is created from files. */
const checkModel: CheckModel = async (file) => (await import("../runtime/check-model.ts")).checkModel(file);

/** Returns once the server listens; throws for an invalid configuration, store or address. */
export async function serve(options: ServeOptions): Promise<void> {
  const config = readConfig(options);
  checkBackend(config.backend, forcedLevel(config)); // report an unusable backend now, not at the first request
  const tls = config.tls && readTls(config.tls);
  const log = makeStreamLogger(process.stderr, { now: Date.now, debug: config.debug });
  for (const warning of config.warnings) log.warn(warning);
  if (config.apiKeys.length === 0 && !isLoopback(config.host.hostname)) {
    log.warn(
      "any machine that reaches this server may use and change its models: set HEARTH_API_KEYS, or listen on HEARTH_HOST=127.0.0.1",
    );
  }
  const probed = probe(options, config, log);
  const { store: stored, own, others, lock } = await openStores(config, log);
  await ensureKey(config.home).catch((error: unknown) =>
    log.warn("no signing key: private registries will refuse requests", { error: messageOf(error) }),
  );
  const identify = identified(log);
  const tracer = config.tracing && new Tracer(identify(config.tracing));
  const loading: Loading = new Map();
  const { library, registry } = makeTransfers(config, { own, others, lock, log });
  if (canClaim(lock) && !config.noPrune) pruneDaily(own.root, { sweep: library.sweep, clock: systemClock, log });
  const store = sourced(config, { stored, library, registry, log, inUse: () => namesInUse(runtime) });
  const kernels = makeKernels(config, { ...options, log });
  const spare = spareOf(options, config, {
    kernels,
    isIdle: () => loading.size === 0 && runtime.activity().running === 0,
  });
  const runtime: Runtime = ownRuntime(options, config, { store, log, loading, spare, kernels });
  const mcp = await toolServers(options);
  const agents = agentModels(config, { runtime, store, log });
  const gateway = await openGateway(options, config, { ...agents, servers: mcp, log, tracer });
  const parts = { runtime, store, library, registry, config, log, version: VERSION, now: () => new Date() };
  const device = probed.then((at) => at.gpu ?? cpuDevice(config, at.backend, { kernels, log }));
  const machine = async (): Promise<Machine> =>
    describeMachine(config, { backend: (await probed).backend, device: await device, loading });
  const lifecycle: Lifecycle = { phase: "starting" };
  const { app, hooks, metrics, findAsset } = makeHandlers({ ...parts, gateway, machine, lifecycle, tracer, mcp });
  const { gather } = metrics;
  const exporter = config.metricExport && new MetricExporter({ ...identify(config.metricExport), gather });
  const server = startServer(app, config, tls);
  const hookListener = await startHookListener({
    hooks,
    listen: () => (gateway?.snapshot().hooks.enabled ? gateway.snapshot().hooks.listen : undefined),
    onChange: (listener) => gateway?.onChange(listener),
    log,
    tls,
  });
  await gateway?.start();
  collectWhenIdle();
  watchDescriptors(log);
  void trimSnapshots(cacheOf(config), config.snapshots);
  const servers = [server, hookListener];
  const renew = async (pair: TlsPair): Promise<void> =>
    void (await Promise.all(servers.map((each) => each.renew(pair))));
  if (config.tls) watchTls(config.tls, { log, onChange: renew });
  const telemetry = [tracer, exporter];
  stopOnSignal({ servers, runtime, spare, library, registry, gateway, config, lifecycle, telemetry, mcp, log });
  lifecycle.phase = "serving";
  spare?.prepare();
  if (config.spareRunner) buildPageAhead(findAsset, () => loading.size === 0 && runtime.activity().running === 0);
  const { backend } = await probed;
  const hooksUrl = hookListener.url();
  const also = hooksUrl === undefined ? "" : ` · hooks on ${hooksUrl}`;
  const stores = [own.root, ...others.map(({ root }) => `${root} (read only)`)].join(", ");
  greet(`Hearth ${VERSION} listens on ${server.url}${also} · backend ${backend} · ${await device} · models ${stores}`);
}

/** Writes to stdout; ignores errors, because it may be closed, full or an unread pipe. */
const greet = (line: string): void => void process.stdout.on("error", () => {}).write(`${line}\n`);

/** A collector's settings, with attributes that identify this server. */
function identified(log: Logger): <T extends OtlpTarget>(target: T) => T & OtlpOptions & { version: string } {
  const own = {
    "service.version": VERSION,
    "service.instance.id": crypto.randomUUID(),
    "host.name": hostname(),
  };
  return (target) => ({
    ...target,
    resource: { ...own, ...target.resource },
    version: VERSION,
    log,
    now: Date.now,
  });
}

/** Loads the client of tool servers only if there is a configuration file. Throws `bad_request`. */
async function toolServers(sources: ServeOptions): Promise<McpServers | undefined> {
  if (!readConfigFile(sources)) return undefined;
  return (await import("../runtime/mcp/index.ts")).readMcpServers(sources);
}

/** Loads the gateway's code only if the configuration has a section for it. Throws `bad_request` or `storage`. */
async function openGateway(
  sources: ServeOptions,
  config: Config,
  parts: Omit<OpenParts, "sources" | "config">,
): Promise<Gateway | undefined> {
  if (!hasSections(sources)) return undefined;
  const { openGateway } = await import("../gateway/operate/open.ts");
  return openGateway({ ...parts, sources, config });
}

/** Creates and transfers models in the store. */
function makeTransfers(
  config: Config,
  { own, others, lock, log }: Omit<Stores, "store"> & { log: Logger },
): { library: Library; registry: Registry } {
  const library = makeLibrary({
    root: own.root,
    others: others.map(({ root }) => root),
    runs,
    checkModel,
    importDirs: config.importDirs,
    noPrune: config.noPrune,
    log,
    lock,
  });
  const { home, modelsSource: source, modelsSourceLogin: login } = config;
  const registry = makeRegistry({ library, home, version: VERSION, runs, source, login });
  return { library, registry };
}

interface SourcedParts extends Pick<SourceParts, "library" | "registry" | "log" | "inUse"> {
  readonly stored: Store;
}

/** A store that pulls missing models from the configured source, if any. Throws `bad_request`. */
function sourced({ modelsSource, modelsCacheBytes: bytesMax, noPrune }: Config, parts: SourcedParts): Store {
  const { stored: store, ...others } = parts;
  if (modelsSource === undefined) return store;
  if (noPrune && bytesMax !== Infinity) {
    throw new AppError("bad_request", "models.cacheBytes cannot be kept where noPrune keeps every blob: unset one");
  }
  return withSource({ ...others, store, bytesMax, now: Date.now });
}

const namesInUse = (runtime: Runtime): string[] => runtime.activity().models.map(({ name }) => name);

/** The models for agents' turns: another server's if the configuration names one. */
function agentModels(
  { modelsUrl: url, modelsKey: key, loadTimeoutMs: silenceMs }: Config,
  { runtime, store, log }: { runtime: Runtime; store: Store; log: Logger },
): { runtime: ChatRuntime; models: ModelSource } {
  if (url === undefined) return { runtime, models: storedModels(store, log) };
  const remote = makeRemoteRuntime({ url, key, silenceMs, fetch, now: Date.now });
  return { runtime: remote, models: { modelNames: remote.modelNames, canChat: remote.canChat, server: url } };
}

/** The models of this machine, each in a runner process. */
function ownRuntime(
  options: ServeOptions,
  config: Config,
  parts: { store: Store; log: Logger; loading: Loading; spare: SpareRunner | undefined; kernels: Kernels },
): Runtime {
  const { store, log, loading, spare, kernels } = parts;
  const spawn = { ...spawnOptions(options, config), ...(spare && { take: () => spare.take() }) };
  return makeRuntime({
    store,
    pool: {
      backend: config.backend,
      gpuKernels: config.gpuKernels,
      simdLevel: forcedLevel(config),
      kvType: config.kvCacheType,
      ctxLen: config.contextLength,
      numParallel: config.numParallel,
      maxLoaded: config.maxLoadedModels === "auto" ? undefined : config.maxLoadedModels,
      maxQueue: config.maxQueue,
      keepAliveMs: config.keepAliveMs,
      cacheDir: cacheOf(config),
      snapshotBytes: config.snapshots,
      freeBytes: availableMemory,
      stepTimeoutMs: config.stepTimeoutMs,
      onHang: (model, pid) => log.error("a runner hung and was ended", { model, pid }),
      gpu: config.gpu,
      gpuMemory: gpuMemoryHere(config.gpuMemory),
      start: (load, signal) =>
        startRunner(load, { signal, log, spawn, loading, kernels }).finally(() => spare?.prepare()),
    },
    now: () => new Date(),
  });
}

async function startRunner(
  load: LoadMessage,
  parts: {
    signal: AbortSignal;
    log: Logger;
    spawn: Parameters<typeof RunnerProcess.start>[1];
    loading: Loading;
    kernels: Kernels;
  },
): Promise<RunnerProcess> {
  const { signal, log, spawn, loading, kernels } = parts;
  const onProgress = (fraction: number): void => void loading.set(load, fraction);
  onProgress(0);
  try {
    const tested = { ...load, simdLevel: await kernels.level() };
    const runner = await RunnerProcess.start(tested, { ...spawn, onProgress }, signal);
    logLoad(log, runner.info, load);
    return runner;
  } finally {
    loading.delete(load);
  }
}

/** Progress of each load, by its message. */
type Loading = Map<LoadMessage, number>;

/** The facts about this machine for the page. */
function describeMachine(config: Config, at: { backend: string; device: string; loading: Loading }): Machine {
  const { host, numParallel, maxLoadedModels, maxQueue, keepAliveMs, contextLength, gpuMemory, apiKeys, debug } =
    config;
  return {
    backend: at.backend,
    device: at.device,
    cores: availableParallelism(),
    memory: { total: totalMemory(), available: availableMemory() },
    settings: {
      host: `${host.hostname}:${host.port}`,
      backend: config.backend,
      num_parallel: numParallel,
      max_loaded_models: maxLoadedModels,
      max_queue: maxQueue,
      keep_alive: Number.isFinite(keepAliveMs) ? `${keepAliveMs / 1000} s` : "for ever",
      context_length: contextLength,
      gpu_memory: gpuMemory,
      api_keys: apiKeys.length,
      debug,
    },
    loading: [...at.loading.values()].map((fraction) => ({ fraction })),
  };
}

const cacheOf = ({ home }: Config): string => join(home, "cache");

/** The name of the CPU; warns if the backend was chosen automatically and the fastest kernels cannot run. */
function cpuDevice({ backend }: Config, taken: string, { kernels, log }: { kernels: Kernels; log: Logger }) {
  const reason = backend === "auto" ? slowOnCpu() : undefined;
  if (reason) log.warn(`the SIMD kernels cannot run: using the slower backend '${taken}'`, { reason });
  return kernels.device();
}

interface Stores {
  readonly store: Store;
  readonly own: Store;
  readonly others: readonly Store[];
  readonly lock: StoreLock;
}

/**
 * Our own store, with the shipped model, and read-only stores of other servers. If another server owns our store, it
 * stays unchanged.
 */
async function openStores(config: Config, log: Logger): Promise<Stores> {
  const own = await openStore(config.models);
  const lock = makeStoreLock(own.root);
  const isOurs = canClaim(lock);
  if (isOurs && !config.noPrune) {
    await pruneStore(own.root, { now: Date.now, log });
    pruneLater(own.root, { clock: systemClock, log });
  }
  const others = await openOthers(config.otherStores, { own: own.root, log });
  if (isOurs) {
    const mayWait = hasEmbedded(own);
    const installed = installEmbedded(own, { dir: programFile(EMBEDDED_MODEL) }).catch((error: unknown) =>
      log.warn("the embedded model is not available", { error: messageOf(error) }),
    );
    if (!mayWait) await installed;
  }
  return { store: withOthers(own, others), own, others, lock };
}

function canClaim(lock: StoreLock): boolean {
  try {
    lock.claim();
    return true;
  } catch {
    return false; // requests that change the store report the error
  }
}

function probe({ command, env }: ServeOptions, { backend }: Config, log: Logger): ReturnType<typeof probeInChild> {
  const question = { backend, command: [...command, "devices", "--backend", backend], env };
  return probeInChild(question).catch((error: unknown) => {
    log.warn("device probe failed", { backend, error: messageOf(error) });
    return { backend };
  });
}

function spawnOptions({ command, env }: ServeOptions, config: Config) {
  return { command: [...command, "runner"], env, loadTimeoutMs: config.loadTimeoutMs };
}

/** Starts a process for the next model in advance; undefined if the configuration disables it. */
function spareOf(
  options: ServeOptions,
  config: Config,
  { kernels, isIdle }: { kernels: Kernels; isIdle: () => boolean },
): SpareRunner | undefined {
  if (!config.spareRunner) return undefined;
  return new SpareRunner({
    spawn: () => {
      // tests libraries before a request waits for that; a request reports a failure
      kernels.level().catch(() => undefined);
      return spawnRunner(spawnOptions(options, config));
    },
    isIdle: () => isIdle() && availableMemory() > SPARE_ROOM,
    delayMs: SPARE_AFTER_MS,
  });
}
