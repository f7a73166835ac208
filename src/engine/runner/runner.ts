/**
 * The runner: owns one loaded model and executes messages from a channel, in a separate process (`process.ts`) or in a
 * Worker of a page.
 */
import type { Backend, Program } from "../program/backend.ts";
import type { TuningStore } from "../program/tuning-store.ts";
import type { Offload } from "../backends/offload.ts";
import type { EventLoop } from "../batching/event-loop.ts";
import { AppError, assert, codeOf, messageOf, type NamedFile } from "../../base/index.ts";
import type { SnapshotStore } from "../formats/snapshots.ts";
import { adapterSet } from "../batching/adapter-set.ts";
import { tooLong } from "../batching/context.ts";
import { gpuCacheBytes } from "../batching/gpu-kv-memory.ts";
import { failureOf } from "../batching/events.ts";
import { loadEngine, type LoadedEngine } from "../batching/load.ts";
import type { PromptSegment } from "../batching/prompt.ts";
import type { OpenSource } from "../formats/gguf/source.ts";
import type { OpenGrammarThread } from "../text/sampling/grammar-threads.ts";
import type { Channel } from "./channel.ts";
import { embed } from "./embed.ts";
import { encoderBackend } from "./encoder-backend.ts";
import {
  LOADED_TEMPLATE,
  type PromptInput,
  type FromRunner,
  type EmbedMessage,
  type GenerateMessage,
  type LoadMessage,
  type TranscribeMessage,
} from "./messages.ts";
import type { Images } from "./images.ts";
import type { DecodeAudio, DecodeImage, openImages } from "./open-images.ts";
import { endOf, imagesOf, promptOf, textOf, type HeldPrompts, type Prompt } from "./prompt.ts";
import type { openOwnSpeech } from "./own-speech.ts";
import type { openSpeechModel, Speech } from "./speech.ts";
import { makeTemplates, type Templates } from "./templates.ts";
import { detokenize, textOfIds, tokenize } from "./tokens.ts";

/** The host's services for a runner. */
export interface RunnerHost {
  readonly loop: EventLoop;
  /** Opens a model's files. */
  readonly open: OpenSource;
  /** The backend of that name; throws `unsupported`. */
  chooseBackend(name: string, offload: Offload): Promise<Backend>;
  /** The backend of a model in another file format; undefined: not supported. Throws like its load. */
  openFiles?(files: readonly NamedFile[], options: Pick<LoadMessage, "threads">): Promise<Backend>;
  /** Decodes image files; undefined: models here take no images. */
  readonly decodeImage?: DecodeImage;
  /** Decodes audio files; undefined: models here take no recordings. */
  readonly decodeAudio?: DecodeAudio;
  /** Starts a thread for grammars of large schemas; undefined: all are compiled between steps. */
  readonly grammarThread?: OpenGrammarThread;
  /** Memory that this process can still allocate; undefined: unknown. */
  readonly freeBytes?: () => number;
  /** Bytes of the GPU's memory that no process uses; undefined: unknown. */
  gpuFreeBytes?(wanted?: { bytes: number; adapter: string | undefined }): Promise<number | undefined>;
  /** The store of a GPU's fastest kernels in a cache folder; undefined: there are no folders. */
  tuningsIn?(cacheDir: string): TuningStore;
  /** The store of prefixes for a model with these files, which outlives the process; undefined: there is no store. */
  snapshotsOf?(
    paths: readonly string[],
    where: { readonly cacheDir: string; readonly bytesMax: number },
  ): (layout: string) => SnapshotStore;
}

/** A model and the state of its requests. */
interface Loaded {
  readonly model: LoadedEngine;
  readonly templates: Templates;
  readonly held: HeldPrompts;
  /** Undefined if the model reads no images. */
  readonly images: Images | undefined;
  /** Undefined if the model does not transcribe speech. */
  readonly speech: Speech | undefined;
  /** Requests whose images are not all encoded yet. */
  readonly encodingImages: Map<number, AbortController>;
}

/** Maximum time for a last message to be sent before the process ends. */
const FAREWELL_MS = 100;

