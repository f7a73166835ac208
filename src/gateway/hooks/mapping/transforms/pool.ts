/**
 * The processes that transforms run in: a few at once, reused while their files are unchanged, and ended when unused.
 */
import { availableParallelism } from "node:os";
import { AppError } from "../../../../base/index.ts";
import { findModule, isCurrent, type ModuleVersion } from "./location.ts";
import type { TransformInput, TransformReply } from "./messages.ts";
import { CallSlots } from "./call-slots.ts";
import { TransformProcess } from "./process.ts";

/** Calls of one mapping, and of all, that may wait. */
const LANE_WAITING_MAX = 256;
const WAITING_MAX = 3 * LANE_WAITING_MAX;
const IDLE_MS = 60_000;

export interface TransformSettings {
  /** The mapping: calls of one wait for each other, not for another's. */
  readonly lane: string;
  /** Folder of the modules, absolute. */
  readonly folder: string;
  readonly module: string;
  readonly export?: string | undefined;
  /** Time limit, including the wait for a slot. */
  readonly timeoutMs: number;
  /** The total time limit, for error texts; default: `timeoutMs`. */
  readonly limitMs?: number;
}

interface Idle {
  readonly version: string;
  readonly process: TransformProcess;
  readonly timer: Timer;
}

/** Owns the processes; disposing it kills them. */
export class TransformPool implements AsyncDisposable {
  readonly #concurrency: number;
  readonly #found = new Map<string, ModuleVersion>();
  #idle: Idle[] = [];
  readonly #busy = new Set<TransformProcess>();
  readonly #slots: CallSlots;
  #isDisposed = false;

  /** @param options.concurrency processes per mapping; all mappings together have twice as many */
  constructor({ concurrency = Math.max(2, Math.min(availableParallelism(), 8)) }: { concurrency?: number } = {}) {
    this.#concurrency = concurrency;
    const waiting = { laneWaiting: LANE_WAITING_MAX, totalWaiting: WAITING_MAX };
    this.#slots = new CallSlots({ perLane: concurrency, total: 2 * concurrency, ...waiting });
  }

  /**
   * Returns a transform's result. Throws `bad_file` for an unusable module, `runner` or `timeout` for one that fails,
   * `busy` if too many calls wait.
   */
  async run(settings: TransformSettings, input: TransformInput, signal?: AbortSignal): Promise<unknown> {
    const reply = await this.#call(settings, input, signal);
    return reply.output;
  }

  /** Loads a module without calling it. Throws like `run`. */
  async check(settings: TransformSettings): Promise<void> {
    await this.#call(settings, undefined, undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const all = [...this.#busy, ...this.#idle.map((idle) => this.#forget(idle))];
    for (const process of all) process.kill();
    await Promise.all(all.map((process) => process.exited));
  }

  async #call(
    settings: TransformSettings,
    input: TransformInput | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Extract<TransformReply, { kind: "done" }>> {
    const { lane, module, timeoutMs } = settings;
    const startedMs = performance.now();
    try {
      this.#checkOpen();
      await this.#slots.enter(lane, { timeoutMs, ...(signal ? { signal } : {}) });
      try {
        this.#checkOpen();
        const leftMs = Math.max(1, timeoutMs - Math.floor(performance.now() - startedMs));
        return await this.#callNow({ limitMs: timeoutMs, ...settings, timeoutMs: leftMs }, input, signal);
      } finally {
        this.#slots.leave(lane);
      }
    } catch (error) {
      if (error instanceof AppError && !error.message.startsWith("transform '")) {
        throw new AppError(error.code, `transform '${module}': ${error.message}`, { cause: error });
      }
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#isDisposed) throw new AppError("cancelled", "the server stops");
  }

  async #callNow(
    { module, export: name, timeoutMs, limitMs = timeoutMs, folder }: TransformSettings,
    input: TransformInput | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Extract<TransformReply, { kind: "done" }>> {
    const { file, version } = this.#find(folder, module);
    const process = this.#take(version, folder);
    const reply = await this.#use(process, async () => {
      await process.ready;
      const call = { module: Bun.pathToFileURL(file).href, export: name, ...(input ? { input } : {}) };
      return process.call(call, { timeoutMs, limitMs, signal });
    });
    if (reply.kind === "failed") {
      process.kill(); // a process does not retry a module that failed to load
      throw new AppError("runner", reply.reason);
    }
    this.#keep(version, process);
    return reply;
  }

  #find(folder: string, module: string): ModuleVersion {
    const key = `${folder}\0${module}`;
    const known = this.#found.get(key);
    if (known && isCurrent(known)) return known;
    this.#found.delete(key);
    const found = findModule(folder, module);
    this.#found.set(key, found);
    return found;
  }

  /** An idle process, else a new one; the oldest idle process of another version makes room. */
  #take(version: string, folder: string): TransformProcess {
    for (const idle of this.#idle.filter((each) => each.version === version)) {
      const process = this.#forget(idle);
      if (process.isAlive) return process;
    }
    if (this.#idle.length + this.#busy.size >= this.#concurrency) {
      const [oldest] = this.#idle;
      if (oldest) this.#forget(oldest).kill();
    }
    return new TransformProcess(folder);
  }

  /** Registers the process while it works, so that disposing can find it. */
  async #use<T>(process: TransformProcess, work: () => Promise<T>): Promise<T> {
    this.#busy.add(process);
    try {
      return await work();
    } finally {
      this.#busy.delete(process);
    }
  }

  #keep(version: string, process: TransformProcess): void {
    if (this.#isDisposed || !process.isAlive) {
      process.kill();
      return;
    }
    const timer = setTimeout(() => this.#forget(idle).kill(), IDLE_MS);
    timer.unref();
    const idle: Idle = { version, process, timer };
    this.#idle.push(idle);
  }

  #forget(idle: Idle): TransformProcess {
    clearTimeout(idle.timer);
    this.#idle = this.#idle.filter((each) => each !== idle);
    return idle.process;
  }
}
