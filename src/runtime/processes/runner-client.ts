/**
 * The client side of a runner: turns its messages into promises and async generators, and ends it reliably. A runner
 * that dies fails only the requests on its own model. The channel is a parameter: a child process (`runner-process.ts`)
 * or a Worker of a page.
 */
import { AppError, assert } from "../../base/index.ts";
import {
  type AnswerSettings,
  type PromptInput,
  type EmbedMessage,
  type EngineInfo,
  type GenerateMessage,
  LOADED_TEMPLATE,
  type Reply,
  type SequenceEvent,
  type SpeechEvent,
  type StreamedCounts,
  type TemplateChoice,
  type TemplateReply,
  type ToRunner,
  type TranscribeMessage,
} from "../../engine/index.ts";
import type { TemplateFacts } from "../../engine/text/index.ts";
import {
  toError,
  type Connected,
  type RunnerProgress,
  type ImageCounts,
  type Listener,
  type Transport,
} from "./connect.ts";
import { makeQueue } from "./event-queue.ts";
import { makeHeartbeat } from "./heartbeat.ts";

/** The longest time for a runner to close before it is killed. */
const CLOSE_GRACE_MS = 2000;

/** The longest time for a killed runner to end: the system keeps it while a driver hangs. */
const KILL_MS = 3000;

/** Templates that a runner keeps compiled; others are sent again when needed. */
const TEMPLATES_MAX = 16;

export type RunnerEvent = Exclude<SequenceEvent, { kind: "error" }>;

/** Returns whether an event is about the prompt. */
export const isReport = <T extends { readonly kind: string }>(
  event: T,
): event is Extract<T, { kind: "prompt" | "progress" | "promptLogprobs" }> =>
  event.kind === "prompt" || event.kind === "progress" || event.kind === "promptLogprobs";

export interface KnownTemplate {
  readonly number: number;
  readonly facts: TemplateFacts;
}

/** Owns the runner; `close` or `kill` ends it. */
export class RunnerClient {
  readonly info: EngineInfo;
  readonly images: ImageCounts;
  readonly #transport: Transport;
  readonly #listeners: Map<number, Listener>;
  /** By choice, most recently used last. */
  readonly #templates = new Map<string, { readonly number: number; readonly reply: Promise<TemplateReply> }>();
  readonly #progress: RunnerProgress;
  /** Tokens of each generation, prompt and answer: the use of its slot. */
  readonly #kept = new Map<number, number>();
  #nextId = 1;
  #nextTemplate = LOADED_TEMPLATE + 1;
  #dead: AppError | undefined;
  readonly #ended = Promise.withResolvers<AppError>();
  /** The reason of its closing, and the error of its unfinished requests. */
  #why: AppError | undefined;

  constructor({ transport, load, ready, listeners, progress, images }: Connected) {
    this.info = ready.info;
    this.images = images;
    this.#templates.set(keyOf(load.template), { number: LOADED_TEMPLATE, reply: Promise.resolve(ready.template) });
    this.#progress = progress;
    this.#transport = transport;
    this.#listeners = listeners;
    void transport.exited.then((error) => this.#fail(this.#why ?? error));
  }

  #fail(error: AppError): void {
    if (this.#dead) return;
    this.#dead = error;
    this.#progress.heartbeat.stop();
    for (const listener of this.#listeners.values()) listener.fail(error);
    this.#ended.resolve(error);
  }

  /** From now on, calls `onHang` if the runner makes no progress for `timeoutMs` while requests wait for it. */
  watch(timeoutMs: number, onHang: () => void): void {
    if (!Number.isFinite(timeoutMs)) return;
    this.#progress.heartbeat = makeHeartbeat({
      timeoutMs,
      ping: () => {
        if (this.alive) this.#send({ kind: "ping" });
      },
      isAwaited: () => this.#listeners.size > 0,
      onHang,
    });
  }

  /** Fails its requests and kills it, without waiting. */
  end(why: AppError): void {
    this.#fail(why);
    this.kill();
  }

  /** False once it has ended, or has announced its end. */
  get alive(): boolean {
    return !this.#dead && !this.#progress.isLeaving;
  }

  /** Resolves with the cause once it has ended or was given up. */
  get exited(): Promise<AppError> {
    return this.#ended.promise;
  }

