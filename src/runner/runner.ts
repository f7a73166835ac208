/**
 * The runner: owns one loaded model and does what it is told over a channel, in a process of its own (`process.ts`) or
 * in a Worker of a page.
 */
import type { Backend, TuningStore } from "../backend/backend.ts";
import type { Offload } from "../backend/offload.ts";
import type { EventLoop } from "../base/event-loop.ts";
import { AppError, assert, messageOf } from "../base/errors.ts";
import { loadEngine, type LoadedEngine } from "../engine/load.ts";
import type { OpenSource } from "../gguf/source.ts";
import { encodeFill } from "../tokenizer/fill-in-the-middle.ts";
import { embed } from "./embed.ts";
import type { FromRunner, GenerateMessage, LoadMessage, ToRunner } from "./messages.ts";
import { detokenize, tokenize } from "./tokens.ts";

/** The way to whoever started the runner. */
export interface Channel {
  send(message: FromRunner): void;
  onMessage(handle: (message: ToRunner) => void): void;
  /** The parent is gone. */
  onDisconnect(handle: () => void): void;
  exit(code: number): void;
}

/** What a runner has of the machine that it is on. */
export interface RunnerHost {
  readonly loop: EventLoop;
  /** Opens a model's files. */
  readonly open: OpenSource;
  /** The backend of that name; throws `unsupported`. */
  chooseBackend(name: string, offload: Offload): Promise<Backend>;
  /** What remembers the fastest kernels of a GPU in a folder for such files; undefined: there are no folders. */
  tuningsIn?(cacheDir: string): TuningStore;
}

/** How long a last message gets on its way before the process ends. */
const FAREWELL_MS = 100;

/** Serves one model until told to close. Returns at once; the channel's messages do the work. */
export function startRunner(channel: Channel, host: RunnerHost): void {
  let loaded: LoadedEngine | undefined;
  let loading: Promise<void> = Promise.resolve();
  const abort = new AbortController();
  const encoding = new Set<number>(); // requests whose texts are not all ids yet
  channel.onDisconnect(() => channel.exit(0));
  channel.onMessage((message) => {
    switch (message.kind) {
      case "load":
        return void (loading = load(message, { channel, host, signal: abort.signal }).then(
          (engine) => void (loaded = engine),
        ));
      case "generate":
        return void (loaded && generate(loaded, message, channel));
      case "embed":
        return void (loaded && embed(loaded, message, { channel, pending: encoding, loop: host.loop }));
      case "cancel":
        encoding.delete(message.id);
        return loaded?.engine.cancel(message.id);
      case "ping":
        return reply(channel, loaded, message.id, () => ({ kind: "pong", id: message.id }));
      case "count":
        return reply(channel, loaded, message.id, (engine) => count(engine, message));
      case "tokenize":
        return reply(channel, loaded, message.id, ({ tokenizer }) => tokenize(tokenizer, message));
      case "detokenize":
        return reply(channel, loaded, message.id, ({ tokenizer }) => detokenize(tokenizer, message));
      case "close":
        abort.abort();
        return void loading.then(() => closeEngine(loaded, channel));
      default:
        return message satisfies never;
    }
  });
}

async function load(
  message: LoadMessage,
  { channel, host, signal }: { channel: Channel; host: RunnerHost; signal: AbortSignal },
): Promise<LoadedEngine | undefined> {
  try {
    const { gpuLayers: layers, gpuMemory: memory } = message;
    const backend = await host.chooseBackend(message.backend, { layers, memory });
    const loaded = await loadEngine(message.path, {
      ...message,
      signal,
      loop: host.loop,
      open: host.open,
      tunings: message.cacheDir === undefined ? undefined : host.tuningsIn?.(message.cacheDir),
      backend,
      cacheMemory: backend.name === "webgpu" ? cacheMemoryOnGpu(message, host.open) : message.cacheMemory,
      onProgress: (fraction) => channel.send({ kind: "progress", fraction }),
      emit: (events) => channel.send({ kind: "events", events }),
      onEmbed: (event) => channel.send(event),
      onLost: (error) => void endAfter(error, channel),
    });
    channel.send({ kind: "ready", info: loaded.info });
    return loaded;
  } catch (error) {
    channel.send({
      kind: "failed",
      code: error instanceof AppError ? error.code : "runner",
      message: messageOf(error),
    });
    await leave(channel);
    return undefined;
  }
}