/** Serves one model until closed. Returns at once; the channel's messages drive the work. */
export function startRunner(channel: Channel, given: RunnerHost): void {
  const { loop, turns } = countTurns(given.loop);
  const host = { ...given, loop };
  let loaded: Loaded | undefined;
  let loading: Promise<void> = Promise.resolve();
  const abort = new AbortController();
  const encoding = new Set<number>(); // requests whose texts are not all tokenized yet
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
        if (!loaded || refuseChanged(loaded, message, channel)) return;
        return void embed(loaded.model, message, { channel, pending: encoding, loop: host.loop });
      case "transcribe":
        return void (loaded && transcribe(loaded, message, channel));
      case "cancel":
        encoding.delete(message.id);
        loaded?.speech?.cancel(message.id);
        loaded?.encodingImages.get(message.id)?.abort();
        return loaded?.model.engine.cancel(message.id);
      case "forget":
        return void loaded?.held.delete(message.id);
      case "template":
        return void reply(channel, loaded, message.id, ({ templates }) => ({
          kind: "template",
          id: message.id,
          reply: templates.define(message.number, message.choice),
        }));
      case "drop":
        return loaded?.templates.drop(message.number);
      case "count":
        return void reply(channel, loaded, message.id, async (model) => {
          await readImages(model, message.asked);
          return { kind: "count", id: message.id, tokens: promptOf(model, message.asked).rows };
        });
      case "render":
        return void reply(channel, loaded, message.id, async (model) => {
          await readImages(model, message.asked);
          const context = "context" in message.asked ? (message.asked.context ?? []) : [];
          const before = textOfIds(model.model.tokenizer, context, "context");
          const text = before + textOf(promptOf(model, message.asked, message.settings));
          return { kind: "text", id: message.id, text };
        });
      case "tokenize":
        return void reply(channel, loaded, message.id, ({ model }) => tokenize(model.tokenizer, message));
      case "detokenize":
        return void reply(channel, loaded, message.id, ({ model }) => detokenize(model.tokenizer, message));
      case "ping":
        return channel.send({ kind: "pong", turns: turns() });
      case "close":
        abort.abort();
        return void loading.then(() => closeEngine(loaded, channel));
      default:
        return message satisfies never;
    }
  });
}

/** Counts the turns of the event loop: the engine waits for one after each step. */
function countTurns(loop: EventLoop): { loop: EventLoop; turns: () => number } {
  let count = 0;
  const nextTurn = (): Promise<void> => {
    count++;
    return loop.nextTurn();
  };
  return { loop: { nowNs: () => loop.nowNs(), nextTurn }, turns: () => count };
}

/** The encoders' code is loaded with the first model that has a projector. */
const openVision: typeof openImages = async (parts) => (await import("./open-images.ts")).openImages(parts);

const openOwn: typeof openOwnSpeech = async (parts) => (await import("./own-speech.ts")).openOwnSpeech(parts);

const openSpeech: typeof openSpeechModel = async (...parts) => (await import("./speech.ts")).openSpeechModel(...parts);