  /** Number of messages received: an equal number later means silence in between. */
  get received(): number {
    return this.#progress.count;
  }

  /** Reads of weights that do not fit in memory, by the last messages; undefined: all fit. */
  get streamed(): (StreamedCounts & { readonly memory: number }) | undefined {
    const { streamed } = this.info;
    return streamed && { ...streamed, ...(this.#progress.streamed ?? { hits: 0, misses: 0, bytes: 0 }) };
  }

  /** Tokens in the slots of running generations, by the last messages. */
  get kvTokens(): number {
    return this.#kept.values().reduce((sum, tokens) => sum + tokens, 0);
  }

  /** An id for one request, for later messages. */
  newId(): number {
    return this.#nextId++;
  }

  /** Runs one request. Ending the generator, or the signal, stops the model before its next step. */
  async *generate(
    { id = this.newId(), ...request }: Omit<GenerateMessage, "kind" | "id"> & { readonly id?: number },
    signal: AbortSignal,
  ): AsyncGenerator<RunnerEvent, void, void> {
    const queue = makeQueue<RunnerEvent>();
    const abort = (): void => queue.fail(new AppError("cancelled", "request canceled"));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    this.#listen(id, {
      event: (event) => {
        if (event.kind === "error") return queue.fail(toError(event));
        if (event.kind === "prompt") this.#kept.set(id, event.tokens);
        else if (event.kind === "text") this.#kept.set(id, (this.#kept.get(id) ?? 0) + 1);
        queue.push(event);
      },
      fail: queue.fail,
    });
    let finished = false;
    try {
      this.#send({ kind: "generate", id, ...request });
      while (!finished) {
        const event = await queue.next();
        finished = event.kind === "done";
        yield event;
      }
    } finally {
      signal.removeEventListener("abort", abort);
      this.#listeners.delete(id);
      this.#kept.delete(id);
      if (!finished && this.alive) this.#send({ kind: "cancel", id });
    }
  }

  /** Transcribes speech. Ending the generator, or the signal, stops the model after its next token. */
  async *transcribe(
    request: Omit<TranscribeMessage, "kind" | "id">,
    signal: AbortSignal,
  ): AsyncGenerator<SpeechEvent, void, void> {
    const id = this.newId();
    const queue = makeQueue<SpeechEvent>();
    const abort = (): void => queue.fail(new AppError("cancelled", "request canceled"));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    this.#listen(id, { speech: queue.push, fail: queue.fail });
    let finished = false;
    try {
      this.#send({ kind: "transcribe", id, ...request });
      while (!finished) {
        const event = await queue.next();
        finished = event.kind === "transcribed";
        yield event;
      }
    } finally {
      signal.removeEventListener("abort", abort);
      this.#listeners.delete(id);
      if (!finished && this.alive) this.#send({ kind: "cancel", id });
    }
  }

  /** Releases the prompt that a request held. */
  forget(id: number): void {
    if (this.alive) this.#send({ kind: "forget", id });
  }

  /** Registers a template for prompts. Throws if the template is invalid. */
  async template(choice: TemplateChoice): Promise<KnownTemplate> {
    const key = keyOf(choice);
    const known = this.#templates.get(key) ?? this.#define(choice);
    this.#templates.delete(key);
    this.#templates.set(key, known);
    if (this.#templates.size > TEMPLATES_MAX) this.#dropOldest();
    const reply = await known.reply;
    if ("code" in reply) throw toError(reply);
    return { number: known.number, facts: reply.facts };
  }

  #define(choice: TemplateChoice): { number: number; reply: Promise<TemplateReply> } {
    const number = this.#nextTemplate++;
    const asked = this.#ask("template", (id) => ({ kind: "template", id, number, choice }));
    asked.catch(() => this.#templates.delete(keyOf(choice))); // the runner died: its waiting requests get the error
    return { number, reply: asked.then(({ reply }) => reply) };
  }

  #dropOldest(): void {
    const [oldest] = this.#templates;
    assert(oldest, "expected a template to drop, got none");
    this.#templates.delete(oldest[0]);
    this.#send({ kind: "drop", number: oldest[1].number });
  }

