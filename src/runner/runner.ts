/**
 * The runner: owns one loaded model and does what it is told over a channel, in a process of its own (`process.ts`) or
 * in a Worker of a page.
 */
import type { Backend, TuningStore } from "../backend/backend.ts";
import type { Offload } from "../backend/offload.ts";
import type { EventLoop } from "../base/event-loop.ts";
import { AppError, messageOf } from "../base/errors.ts";
import { loadEngine, type LoadedEngine } from "../engine/load.ts";
import type { OpenSource } from "../gguf/source.ts";
import type { Channel } from "./channel.ts";
import { embed } from "./embed.ts";
import { LOADED_TEMPLATE, type FromRunner, type GenerateMessage, type LoadMessage } from "./messages.ts";
import { endOf, promptOf, textOf, type HeldPrompts } from "./prompt.ts";
import { makeTemplates, type Templates } from "./templates.ts";
import { detokenize, tokenize } from "./tokens.ts";

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

/** A model, and what requests on it have told. */
interface Loaded {
  readonly model: LoadedEngine;
  readonly templates: Templates;
  readonly held: HeldPrompts;
}

/** How long a last message gets on its way before the process ends. */
const FAREWELL_MS = 100;

/** Serves one model until told to close. Returns at once; the channel's messages do the work. */
export function startRunner(channel: Channel, host: RunnerHost): void {
  let loaded: Loaded | undefined;
  let loading: Promise<void> = Promise.resolve();
  const abort = new AbortController();
  const encoding = new Set<number>(); // requests whose texts are not all ids yet
  channel.onDisconnect(() => channel.exit(0));
  channel.onMessage((message) => {
    switch (message.kind) {
      case "load":
        return void (loading = load(message, { channel, host, signal: abort.signal }).then(
          (model) => void (loaded = model),
        ));
      case "generate":
        return void (loaded && generate(loaded, message, channel));
      case "embed":
        return void (loaded && embed(loaded.model, message, { channel, pending: encoding, loop: host.loop }));
      case "cancel":
        encoding.delete(message.id);
        return loaded?.model.engine.cancel(message.id);
      case "forget":
        return void loaded?.held.delete(message.id);
      case "template":
        return reply(channel, loaded, message.id, ({ templates }) => ({
          kind: "template",
          id: message.id,
          reply: templates.define(message.number, message.choice),
        }));
      case "drop":
        return loaded?.templates.drop(message.number);
      case "count":
        return reply(channel, loaded, message.id, (model) => ({
          kind: "count",
          id: message.id,
          tokens: promptOf(model, message.asked).ids.length,
        }));
      case "render":
        return reply(channel, loaded, message.id, (model) => ({
          kind: "text",
          id: message.id,
          text: textOf(promptOf(model, message.asked, message.settings)),
        }));
      case "tokenize":
        return reply(channel, loaded, message.id, ({ model }) => tokenize(model.tokenizer, message));
      case "detokenize":
        return reply(channel, loaded, message.id, ({ model }) => detokenize(model.tokenizer, message));
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
): Promise<Loaded | undefined> {
  try {
    const { gpuLayers: layers, gpuMemory: memory } = message;
    const backend = await host.chooseBackend(message.backend, { layers, memory });
    const model = await loadEngine(message.path, {
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
    const templates = makeTemplates(model.chatTemplate);
    const template = templates.define(LOADED_TEMPLATE, message.template);
    channel.send({ kind: "ready", info: model.info, template });
    return { model, templates, held: new Map() };
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

async function generate(loaded: Loaded, message: GenerateMessage, channel: Channel): Promise<void> {
  try {
    const { kind: _, asked, holds = false, ...request } = message;
    const prompt = promptOf(loaded, asked, message);
    if (holds) loaded.held.set(message.id, prompt.segments);
    const { ids, wasCut } = prompt;
    const segments = [{ kind: "ids", ids }] as const; // no model here takes media: the server refuses them by `info`
    await loaded.model.engine.submit({ ...request, prompt: segments, promptEnd: endOf(prompt), wasCut });
  } catch (error) {
    const code = error instanceof AppError ? error.code : "runner";
    channel.send({ kind: "events", events: [{ kind: "error", id: message.id, code, message: messageOf(error) }] });
  }
}

/** Answers a question; a failure is an answer too. */
function reply(channel: Channel, loaded: Loaded | undefined, id: number, answer: (loaded: Loaded) => FromRunner): void {
  if (!loaded) return;
  try {
    channel.send(answer(loaded));
  } catch (error) {
    const code = error instanceof AppError ? error.code : "runner";
    channel.send({ kind: "refused", id, code, message: messageOf(error) });
  }
}

async function closeEngine(loaded: Loaded | undefined, channel: Channel): Promise<void> {
  await loaded?.model.engine.close();
  channel.exit(0);
}