async function load(
  message: LoadMessage,
  { channel, host, signal }: { channel: Channel; host: RunnerHost; signal: AbortSignal },
): Promise<Loaded | undefined> {
  let streamed: LoadedEngine["streamed"];
  try {
    const backend = await backendOf(message, host);
    const { decodeImage, decodeAudio } = host;
    const takesMedia = decodeImage !== undefined || decodeAudio !== undefined;
    const model = await loadEngine(message.path, {
      ...message,
      signal,
      loop: host.loop,
      open: host.open,
      tunings: message.cacheDir === undefined ? undefined : host.tuningsIn?.(message.cacheDir),
      snapshots: snapshotsOf(message, host),
      backend,
      freeBytes: host.freeBytes,
      grammarThread: host.grammarThread,
      vision: takesMedia ? { projector: message.projector } : undefined,
      prefixMemory: message.cacheMemory,
      cacheMemory: backend.name === "webgpu" ? await cacheMemoryOnGpu(message, host) : message.cacheMemory,
      onProgress: (fraction) => channel.send({ kind: "progress", fraction }),
      emit: (events) => channel.send({ kind: "events", events, ...(streamed && { streamed: streamed.counts() }) }),
      onEmbed: (event) => channel.send(event),
      onLost: (error) => void endAfter(error, channel),
    });
    streamed = model.streamed;
    const templates = makeTemplates(model.chatTemplate);
    const template = templates.define(LOADED_TEMPLATE, message.template);
    const onImage = (how: "encoded" | "reused"): void => channel.send({ kind: "image", how });
    const pause = (): Promise<void> => host.loop.nextTurn();
    const encoder = model.projector && (await encoderBackend(backend, model, { message, host }));
    const own = model.decoder && encoder && (await openOwn({ backend: encoder, model, message, signal, pause }));
    const vision =
      encoder && !model.decoder
        ? await openVision({ backend: encoder, model, decodeImage, decodeAudio, onImage, pause, message, signal })
        : undefined;
    const writer = own ?? backend.speech;
    const speech = writer && (await openSpeech(writer, model, { channel, decode: host.decodeAudio, loop: host.loop }));
    channel.send({
      kind: "ready",
      info: { ...model.info, ...vision?.info, ...own?.info, ...speech?.info },
      template,
    });
    const encodingImages = new Map<number, AbortController>();
    return { model, templates, held: new Map(), images: vision?.images, speech, encodingImages };
  } catch (error) {
    channel.send({ kind: "failed", code: codeOf(error), message: messageOf(error) });
    await leave(channel);
    return undefined;
  }
}

/** The machine's best backend, or the one for files of another format. */
async function backendOf(message: LoadMessage, host: RunnerHost): Promise<Backend> {
  const { files = [], adapters, draft, gpuLayers: layers, gpuMemory: memory, gpu: adapter } = message;
  if (files.length === 0) return host.chooseBackend(message.backend, { layers, memory, adapter });
  const more = adapters.length > 0 ? "adapters" : draft === undefined ? undefined : "a draft model";
  if (more) throw new AppError("unsupported", `${more}: expected a GGUF model, got one of another format`);
  if (host.openFiles) return host.openFiles(files, message);
  throw new AppError("unsupported", "the model is not a GGUF: it runs on the server only");
}

function snapshotsOf(
  { path, projector, cacheDir, snapshotBytes = 0 }: LoadMessage,
  { snapshotsOf: open }: RunnerHost,
): ((layout: string, adapters: readonly string[]) => SnapshotStore) | undefined {
  if (!open || cacheDir === undefined || snapshotBytes <= 0) return undefined;
  const paths = projector === undefined ? [path] : [path, projector]; // prefixes contain the rows of images
  return (layout, adapters) => open([...paths, ...adapters], { cacheDir, bytesMax: snapshotBytes })(layout);
}

/** Bytes for the KV cache of a program on GPUs; undefined if their memory is unknown. */
async function cacheMemoryOnGpu(
  { path, projector, gpuMemory, gpu: adapter }: LoadMessage,
  { open, gpuFreeBytes }: RunnerHost,
): Promise<(program: Program) => number | undefined> {
  const sizeOf = (each: string): number => {
    const file = open(each);
    file.close();
    return file.byteLength;
  };
  const weights = sizeOf(path) + (projector === undefined ? 0 : sizeOf(projector));
  const memory = gpuMemory ?? (await gpuFreeBytes?.({ bytes: weights, adapter }));
  return (program) => memory && gpuCacheBytes(program, { memory, weights });
}

/** Ends the process, so that the next request gets a fresh runner; running requests report their failures first. */
async function endAfter(error: Error, channel: Channel): Promise<void> {
  channel.send({ kind: "leaving" });
  console.error(error.message);
  await leave(channel);
}

/** Ends once all messages are sent. */
async function leave(channel: Channel): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
  channel.exit(1);
}

function transcribe({ speech }: Loaded, message: TranscribeMessage, channel: Channel): void {
  if (speech) return void speech.transcribe(message);
  const failure = { code: "bad_request", message: "the model does not transcribe speech" } as const;
  channel.send({ kind: "transcribeFailed", id: message.id, ...failure });
}

