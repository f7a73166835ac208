/**
 * A runner seen from the server: starts the child process, turns its messages into promises and async generators, and
 * makes sure that it ends. A runner that dies fails the requests on its own model and nothing else.
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

/** Bytes of a dead runner's last words that an error quotes. */
const STDERR_TAIL_BYTES = 2048;
/** How long a runner may take to close before it is killed. */
const CLOSE_GRACE_MS = 2000;

interface SpawnOptions {
  /** Command line of a runner: this program with its `runner` subcommand. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Fails the load when nothing was heard for so long. */
  readonly loadTimeoutMs: number;
  readonly onProgress?: (fraction: number) => void;
}

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

/** Owns the child process; `close` or `kill` ends it. */
export class RunnerProcess {
  readonly info: EngineInfo;
  readonly #child: Bun.Subprocess;
  readonly #listeners: Map<number, Listener>;
  readonly #exited: Promise<AppError>;
  /** By choice, used last at the end. */
  readonly #templates = new Map<string, { readonly number: number; readonly reply: Promise<TemplateReply> }>();
  readonly #heard: { count: number };
  #nextId = 1;
  #nextTemplate = LOADED_TEMPLATE + 1;
  #dead: AppError | undefined;
  /** Why it is being closed, for requests that it was still at. */
  #why: AppError | undefined;

  private constructor(parts: {
    ready: Ready;
    load: LoadMessage;
    child: Bun.Subprocess;
    listeners: Map<number, Listener>;
    heard: { count: number };
    exited: Promise<AppError>;
  }) {
    this.info = parts.ready.info;
    const known = { number: LOADED_TEMPLATE, reply: Promise.resolve(parts.ready.template) };
    this.#templates.set(keyOf(parts.load.template), known);
    this.#heard = parts.heard;
    this.#child = parts.child;
    this.#listeners = parts.listeners;
    this.#exited = parts.exited;
    void parts.exited.then((error) => {
      const dead = (this.#dead = this.#why ?? error);
      for (const listener of this.#listeners.values()) listener.fail(dead);
    });
  }

  /** Starts a process and loads a model in it. Where that fails, or the signal is aborted, nothing of it stays. */
  static async start(load: LoadMessage, options: SpawnOptions, signal: AbortSignal): Promise<RunnerProcess> {
    signal.throwIfAborted();
    const listeners = new Map<number, Listener>();
    const ready = Promise.withResolvers<Ready>();
    const heard = { count: 0 };
    const watchdog = makeWatchdog(options.loadTimeoutMs, () =>
      ready.reject(new AppError("runner", `timed out waiting for the model runner to load ${load.path}`)),
    );
    const child = spawnRunner(options, (message) => {
      watchdog.touch();
      heard.count++;
      if (message.kind === "ready") ready.resolve(message);
      else if (message.kind === "failed") ready.reject(new AppError(message.code, message.message));
      else if (message.kind === "progress") options.onProgress?.(message.fraction);
      else if (message.kind === "events") for (const event of message.events) listeners.get(event.id)?.event?.(event);
      else if (message.kind === "embedded") listeners.get(message.id)?.embedded?.(message);
      else if (message.kind === "embedFailed") listeners.get(message.id)?.fail(toError(message));
      else listeners.get(message.id)?.reply?.(message);
    });
    const exited = watchExit(child);
    const abort = (): void => ready.reject(new AppError("cancelled", "request canceled"));
    signal.addEventListener("abort", abort, { once: true });
    void exited.then((error) => ready.reject(error));
    try {
      child.send(load);
      return new RunnerProcess({ ready: await ready.promise, load, child, listeners, heard, exited });
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    } finally {
      watchdog.stop();
      signal.removeEventListener("abort", abort);
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** False once the process has ended. */
  get alive(): boolean {
    return !this.#dead;
  }

  /** Resolves, with why, when the process has ended. */
  get exited(): Promise<AppError> {
    return this.#exited;
  }

  /** Messages that came from it: the same number twice means that it was silent meanwhile. */
  get heard(): number {
    return this.#heard.count;
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
      event: (event) => (event.kind === "error" ? queue.fail(toError(event)) : queue.push(event)),
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
   * Ends the process: asked first, killed if it does not listen.
   * @param why what requests that it has not finished are told
   */
  async close(why?: AppError): Promise<void> {
    if (!this.alive) return;
    this.#why ??= why;
    this.#send({ kind: "close" });
    const timer = setTimeout(() => this.kill(), CLOSE_GRACE_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #listen(id: number, listener: Listener): void {
    if (this.#dead) throw this.#dead;
    this.#listeners.set(id, listener);
  }

  /** Where the channel is closed the process is ending: those who listen will hear why. */
  #send(message: ToRunner): void {
    if (this.#dead) throw this.#dead;
    try {
      this.#child.send(message);
    } catch {
      this.kill();
    }
  }
}

function spawnRunner(options: SpawnOptions, receive: (message: FromRunner) => void): Bun.Subprocess {
  return Bun.spawn([...options.command], {
    // In the real environment, because native code reads it there: no usage reports; freed weights go back to the
    // system.
    env: { ...options.env, ORT_DISABLE_TELEMETRY: "1", MALLOC_MMAP_THRESHOLD_: "65536" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    serialization: "advanced",
    ipc: (message) => receive(message as FromRunner), // the child is this same program
  });
}

/** Resolves with the error that requests on a dead runner get; quotes the end of what it said. */
async function watchExit(child: Bun.Subprocess): Promise<AppError> {
  const tail = await readTail(child.stderr as ReadableStream<Uint8Array>); // a stream, because spawned with "pipe"
  await child.exited;
  const how = child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;
  const detail = tail.trim().split("\n").slice(-3).join(" | ");
  return new AppError("runner", `model runner has unexpectedly stopped (${how})${detail ? `: ${detail}` : ""}`);
}

async function readTail(stream: ReadableStream<Uint8Array>): Promise<string> {
  let tail = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) tail = (tail + decoder.decode(chunk, { stream: true })).slice(-STDERR_TAIL_BYTES);
  return tail;
}

const keyOf = ({ go, prefersGo, renderer = "", parser = "" }: TemplateChoice): string =>
  `${renderer}:${parser}:${go === undefined ? "" : `${prefersGo ? "own" : "other"}: ${go}`}`;

function toError(event: { code: Code; message: string }): AppError {
  return new AppError(event.code, event.message);
}

/** Calls `expire` when it was not touched for `ms`; 0 or Infinity: never. Stopped, it stays so. */
function makeWatchdog(ms: number, expire: () => void): { touch(): void; stop(): void } {
  if (!(ms > 0) || ms === Infinity) return { touch() {}, stop() {} };
  const timer = setTimeout(expire, ms);
  let stopped = false;
  return {
    touch() {
      if (!stopped) timer.refresh();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
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
