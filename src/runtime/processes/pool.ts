/**
 * The models in memory, one runner process each. Requests lease a runner; the pool loads on demand (one load at a
 * time), reloads when load options change, unloads when `keep_alive` has passed, and evicts when there are too many
 * models or too little memory.
 */
import { abortable, AppError, assert, once, reasonOf, shuttingDown } from "../../base/index.ts";
import type { LoadingOptions, LoadMessage } from "../../engine/index.ts";
import { compatible, describe, countBorrower, slotsOf, stays, type Entry } from "./entry.ts";
import { evictionOrder, victimOf } from "./eviction-order.ts";
import { startWithRoom } from "./gpu-room.ts";
import { modelActivity } from "./model-activity.ts";
import { loadMessage, weightsKey, type PoolModel, type PoolOptions, type PoolWeights } from "./load-message.ts";
import { freeBeside, neededBytes, promisedBytes } from "./room.ts";
import { entryOf, offeredPaths, supersededBy } from "./shared-base.ts";
import type { RunnerClient } from "./runner-client.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { Activity, HungModel, LoadedModel } from "../requests/runtime.ts";

/** Default number of loaded models on a machine without a GPU. */
const MAX_LOADED_AUTO = 3;
/** A model is loaded in addition to others only if it fits into this share of the free memory. */
const MEMORY_SHARE = 0.8;
/** setTimeout's longest delay. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Limits of the list of hangs: age and length. */
const HUNG_SHOWN_MS = 10 * 60_000;
const HUNG_MAX = 20;
/** `expires_at` of a model that never expires: far away, yet a valid time in every client. */
const FOREVER_MS = 100 * 365 * 24 * 3600 * 1000;

/** One request's use of a runner. */
export interface Lease<R extends RunnerClient = RunnerClient> {
  readonly runner: R;
  /** Returns whether the runner died without a message since it was last idle: it may not have received the request. */
  wasSilent(): boolean;
  /** Resolves once a dead runner is removed: the next lease starts another. */
  readonly ended: Promise<void>;
  release(): void;
}

interface LeaseRequest {
  readonly options: LoadingOptions;
  readonly keepAliveMs: number | undefined;
  readonly signal: AbortSignal;
}