/** After a change of a model file, its content cannot be trusted: reports the failure and ends. */
function refuseChanged({ model }: Loaded, { kind, id }: GenerateMessage | EmbedMessage, channel: Channel): boolean {
  const message = model.changed();
  if (message === undefined) return false;
  const failure = { id, code: "bad_file", message } as const;
  void endAfter(new Error(message), channel); // first: clients may retry after the failure
  if (kind === "embed") channel.send({ kind: "embedFailed", ...failure });
  else channel.send({ kind: "events", events: [{ kind: "error", ...failure }] });
  return true;
}

async function generate(loaded: Loaded, message: GenerateMessage, channel: Channel): Promise<void> {
  if (refuseChanged(loaded, message, channel)) return;
  const abort = new AbortController();
  try {
    const { kind: _, asked, holds = false, adapters: choices, ...request } = message;
    const adapters = choices && adapterSet(choices, loaded.model.info.adapters ?? []);
    loaded.encodingImages.set(message.id, abort);
    if (imagesOf(asked).length > 0) await readImages(loaded, asked, abort.signal);
    if (abort.signal.aborted) return; // the client has released the prompt, too
    const prompt = promptOf(loaded, asked, message);
    const { rows, wasCut, rendered, context } = prompt;
    if (holds) loaded.held.set(message.id, { rendered, context, wasCut });
    const { ctxLen } = loaded.model.info;
    const isSeen = prompt.parts.some(({ kind }) => kind === "image");
    if (isSeen && rows >= ctxLen) throw tooLong(rows, ctxLen); // refused before the images are encoded
    const { reader } = loaded.model;
    if (reader && rows > ctxLen) throw tooLong(rows, ctxLen + 1);
    const input = reader
      ? await reader.read(Int32Array.from(idsOf(prompt).flatMap(({ ids }) => [...ids])), abort.signal)
      : { prompt: isSeen ? await encodeImages(prompt, loaded, abort.signal) : idsOf(prompt) };
    if (abort.signal.aborted) return;
    await loaded.model.engine.submit({
      ...request,
      ...(adapters && { adapters }),
      ...input,
      promptEnd: endOf(prompt),
      wasCut,
    });
  } catch (error) {
    if (abort.signal.aborted) return;
    channel.send({ kind: "events", events: [failureOf(message.id, error)] });
  } finally {
    loaded.encodingImages.delete(message.id);
  }
}

/** Registers the images of a request. Throws `bad_request` if one is invalid, or the model takes none. */
async function readImages({ images }: Loaded, asked: PromptInput, signal?: AbortSignal): Promise<void> {
  const given = imagesOf(asked);
  if (given.length === 0) return;
  if (!images) throw new AppError("bad_request", "the model does not support images or audio");
  await images.read(given, signal);
}

const idsOf = ({ parts }: Prompt) => parts.filter((part) => part.kind === "ids");

/** A prompt with its images encoded. */
async function encodeImages({ parts }: Prompt, { images }: Loaded, signal: AbortSignal): Promise<PromptSegment[]> {
  assert(images, "a prompt has images, and nothing encodes them");
  const shown = [...new Set(parts.flatMap((part) => (part.kind === "image" ? [part.image] : [])))];
  const encoded = await images.encode(shown, signal);
  return parts.map((part) => {
    if (part.kind === "ids") return part;
    const media = encoded[shown.indexOf(part.image)]?.[part.run];
    assert(media?.rows === part.rows, "an image was encoded to other rows than it was measured for");
    return { kind: "media", media };
  });
}

/** Answers a question; failures are answers too. */
async function reply(
  channel: Channel,
  loaded: Loaded | undefined,
  id: number,
  answer: (loaded: Loaded) => FromRunner | Promise<FromRunner>,
): Promise<void> {
  if (!loaded) return;
  try {
    channel.send(await answer(loaded));
  } catch (error) {
    channel.send({ kind: "refused", id, code: codeOf(error), message: messageOf(error) });
  }
}

async function closeEngine(loaded: Loaded | undefined, channel: Channel): Promise<void> {
  for (const abort of loaded?.encodingImages.values() ?? []) abort.abort();
  await loaded?.images?.close();
  await loaded?.speech?.close();
  await loaded?.model.engine.close();
  channel.exit(0);
}
