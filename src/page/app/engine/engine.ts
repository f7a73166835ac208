/**
 * Hearth's engine in this page: the model in memory, the page's storage, and the requests to both. It is fetched on
 * first use.
 */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { PageRuntime, PageRuntimeOptions, PageWait } from "../../engine/runtime.ts";
import type { Kept } from "../../engine/kept.ts";
import { addressOf, type Api } from "../base/api.ts";
import { bytesText } from "../base/format.ts";
import type { Answerer, AnswerEvent, Question } from "../chat/answers.ts";
import type { Words } from "../words/index.ts";
import { startWorker } from "./script.ts";

export interface PageModel {
  readonly name: string;
  readonly backend: string;
  readonly device: string;
  readonly contextLength: number;
  readonly bytes: number;
}

export interface EngineParts {
  readonly api: Api;
  /** `auto`, or the name of a backend. */
  readonly backend: () => string;
  readonly notify: (text: string) => void;
  readonly words: () => Words;
}

/** Fetched on first use of an engine. */
const loadEngine = () => import("./load.ts");

export class Engine {
  readonly #parts: EngineParts;
  readonly #model = signal<PageModel | undefined>(undefined);
  readonly #kept = signal<readonly Kept[] | undefined>(undefined);
  #runtime: Promise<PageRuntime> | undefined;
  #onWait: (wait: PageWait) => void = () => {};

  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  get #words(): Words["engine"] {
    return this.#parts.words().engine;
  }

  /** The model in memory. */
  get model(): ReadonlySignal<PageModel | undefined> {
    return this.#model;
  }

  /** The content of the page's storage; undefined: not read yet. */
  get kept(): ReadonlySignal<readonly Kept[] | undefined> {
    return this.#kept;
  }

  async unload(): Promise<void> {
    (await this.#runtime)?.unload();
  }

  async lookAtKept(): Promise<void> {
    this.#kept.value = await (await import("../../engine/kept.ts")).listKept();
  }

  async removeKept(kept: Kept): Promise<void> {
    await (await import("../../engine/kept.ts")).removeKept(kept);
    await this.lookAtKept();
  }

  /**
   * Removes stored models that the server no longer has.
   * @param digests of its models
   */
  async dropGone(digests: ReadonlySet<string>): Promise<void> {
    if (!window.isSecureContext) return;
    await this.lookAtKept();
    for (const kept of this.#kept.value ?? []) {
      if (kept.digest !== "" && (await this.#isGone(kept, digests))) await this.removeKept(kept);
    }
  }

  async #isGone({ of, digest }: Kept, digests: ReadonlySet<string>): Promise<boolean> {
    if (of === "webllm") return !digests.has(digest);
    const headers = { ...this.#parts.api.headers() };
    return (await fetch(addressOf(`/api/blobs/sha256:${digest}`), { method: "HEAD", headers })).status === 404;
  }

  /** Answers chats. */
  readonly answer: Answerer = (question, signal) => this.#answer(question, signal);

  async *#answer(question: Question, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
    if (!window.isSecureContext) {
      throw new Error(this.#words.insecure);
    }
    yield { kind: "wait", text: this.#words.starting };
    const { eventsOf } = await loadEngine();
    const runtime = await (this.#runtime ??= this.#start());
    yield* eventsOf(runtime, {
      advice: this.#words.advice,
      question,
      signal,
      listen: (take) => (this.#onWait = (wait) => take(this.#tell(wait))),
    });
  }

  async #start(): Promise<PageRuntime> {
    const { api, backend } = this.#parts;
    const { makeRuntime } = await loadEngine();
    return makeRuntime({
      startWorker: () => startWorker("hearth-worker"),
      backend,
      headers: () => api.headers(),
      find: (model) => api.json("/api/parts", { body: { model } }),
      onWait: (wait) => this.#onWait(wait),
      onModel: (model) => this.#changed(model),
    });
  }

  #changed(model: Parameters<PageRuntimeOptions["onModel"]>[0]): void {
    if (!model) return void (this.#model.value = undefined);
    const { name, info } = model;
    const bytes = info.bytes.weights + info.bytes.kv + info.bytes.scratch;
    this.#model.value = { name, backend: info.backend, device: info.device, contextLength: info.ctxLen, bytes };
    if (!("gpu" in navigator)) {
      this.#parts.notify(this.#words.noWebGpu);
    }
  }

  #tell(wait: PageWait): Extract<AnswerEvent, { kind: "wait" }> {
    if (wait.kind === "loading") return { kind: "wait", text: this.#words.loading, fraction: wait.fraction };
    if (wait.kind === "storing") {
      const { done, total } = wait;
      const text = this.#words.fetching(bytesText(done), bytesText(total));
      return { kind: "wait", text, fraction: total > 0 ? done / total : 0 };
    }
    if (wait.kind === "busy") return { kind: "wait", text: this.#words.busy };
    this.#parts.notify(this.#words.notKept(wait.reason));
    return { kind: "wait", text: this.#words.reading };
  }
}
