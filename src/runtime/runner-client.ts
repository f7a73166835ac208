/**
 * The client side of a runner: turns its messages into promises and async generators, and makes sure that it
 * ends. A runner that dies fails the requests on its own model and nothing else. What carries the messages is given: a
 * child process (`runner-process.ts`) or a Worker of a page.
 */
import { AppError, assert, type Code } from "../base/errors.ts";
import type { EmbedEvent } from "../engine/embedder.ts";
import type { EngineInfo } from "../engine/load.ts";
import type { AnswerSettings, SequenceEvent } from "../engine/sequence.ts";
import {
  LOADED_TEMPLATE,
  type Asked,
  type EmbedMessage,
  type FromRunner,
  type GenerateMessage,
  type LoadMessage,
  type Reply,
  type TemplateChoice,
  type TemplateReply,
  type ToRunner,
} from "../runner/messages.ts";
import type { TemplateFacts } from "../template/facts.ts";
import { makeWatchdog } from "./watchdog.ts";

/** How long a runner may take to close before it is killed. */
const CLOSE_GRACE_MS = 2000;

/** The way to a runner. */
export interface Transport {
  /** Throws if the channel is closed: the runner is about to end. */
  send(message: ToRunner): void;
  /** Ends it at once. */
  kill(): void;
  /** Resolves, with why, when it has ended. */
  readonly exited: Promise<AppError>;
}

export interface ConnectOptions {
  /** Fails the load when nothing was heard for so long. */
  readonly loadTimeoutMs: number;
  readonly onProgress?: (fraction: number) => void;
}

/** A runner that has loaded its model. */
export interface Connected {
  readonly transport: Transport;
  readonly load: LoadMessage;
  readonly ready: Ready;
  readonly listeners: Map<number, Listener>;
  readonly heard: Heard;
  readonly images: ImageCounts;
}

interface Heard {
  count: number;
  isLeaving: boolean;
}

/** What became of the images of prompts: made rows of, or known already. */
export type ImageCounts = Readonly<Record<"encoded" | "reused", number>>;

/** Templates that a runner is asked to render with, one beside the other; the rest are defined anew when they come. */
const TEMPLATES_MAX = 16;

/** A generation's events. */
export type RunnerEvent = Exclude<SequenceEvent, { kind: "error" }>;

/** A template that a runner knows by number. */
export interface KnownTemplate {
  readonly number: number;
  readonly facts: TemplateFacts;
}

interface Ready {
  readonly info: EngineInfo;
  readonly template: TemplateReply;
}

/** Who waits for what a runner says about one id. */
interface Listener {
  event?(event: SequenceEvent): void;
  reply?(reply: Reply): void;
  embedded?(event: Extract<EmbedEvent, { kind: "embedded" }>): void;
  fail(error: AppError): void;
}

/**
 * Has a runner load a model. Where that fails, or the signal is aborted, the runner is ended.
 * @param open gives the way to a runner that was just started
 */
export async function connect(
  load: LoadMessage,
  open: (receive: (message: FromRunner) => void) => Transport,
  { options, signal }: { options: ConnectOptions; signal: AbortSignal },
): Promise<Connected> {
  signal.throwIfAborted();
  const listeners = new Map<number, Listener>();
  const ready = Promise.withResolvers<Ready>();
  const heard: Heard = { count: 0, isLeaving: false };
  const images = { encoded: 0, reused: 0 };
  const watchdog = makeWatchdog(options.loadTimeoutMs, () =>
    ready.reject(new AppError("runner", `timed out waiting for the model runner to load ${load.path}`)),
  );
  const transport = open((message) => {
    watchdog.touch();
    heard.count++;
    if (message.kind === "ready") ready.resolve(message);
    else if (message.kind === "failed") ready.reject(new AppError(message.code, message.message));
    else if (message.kind === "progress") options.onProgress?.(message.fraction);
    else if (message.kind === "events") for (const event of message.events) listeners.get(event.id)?.event?.(event);
    else if (message.kind === "embedded") listeners.get(message.id)?.embedded?.(message);
    else if (message.kind === "embedFailed") listeners.get(message.id)?.fail(toError(message));
    else if (message.kind === "leaving") heard.isLeaving = true;
    else if (message.kind === "image") images[message.how]++;
    else listeners.get(message.id)?.reply?.(message);
  });
  const abort = (): void => ready.reject(new AppError("cancelled", "request canceled"));
  signal.addEventListener("abort", abort, { once: true });
  void transport.exited.then((error) => ready.reject(error));
  try {
    transport.send(load);
    return { transport, load, ready: await ready.promise, listeners, heard, images };
  } catch (error) {
    transport.kill();
    throw error;
  } finally {
    watchdog.stop();
    signal.removeEventListener("abort", abort);
  }
}

