/** The first part of a runner's client: the channel, the load of the model, and the listeners for its messages. */
import { AppError, type Code, reasonOf } from "../../base/index.ts";
import type {
  EmbedEvent,
  EngineInfo,
  FromRunner,
  LoadMessage,
  Reply,
  SequenceEvent,
  SpeechEvent,
  StreamedCounts,
  TemplateReply,
  ToRunner,
} from "../../engine/index.ts";
import { NO_HEARTBEAT, type Heartbeat } from "./heartbeat.ts";
import { makeWatchdog } from "./watchdog.ts";

/** A channel to a runner. */
export interface Transport {
  /** Throws if the channel is closed: the runner is about to end. */
  send(message: ToRunner): void;
  /** Kills the runner. */
  kill(): void;
  /** Resolves with the cause once the runner has ended. */
  readonly exited: Promise<AppError>;
}

export interface ConnectOptions {
  /** The load fails after this much silence. */
  readonly loadTimeoutMs: number;
  readonly onProgress?: (fraction: number) => void;
}

/** A runner that has loaded its model. */
export interface Connected {
  readonly transport: Transport;
  readonly load: LoadMessage;
  readonly ready: Ready;
  readonly listeners: Map<number, Listener>;
  readonly progress: RunnerProgress;
  readonly images: ImageCounts;
}

export interface RunnerProgress {
  count: number;
  isLeaving: boolean;
  heartbeat: Heartbeat;
  /** The latest counts; undefined: all weights are in memory, or nothing ran yet. */
  streamed?: StreamedCounts;
}

/** Images and recordings of prompts: encoded, or with cached rows. */
export type ImageCounts = Readonly<Record<"encoded" | "reused", number>>;

interface Ready {
  readonly info: EngineInfo;
  readonly template: TemplateReply;
}

/** Receives the messages for one id. */
export interface Listener {
  event?(event: SequenceEvent): void;
  reply?(reply: Reply): void;
  embedded?(event: Extract<EmbedEvent, { kind: "embedded" }>): void;
  speech?(event: SpeechEvent): void;
  fail(error: AppError): void;
}

/**
 * Makes a runner load a model. Ends the runner if that fails or the signal is aborted.
 * @param open returns the channel to a new runner
 */
export async function connect(
  load: LoadMessage,
  open: (receive: (message: FromRunner) => void) => Transport,
  { options, signal }: { options: ConnectOptions; signal: AbortSignal },
): Promise<Connected> {
  signal.throwIfAborted();
  const listeners = new Map<number, Listener>();
  const ready = Promise.withResolvers<Ready>();
  const progress: RunnerProgress = { count: 0, isLeaving: false, heartbeat: NO_HEARTBEAT };
  const images = { encoded: 0, reused: 0 };
  const watchdog = makeWatchdog(options.loadTimeoutMs, () =>
    ready.reject(new AppError("runner", `timed out waiting for the model runner to load ${load.path}`)),
  );
  const transport = open((message) => {
    if (message.kind === "pong") {
      if (listeners.size > 0) progress.count++; // pinged just before the request came
      return progress.heartbeat.pong(message.turns);
    }
    watchdog.touch();
    progress.heartbeat.progress();
    progress.count++;
    if (message.kind === "ready") ready.resolve(message);
    else if (message.kind === "failed") ready.reject(new AppError(message.code, message.message));
    else if (message.kind === "progress") options.onProgress?.(message.fraction);
    else if (message.kind === "events") {
      if (message.streamed) progress.streamed = message.streamed;
      for (const event of message.events) listeners.get(event.id)?.event?.(event);
    } else if (message.kind === "embedded") listeners.get(message.id)?.embedded?.(message);
    else if (message.kind === "segment" || message.kind === "transcribed") listeners.get(message.id)?.speech?.(message);
    else if (message.kind === "embedFailed" || message.kind === "transcribeFailed")
      listeners.get(message.id)?.fail(toError(message));
    else if (message.kind === "leaving") progress.isLeaving = true;
    else if (message.kind === "image") images[message.how]++;
    else listeners.get(message.id)?.reply?.(message);
  });
  const abort = (): void => ready.reject(reasonOf(signal));
  signal.addEventListener("abort", abort, { once: true });
  void transport.exited.then((error) => ready.reject(error));
  try {
    transport.send(load);
    return { transport, load, ready: await ready.promise, listeners, progress, images };
  } catch (error) {
    transport.kill();
    throw error;
  } finally {
    watchdog.stop();
    signal.removeEventListener("abort", abort);
  }
}

export function toError(event: { code: Code; message: string }): AppError {
  return new AppError(event.code, event.message);
}