/** Owns the runners; `close` ends them all. */
export class Pool {
  readonly #options: PoolOptions;
  /** By weights key. */
  readonly #entries = new Map<string, Entry>();
  #loading: Promise<void> = Promise.resolve();
  /** Models of requests that wait for a load. */
  readonly #queued: PoolModel[] = [];
  /** Aborted by `close`, for requests that wait for a model. */
  readonly #closing = new AbortController();
  readonly #events = { load: 0, unload: 0, evict: 0, crash: 0, hang: 0 };
  /** Runners that hung; the latest is last. */
  #hung: HungModel[] = [];
  /** Counts of runners that have ended. */
  readonly #images = { encoded: 0, reused: 0 };

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** A runner of that model, loaded if needed. The caller releases it. */
  async acquire(model: PoolModel, request: LeaseRequest): Promise<Lease<RunnerProcess>> {
    const wanted = loadMessage(model, request.options, this.#options);
    for (;;) {
      this.#checkWanted(request.signal);
      const entry = entryOf(this.#entries.values(), model);
      if (entry && stays(entry) && compatible(entry, wanted, request.options)) {
        return this.#lease(entry, model, request);
      }
      const lease = await this.#inTurn(model, request.signal, () => this.#load(model, wanted, request));
      if (lease) return lease;
    }
  }

  /** Unloads a model once it is idle, or, if forced, at once; then its requests fail. */
  unload(weights: PoolWeights, isForced = false): void {
    const entry = entryOf(this.#entries.values(), weights);
    if (!entry) return;
    entry.expiring = true;
    if (isForced) this.#cut(entry, "force", new AppError("runner", `model '${entry.model.name}' was stopped by force`));
    else if (entry.users === 0) void this.#end(entry);
  }

  /** Models in memory, the one that expires last first. */
  loaded(): LoadedModel[] {
    const isShown = (entry: Entry): boolean => entry.users > 0 || !entry.expiring; // hides an expiring model once idle
    const ready = [...this.#entries.values()].filter((entry) => entry.runner?.alive && isShown(entry));
    return ready.toSorted((a, b) => b.expiresAtMs - a.expiresAtMs).flatMap(describe);
  }

  activity(): Activity {
    const entries = [...this.#entries.values()];
    const runners = entries.flatMap(({ runner }) => runner ?? []);
    const users = entries.map((entry) => entry.users);
    const running = entries.map((entry) => Math.min(entry.users, slotsOf(entry)));
    const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
    return {
      running: sum(running),
      waiting: this.#queued.length + sum(users) - sum(running),
      events: { ...this.#events },
      hung: this.#hung.filter(({ at }) => Date.now() - at < HUNG_SHOWN_MS),
      images: {
        encoded: this.#images.encoded + sum(runners.map(({ images }) => images.encoded)),
        reused: this.#images.reused + sum(runners.map(({ images }) => images.reused)),
      },
      models: modelActivity(entries, this.#queued),
      modelsMax: this.#options.maxLoaded ?? MAX_LOADED_AUTO,
    };
  }

  /** Refuses requests that wait for a model, lets the others finish for at most `graceMs`, then ends every runner. */
  async close(graceMs: number): Promise<void> {
    this.#closing.abort(shuttingDown());
    const deadline = Date.now() + graceMs;
    while (Date.now() < deadline && [...this.#entries.values()].some((entry) => entry.users > 0)) await Bun.sleep(20);
    await Promise.all([...this.#entries.values()].map((entry) => this.#end(entry, shuttingDown())));
  }

  async #lease(entry: Entry, model: PoolModel, request: LeaseRequest): Promise<Lease<RunnerProcess>> {
    if (entry.users >= slotsOf(entry) + this.#options.maxQueue) throw tooBusy();
    if (entry.users === 0) entry.receivedIdle = entry.runner?.received;
    entry.users++;
    const leave = countBorrower(entry, model);
    entry.keepAliveMs = request.keepAliveMs ?? entry.keepAliveMs;
    clearTimeout(entry.timer);
    this.#touch(entry);
    const released = once(() => {
      leave();
      this.#release(entry);
    });
    try {
      const runner = await this.#wait(entry.starting, request.signal);
      const wasSilent = (): boolean => !runner.alive && entry.cut !== "force" && runner.received === entry.receivedIdle;
      return { runner, wasSilent, ended: entry.closed.promise, release: released };
    } catch (error) {
      released();
      throw error;
    }
  }

  #release(entry: Entry): void {
    entry.users--;
    assert(entry.users >= 0, `runner of ${entry.model.name} released too often`);
    if (entry.users > 0) return;
    if (!entry.runner) return this.#giveUp(entry);
    if (entry.expiring || entry.keepAliveMs <= 0) return void this.#end(entry);
    this.#touch(entry);
    this.#expireInTime(entry);
  }

  /** The last request that waited for this load has left; later requests wait for the next load. */
  #giveUp(entry: Entry): void {
    entry.expiring = true;
    entry.abort.abort();
  }

  #expireInTime(entry: Entry): void {
    if (entry.keepAliveMs === Infinity) return;
    const leftMs = entry.expiresAtMs - Date.now();
    const rest = (): void => (leftMs > TIMER_MS_MAX ? this.#expireInTime(entry) : this.unload(entry.model));
    entry.timer = setTimeout(rest, Math.min(leftMs, TIMER_MS_MAX));
  }

  /** Called at the start of each use and at its end. */
  #touch(entry: Entry): void {
    entry.usedAtMs = Date.now();
    entry.expiresAtMs = entry.usedAtMs + Math.min(entry.keepAliveMs, FOREVER_MS);
  }

  async #end(entry: Entry, why?: AppError): Promise<void> {
    entry.expiring = true;
    clearTimeout(entry.timer);
    entry.abort.abort();
    await entry.runner?.close(why);
    this.#forget(entry);
  }

  #cut(entry: Entry, how: "hang" | "force", why: AppError): void {
    entry.expiring = true;
    entry.cut = how;
    entry.abort.abort(why);
    entry.runner?.end(why);
  }

  /** Handles a runner without progress: its requests fail, and the next one gets a new runner. */
  #hang(entry: Entry): void {
    const { onHang, stepTimeoutMs = Infinity } = this.#options;
    const { name } = entry.model;
    const limit = `${stepTimeoutMs / 1000} s (HEARTH_STEP_TIMEOUT)`;
    this.#hung = [...this.#hung, { name, at: Date.now() }].slice(-HUNG_MAX);
    onHang?.(name, entry.runner?.pid);
    const why = `model '${name}': its runner hung and was ended: no progress in ${limit}`;
    this.#cut(entry, "hang", new AppError("runner", why));
  }

  #forget(entry: Entry): void {
    clearTimeout(entry.timer);
    if (entry.runner && this.#entries.get(weightsKey(entry.model)) === entry)
      this.#events[entry.cut === "hang" ? "hang" : entry.expiring ? "unload" : "crash"]++;
    entry.expiring = true;
    if (this.#entries.get(weightsKey(entry.model)) === entry) {
      this.#entries.delete(weightsKey(entry.model));
      this.#images.encoded += entry.runner?.images.encoded ?? 0;
      this.#images.reused += entry.runner?.images.reused ?? 0;
    }
    entry.closed.resolve();
  }

  /** Runs `work` after all earlier work; refuses it if too many requests wait. */
  async #inTurn<T>(model: PoolModel, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#queued.length >= this.#options.maxQueue) throw tooBusy();
    this.#queued.push(model);
    const before = this.#loading;
    const turn = Promise.withResolvers<void>();
    this.#loading = turn.promise;
    try {
      await this.#wait(before, signal);
      return await work();
    } finally {
      this.#queued.splice(this.#queued.indexOf(model), 1);
      void before.then(turn.resolve); // a client that leaves the queue must not let the next one overtake
    }
  }

  /** Awaits a promise; throws sooner if the client leaves or the pool closes. */
  #wait<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
    return abortable(promise, [signal, this.#closing.signal]);
  }

  #checkWanted(signal: AbortSignal): void {
    for (const each of [signal, this.#closing.signal]) if (each.aborted) throw reasonOf(each);
  }

  /** Makes room and loads; undefined if another request loaded the model meanwhile. */
  async #load(model: PoolModel, wanted: LoadMessage, request: LeaseRequest): Promise<Lease<RunnerProcess> | undefined> {
    const present = entryOf(this.#entries.values(), model);
    if (present && stays(present) && compatible(present, wanted, request.options)) return undefined;
    await model.check?.();
    const superseded = supersededBy(this.#entries.values(), model);
    for (const old of new Set(present ? [present, ...superseded] : superseded)) {
      await this.#retire(old, request.signal);
    }
    await this.#makeRoom(model, request.signal);
    this.#checkWanted(request.signal);
    const offers = await offeredPaths(model, this.#freeBytes());
    const load = { ...wanted, offers, cacheMemory: this.#cacheMemory(model) };
    const abort = new AbortController();
    const entry: Entry = {
      model,
      load,
      starting: this.#start(load, abort.signal),
      abort,
      closed: Promise.withResolvers<void>(),
      runner: undefined,
      users: 0,
      keepAliveMs: this.#options.keepAliveMs,
      expiresAtMs: 0,
      timer: undefined,
      receivedIdle: undefined,
      expiring: false,
      cut: undefined,
      usedAtMs: Date.now(),
      beside: new Map(),
    };
    this.#entries.set(weightsKey(model), entry);
    const settled = entry.starting.then(
      (runner) => {
        entry.runner = runner;
        this.#events.load++;
        runner.watch(this.#options.stepTimeoutMs ?? Infinity, () => this.#hang(entry));
        void runner.exited.then(() => this.#forget(entry));
        if (entry.abort.signal.aborted) void this.#end(entry); // it finished loading before it saw the abort
      },
      () => this.#forget(entry),
    );
    try {
      return await this.#lease(entry, model, request);
    } finally {
      await settled; // one load at a time, even if its first client has left
    }
  }

  #start(load: LoadMessage, signal: AbortSignal): Promise<RunnerProcess> {
    return startWithRoom(load, {
      neighbours: () => evictionOrder([...this.#entries.values()]),
      evict: async (entry) => {
        this.#events.evict++;
        await this.#end(entry);
      },
      start: (wanted) => this.#options.start(wanted, signal),
    });
  }

  /** Half of the memory that the model would leave free: other programs and the next model need memory, too. */
  #cacheMemory(model: PoolModel): number {
    const promised = promisedBytes(this.#residents());
    return Math.max(0, this.#freeBytes() - promised - neededBytes(model, this.#options.backend)) / 2;
  }

  #freeBytes(): number {
    const { freeBytes, backend } = this.#options;
    return freeBeside(this.#residents(), freeBytes(), backend);
  }

  #residents() {
    return [...this.#entries.values()].map(({ model, load, runner }) => ({ model, load, info: runner?.info }));
  }

  async #makeRoom(model: PoolModel, signal: AbortSignal): Promise<void> {
    const limit = this.#options.maxLoaded ?? MAX_LOADED_AUTO;
    while (this.#entries.size > 0 && !signal.aborted) {
      const fits = neededBytes(model, this.#options.backend) <= MEMORY_SHARE * this.#freeBytes();
      if (this.#entries.size < limit && fits) return;
      this.#events.evict++;
      await this.#retire(victimOf([...this.#entries.values()]), signal);
    }
  }

  /** Ends an entry once its requests are done. */
  async #retire(entry: Entry, signal: AbortSignal): Promise<void> {
    entry.expiring = true;
    if (entry.users === 0) await this.#end(entry);
    else await this.#wait(entry.closed.promise, signal);
  }
}

const tooBusy = (): AppError =>
  new AppError("busy", "server busy, please try again.  maximum pending requests exceeded");