/** Half of what the weights leave of the GPU's memory; none where nobody says how much that is. */
function cacheMemoryOnGpu({ path, gpuMemory = 0 }: LoadMessage, open: OpenSource): number {
  const file = open(path);
  file.close();
  return Math.max(0, gpuMemory - file.byteLength) / 2;
}

/** Ends the process, whose next request then gets a fresh one; the failures of what ran go out before. */
async function endAfter(error: Error, channel: Channel): Promise<void> {
  console.error(error.message);
  await leave(channel);
}

/** Ends once what was said is out. */
async function leave(channel: Channel): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
  channel.exit(1);
}

async function generate(loaded: LoadedEngine, message: GenerateMessage, channel: Channel): Promise<void> {
  const { engine, tokenizer, info } = loaded;
  try {
    const { kind: _, context, prompt, suffix, ...request } = message;
    if (suffix !== undefined) return await engine.submit({ ...request, ...fillPrompt(loaded, message, suffix) });
    const addSpecial = context.length === 0 && !startsWithBos(prompt, info.bosText);
    const ids = tokenizer.encode(prompt, { addSpecial, parseSpecial: true });
    for (const id of context) checkId(id); // an Int32Array would make another id of it
    await engine.submit({ ...request, prompt: Int32Array.from([...context, ...ids]) });
  } catch (error) {
    const code = error instanceof AppError ? error.code : "runner";
    channel.send({ kind: "events", events: [{ kind: "error", id: message.id, code, message: messageOf(error) }] });
  }
}

/** Where the texts are longer than the context, half of it stays for the answer. */
function fillPrompt(
  { tokenizer, info }: LoadedEngine,
  { prompt, truncate = true, shift }: GenerateMessage,
  suffix: string,
): { prompt: Int32Array; wasCut: boolean } {
  const fill = tokenizer.fill;
  assert(fill, "a gap to fill for a model without markers");
  const whole = encodeFill(tokenizer, fill, { before: prompt, after: suffix, room: undefined });
  if (whole.ids.length < info.ctxLen || !truncate || !shift) return { prompt: whole.ids, wasCut: false };
  const room = Math.floor(info.ctxLen / 2);
  const cut = encodeFill(tokenizer, fill, { before: prompt, after: suffix, room });
  return { prompt: cut.ids, wasCut: cut.truncated };
}

function checkId(id: number): void {
  if (id !== (id | 0)) throw new AppError("bad_request", `context: expected ids of the vocabulary, got ${id}`);
}

/** Answers a question; a failure is an answer too. */
function reply(
  channel: Channel,
  loaded: LoadedEngine | undefined,
  id: number,
  answer: (loaded: LoadedEngine) => FromRunner,
): void {
  if (!loaded) return;
  try {
    channel.send(answer(loaded));
  } catch (error) {
    const code = error instanceof AppError ? error.code : "runner";
    channel.send({ kind: "refused", id, code, message: messageOf(error) });
  }
}

function count({ tokenizer, info }: LoadedEngine, message: { id: number; prompt: string }): FromRunner {
  const addSpecial = !startsWithBos(message.prompt, info.bosText);
  const tokens = tokenizer.encode(message.prompt, { addSpecial, parseSpecial: true }).length;
  return { kind: "count", id: message.id, tokens };
}

const startsWithBos = (text: string, bosText: string): boolean => bosText !== "" && text.startsWith(bosText);

async function closeEngine(loaded: LoadedEngine | undefined, channel: Channel): Promise<void> {
  await loaded?.engine.close();
  channel.exit(0);
}