/** Owns the runner; `close` or `kill` ends it. */
export class RunnerClient {
  readonly info: EngineInfo;
  /** So far. */
  readonly images: ImageCounts;
  readonly #transport: Transport;
  readonly #listeners: Map<number, Listener>;
  /** By choice, used last at the end. */
  readonly #templates = new Map<string, { readonly number: number; readonly reply: Promise<TemplateReply> }>();
  readonly #heard: Heard;
  /** Tokens of each generation, prompt and answer: what its slot keeps. */
  readonly #kept = new Map<number, number>();
  #nextId = 1;
  #nextTemplate = LOADED_TEMPLATE + 1;
  #dead: AppError | undefined;
  /** Why it is being closed, for requests that it was still at. */
  #why: AppError | undefined;

  constructor({ transport, load, ready, listeners, heard, images }: Connected) {
    this.info = ready.info;
    this.images = images;
    this.#templates.set(keyOf(load.template), { number: LOADED_TEMPLATE, reply: Promise.resolve(ready.template) });
    this.#heard = heard;
    this.#transport = transport;
    this.#listeners = listeners;
    void transport.exited.then((error) => {
      const dead = (this.#dead = this.#why ?? error);
      for (const listener of this.#listeners.values()) listener.fail(dead);
    });
  }

  /** False once it has ended, or said that it is about to. */
  get alive(): boolean {
    return !this.#dead && !this.#heard.isLeaving;
  }

  /** Resolves, with why, when it has ended. */
  get exited(): Promise<AppError> {
    return this.#transport.exited;
  }

  /** Messages that came from it: the same number twice means that it was silent meanwhile. */
  get heard(): number {
    return this.#heard.count;
  }

  /** Tokens that the slots of running generations keep, as far as was heard. */
  get kvTokens(): number {
    return this.#kept.values().reduce((sum, tokens) => sum + tokens, 0);
  }

  /** An id for one request, which later messages can name. */
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

  /** Lets go of the prompt that a request held. */
  forget(id: number): void {
    if (this.alive) this.#send({ kind: "forget", id });
  }

  /** A template that prompts can name. Throws what is wrong with it. */
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
    asked.catch(() => this.#templates.delete(keyOf(choice))); // the runner died: who waits hears why
    return { number, reply: asked.then(({ reply }) => reply) };
  }

  #dropOldest(): void {
    const [oldest] = this.#templates;
    assert(oldest, "there are too many templates, and none");
    this.#templates.delete(oldest[0]);
    this.#send({ kind: "drop", number: oldest[1].number });
  }

  /** How many tokens the whole prompt has that a generation would begin with. */
  async countTokens(asked: Asked): Promise<number> {
    return (await this.#ask("count", (id) => ({ kind: "count", id, asked }))).tokens;
  }

  /** The text that a generation with these settings would begin with. */
  async render(asked: Asked, settings: AnswerSettings): Promise<string> {
    return (await this.#ask("text", (id) => ({ kind: "render", id, asked, settings }))).text;
  }

  /** The ids of a text, and the bytes of each where they are wanted. */
  async tokenize(
    question: Omit<Extract<ToRunner, { kind: "tokenize" }>, "kind" | "id">,
  ): Promise<{ tokens: Int32Array; pieces?: readonly Uint8Array[] }> {
    return this.#ask("tokens", (id) => ({ kind: "tokenize", id, ...question }));
  }

  /** Throws `bad_request` where an id is not one of the vocabulary. */
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
      return reply as Extract<Reply, { kind: K }>; // the line above
    } finally {
      this.#listeners.delete(id);
    }
  }

  /** Vectors of texts, in their order, and their tokens together. Aborting the signal stops the model. */
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
   * Ends the runner: asked first, killed if it does not listen.
   * @param why the error of its unfinished requests
   */
  async close(why?: AppError): Promise<void> {
    if (this.#dead) return;
    this.#why ??= why;
    if (this.alive) this.#send({ kind: "close" });
    const timer = setTimeout(() => this.kill(), CLOSE_GRACE_MS);
    await this.#transport.exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.#transport.kill();
  }

  #listen(id: number, listener: Listener): void {
    if (this.#dead) throw this.#dead;
    this.#listeners.set(id, listener);
  }

  /** Where the way is closed the runner is ending: those who listen will hear why. */
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

function toError(event: { code: Code; message: string }): AppError {
  return new AppError(event.code, event.message);
}

/** Events in order, handed to one reader; a failure comes after what was said before it. */
function makeQueue<T>(): { push(value: T): void; fail(error: AppError): void; next(): Promise<T> } {
  const values: T[] = [];
  let failure: AppError | undefined;
  let wake: (() => void) | undefined;
  return {
    push(value) {
      values.push(value);
      wake?.();
    },
    fail(error) {
      failure ??= error;
      wake?.();
    },
    async next() {
      while (values.length === 0) {
        if (failure) throw failure;
        await new Promise<void>((resolve) => (wake = resolve));
      }
      return values.shift()!; // not empty: the loop above
    },
  };
}
