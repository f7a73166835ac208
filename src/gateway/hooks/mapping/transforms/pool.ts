/**
 * The processes that transforms run in: a few at once, kept for the next call while their files stay the same, and no
 * longer than they are of use.
 */
import { availableParallelism } from "node:os";
import { AppError } from "../../../../base/index.ts";
import { findModule, isCurrent, type ModuleVersion } from "./location.ts";
import type { TransformInput, TransformReply } from "./messages.ts";
import { Places } from "./places.ts";
import { TransformProcess } from "./process.ts";

/** Calls of one mapping that may wait, and calls of all. */
const LANE_WAITING_MAX = 256;
const WAITING_MAX = 3 * LANE_WAITING_MAX;
const IDLE_MS = 60_000;

export interface TransformSettings {
  /** The mapping: calls of one wait for each other, not for those of another. */
  readonly lane: string;
  /** Folder that modules must be in, absolute. */
  readonly folder: string;
  readonly module: string;
  readonly export?: string | undefined;
  /** With the time that a call waits for its turn. */
  readonly timeoutMs: number;
  /** The time of which that is left, as an error names it; left out: `timeoutMs`. */
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
  readonly #places: Places;
  #isDisposed = false;

  /** @param options.concurrency processes of one mapping; of all together twice as many */
  constructor({ concurrency = Math.max(2, Math.min(availableParallelism(), 8)) }: { concurrency?: number } = {}) {
    this.#concurrency = concurrency;
    const waiting = { laneWaiting: LANE_WAITING_MAX, totalWaiting: WAITING_MAX };
    this.#places = new Places({ perLane: concurrency, total: 2 * concurrency, ...waiting });
  }

  /**
   * What a transform returns. Throws `bad_file` for a module that cannot be used, `runner` or `timeout` for one that
   * fails, `busy` when too many calls wait.
   */
  async run(settings: TransformSettings, input: TransformInput, signal?: AbortSignal): Promise<unknown> {
    const reply = await this.#call(settings, input, signal);
    return reply.output;
  }

  /** Loads a module and calls nothing. Throws as `run` does. */
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
      await this.#places.enter(lane, { timeoutMs, ...(signal ? { signal } : {}) });
      try {
        this.#checkOpen();
        const leftMs = Math.max(1, timeoutMs - Math.floor(performance.now() - startedMs));
        return await this.#callNow({ limitMs: timeoutMs, ...settings, timeoutMs: leftMs }, input, signal);
      } finally {
        this.#places.leave(lane);
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
      process.kill(); // a module that failed to load stays failed in its process
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

  /** One that is idle, else a new one; of another version's idle ones the oldest makes room. */
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

  /** While it works, disposing can find it. */
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
