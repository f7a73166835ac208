/** Downloads and creations of models: their progress, and jobs that a closed tab left unfinished. */
import type { Kept } from "../base/kept.ts";
import { signal, type ReadonlySignal } from "@preact/signals";
import type { Api } from "../base/api.ts";
import { uploadSteps, type Phase, type Step } from "./upload-steps.ts";

export interface Job {
  readonly name: string;
  readonly kind: "pull" | "create";
  readonly state: "running" | "failed" | "paused" | "done";
  /** The server's status; blank: waiting, or downloading. */
  readonly status: string;
  /** This page's own phase, before the server's. */
  readonly phase?: Phase;
  readonly done: number;
  readonly total: number;
  /** Bytes per second, over the last seconds. */
  readonly rate: number;
  readonly error?: unknown;
}

export interface ModelFiles {
  readonly name: string;
  readonly files: readonly File[];
}

type Steps = (signal: AbortSignal) => AsyncIterable<Step>;

const UNFINISHED = "hearth-pulls";
const RATE_OVER_MS = 4000;
const SHOWN_EVERY_MS = 100;

export interface JobParts {
  readonly api: Api;
  readonly storage: Kept;
  /** Called when a model is complete. */
  readonly onDone: () => void;
}

export class Jobs {
  readonly #parts: JobParts;
  readonly #list = signal<readonly Job[]>([]);
  readonly #stops = new Map<string, AbortController>();
  /** Downloads that the user allows without TLS. */
  readonly #insecure = new Set<string>();

  constructor(parts: JobParts) {
    this.#parts = parts;
    this.#list.value = unfinished(parts.storage).map((name): Job => ({ ...NEW, name, kind: "pull", state: "paused" }));
  }

  get list(): ReadonlySignal<readonly Job[]> {
    return this.#list;
  }

  /** Pulls a model; the server resumes its partial download. */
  async pull(name: string, { insecure = false }: { readonly insecure?: boolean } = {}): Promise<void> {
    if (insecure) this.#insecure.add(name);
    const more = this.#insecure.has(name) ? { insecure: true } : {};
    const body = { model: name, ...more };
    await this.#run({ name, kind: "pull", steps: (signal) => this.#lines("/api/pull", body, signal) });
  }

  async create(name: string, modelfile: string, quantize: string): Promise<void> {
    const body = { model: name, modelfile, ...(quantize === "" ? {} : { quantize }) };
    await this.#run({ name, kind: "create", steps: (signal) => this.#lines("/api/create", body, signal) });
  }

  /** Creates a model from files of this device. */
  async add({ name, files }: ModelFiles): Promise<void> {
    const { api } = this.#parts;
    await this.#run({ name, kind: "create", steps: (signal) => uploadSteps({ api, name, files, signal }) });
  }

  pause(name: string): void {
    this.#stops.get(name)?.abort();
  }

  forget(name: string): void {
    this.pause(name);
    this.#list.value = this.#list.peek().filter((job) => job.name !== name);
    this.#keep();
  }

  /** Restores a removed download. */
  remember(job: Job): void {
    if (this.#stops.has(job.name)) return;
    this.#set({ ...job, state: job.state === "running" ? "paused" : job.state });
    this.#keep();
  }

  #lines(path: string, body: object, signal: AbortSignal): AsyncIterable<Step> {
    return this.#parts.api.lines<Step>(path, { body, signal });
  }

  async #run({ name, kind, steps }: Pick<Job, "name" | "kind"> & { steps: Steps }): Promise<void> {
    if (this.#stops.has(name)) return;
    const stopping = new AbortController();
    this.#stops.set(name, stopping);
    this.#set({ ...NEW, name, kind, state: "running" });
    this.#keep();
    const progress = makeProgress();
    try {
      for await (const step of steps(stopping.signal)) {
        const shown = progress(step);
        if (shown) this.#set({ name, kind, state: "running", ...shown });
      }
      this.#set({ ...this.#of(name), state: "done" });
    } catch (error) {
      const isPaused = stopping.signal.aborted;
      const end = isPaused ? ({ state: "paused" } as const) : ({ state: "failed", error } as const);
      if (this.#list.peek().some((job) => job.name === name)) this.#set({ ...this.#of(name), ...end });
    } finally {
      this.#stops.delete(name);
      this.#keep();
      this.#parts.onDone();
    }
  }

  #of(name: string): Job {
    return this.#list.peek().find((job) => job.name === name) ?? { ...NEW, name, kind: "pull", state: "paused" };
  }

  #set(job: Job): void {
    const others = this.#list.peek().filter(({ name }) => name !== job.name);
    this.#list.value = [...others, job].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Stores unfinished pulls for the next tab. */
  #keep(): void {
    const names = this.#list
      .peek()
      .flatMap(({ name, kind, state }) => (kind === "pull" && state !== "done" ? [name] : []));
    this.#parts.storage.setItem(UNFINISHED, JSON.stringify(names));
  }
}

const NEW = { status: "", done: 0, total: 0, rate: 0 } as const;

function unfinished(storage: Kept): string[] {
  try {
    const names: unknown = JSON.parse(storage.getItem(UNFINISHED) ?? "[]");
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    return [];
  }
}

/** Adds up the progress of a model's blobs. Undefined: nothing to show yet. */
function makeProgress(): (step: Step) => Pick<Job, "status" | "phase" | "done" | "total" | "rate"> | undefined {
  const blobs = new Map<string, { done: number; total: number }>();
  const recent: { atMs: number; done: number }[] = [];
  let shownAtMs = 0;
  let last: Phase | undefined;
  return ({ status, phase, digest, total = 0, completed = 0 }) => {
    if (phase !== last) {
      blobs.clear();
      recent.length = 0;
      last = phase;
    }
    if (digest !== undefined) blobs.set(digest, { done: completed, total });
    const sums = [...blobs.values()].reduce((a, b) => ({ done: a.done + b.done, total: a.total + b.total }), {
      done: 0,
      total: 0,
    });
    const atMs = performance.now();
    if (digest !== undefined && atMs - shownAtMs < SHOWN_EVERY_MS && completed < total) return undefined;
    shownAtMs = atMs;
    recent.push({ atMs, done: sums.done });
    while (recent.length > 2 && atMs - recent[0]!.atMs > RATE_OVER_MS) recent.shift();
    const first = recent[0]!;
    const rate = atMs - first.atMs > 200 ? ((sums.done - first.done) * 1000) / (atMs - first.atMs) : 0;
    return { status: digest === undefined ? status : "", ...sums, rate, ...(phase === undefined ? {} : { phase }) };
  };
}