  /** The number of tokens in a generation's whole prompt. */
  async countTokens(asked: PromptInput): Promise<number> {
    return (await this.#ask("count", (id) => ({ kind: "count", id, asked }))).tokens;
  }

  /** The prompt text of a generation with these settings. */
  async render(asked: PromptInput, settings: AnswerSettings): Promise<string> {
    return (await this.#ask("text", (id) => ({ kind: "render", id, asked, settings }))).text;
  }

  /** The ids of a text, and on request the bytes of each. */
  async tokenize(
    question: Omit<Extract<ToRunner, { kind: "tokenize" }>, "kind" | "id">,
  ): Promise<{ tokens: Int32Array; pieces?: readonly Uint8Array[] }> {
    return this.#ask("tokens", (id) => ({ kind: "tokenize", id, ...question }));
  }

  /** Throws `bad_request` for an id outside the vocabulary. */
  async detokenize(tokens: readonly number[]): Promise<string> {
    return (await this.#ask("text", (id) => ({ kind: "detokenize", id, tokens }))).text;
  }

  async #ask<K extends Reply["kind"]>(
    kind: K,
    question: (id: number) => ToRunner,
  ): Promise<Extract<Reply, { kind: K }>> {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    this.#listen(id, { reply: resolve, fail: reject });
    try {
      this.#send(question(id));
      const reply = await promise;
      if (reply.kind === "refused") throw toError(reply);
      assert(reply.kind === kind, `the runner answered '${reply.kind}' where '${kind}' was asked for`);
      return reply as Extract<Reply, { kind: K }>; // checked in the line above
    } finally {
      this.#listeners.delete(id);
    }
  }

  /** Vectors of texts, in order, and the total of their tokens. Aborting the signal stops the model. */
  async embed(
    request: Omit<EmbedMessage, "kind" | "id">,
    signal: AbortSignal,
  ): Promise<{ vectors: Float32Array[]; tokens: number }> {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<{ vectors: Float32Array[]; tokens: number }>();
    const vectors: Float32Array[] = Array.from(request.inputs, () => new Float32Array(0));
    let [missing, tokens] = [vectors.length, 0];
    const abort = (): void => reject(new AppError("cancelled", "request canceled"));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
      this.#listen(id, {
        embedded: (event) => {
          const dim = event.vectors.length / event.indexes.length;
          for (const [i, index] of event.indexes.entries()) {
            vectors[index] = event.vectors.subarray(i * dim, (i + 1) * dim);
          }
          tokens += event.tokens;
          missing -= event.indexes.length;
          if (missing === 0) resolve({ vectors, tokens });
        },
        fail: reject,
      });
      this.#send({ kind: "embed", id, ...request });
      return await promise;
    } finally {
      signal.removeEventListener("abort", abort);
      this.#listeners.delete(id);
      if (missing > 0 && this.alive) this.#send({ kind: "cancel", id });
    }
  }

  /**
   * Ends the runner: asks first, and kills it if it does not end.
   * @param why the error of its unfinished requests, which get it at once
   */
  async close(why?: AppError): Promise<void> {
    if (this.#dead) return;
    this.#why ??= why;
    if (why) for (const listener of this.#listeners.values()) listener.fail(why); // hung or not
    if (this.alive) this.#send({ kind: "close" });
    const timers = [
      setTimeout(() => this.kill(), CLOSE_GRACE_MS),
      setTimeout(() => this.#fail(this.#why ?? neverEnded()), CLOSE_GRACE_MS + KILL_MS),
    ];
    await this.#ended.promise;
    timers.forEach(clearTimeout);
  }

  kill(): void {
    this.#transport.kill();
  }

  #listen(id: number, listener: Listener): void {
    if (this.#dead) throw this.#dead;
    this.#listeners.set(id, listener);
    this.#progress.heartbeat.wake();
  }

  /** A closed channel means that the runner is ending: listeners will get the error. */
  #send(message: ToRunner): void {
    if (this.#dead) throw this.#dead;
    try {
      this.#transport.send(message);
    } catch {
      this.kill();
    }
  }
}

const keyOf = ({ go, prefersGo, renderer = "", parser = "" }: TemplateChoice): string =>
  `${renderer}:${parser}:${go === undefined ? "" : `${prefersGo ? "own" : "other"}: ${go}`}`;

const neverEnded = (): AppError => new AppError("runner", "the model runner was killed and did not end");
