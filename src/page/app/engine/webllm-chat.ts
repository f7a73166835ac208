/** Chats with WebLLM: a Worker for each model, which loads it and answers. */
import type { ModelParts } from "../../engine/runtime.ts";
import type { FromWebLlm, ToWebLlm } from "../../engine/webllm/messages.ts";
import type { Api } from "../base/api.ts";
import type { AnswerEvent, Question } from "../chat/answers.ts";
import { pushed, type InTurn } from "./queue.ts";
import type { Words } from "../words/index.ts";
import { startWorker } from "./script.ts";

export interface WebLlmModel {
  readonly name: string;
  /** Undefined: unknown. */
  readonly contextLength: number | undefined;
}

/** A Worker, and its model. */
export interface Present {
  readonly key: string;
  readonly send: (message: ToWebLlm) => void;
  readonly end: () => void;
  /** Undefined: still loading. */
  readonly model: WebLlmModel | undefined;
}

/** A Worker with a listener. */
interface Started extends Omit<Present, "model"> {
  listen: (message: FromWebLlm) => void;
}

interface Place {
  readonly api: Api;
  readonly words: () => Words;
  readonly present: () => Present | undefined;
  /** Stores the current model. */
  readonly hold: (present: Present | undefined) => void;
  /** Serialises chats: a Worker's messages do not name their chat. */
  readonly inTurn: InTurn;
}

interface Asking {
  readonly signal: AbortSignal;
  readonly push: (event: AnswerEvent) => void;
}

/** Our names, and the library's. */
const SETTINGS: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_p: "top_p",
  num_predict: "max_tokens",
  seed: "seed",
  presence_penalty: "presence_penalty",
  frequency_penalty: "frequency_penalty",
  repeat_penalty: "repetition_penalty",
};

/** See `Answerer`. */
export const answer = (place: Place, question: Question, signal: AbortSignal) =>
  pushed<AnswerEvent>((push) => {
    push({ kind: "wait", text: place.words().engine.otherChat });
    return place.inTurn(() => ask(place, question, { signal, push }), signal);
  });

async function ask(place: Place, question: Question, { signal, push }: Asking): Promise<void> {
  const messages = question.messages.map(({ role, content, images }) => {
    if (images && images.length > 0) throw new Error(place.words().engine.noPictures);
    return { role, content };
  });
  push({ kind: "wait", text: place.words().engine.startingWebLlm });
  const stop = (): void => {
    const present = place.present();
    if (present?.model) return present.send({ kind: "stop" });
    present?.end(); // no caller waits for the load
    place.hold(undefined);
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    const startedMs = performance.now();
    const worker = await load(place, question, { signal, push });
    const loadMs = performance.now() - startedMs;
    await chat(worker, { messages, settings: settingsOf(question), loadMs, push });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The Worker with the model; a new one if the model is not in memory. */
async function load(place: Place, { model, options }: Question, { signal, push }: Asking): Promise<Started> {
  const parts: ModelParts = await place.api.json("/api/parts", { body: { model } });
  signal.throwIfAborted();
  if (!parts.files) throw new Error(place.words().engine.onlyMlc);
  const { num_ctx: ctxLen } = options;
  const key = JSON.stringify([parts.digest, ctxLen]);
  const present = place.present();
  if (present?.model && present.key === key) return present as Present & Started; // `start` made it
  present?.end();
  const worker = start(key);
  place.hold({ ...worker, model: undefined });
  const { displayName: name, digest, files, config } = parts;
  const headers = place.api.headers();
  try {
    await said(worker, {
      message: { kind: "load", model: name, digest, files, headers, ...(ctxLen === undefined ? {} : { ctxLen }) },
      until: "loaded",
      take: (event) => {
        if (event.kind === "progress") push({ kind: "wait", text: event.text, fraction: event.fraction });
      },
    });
  } catch (error) {
    worker.end();
    place.hold(undefined);
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(place.words().engine.cannotLoad(why));
  }
  place.hold(Object.assign(worker, { model: { name, contextLength: ctxLen ?? config.context_length } }));
  return worker;
}

type Chat = Omit<Extract<ToWebLlm, { kind: "chat" }>, "kind">;

async function chat(
  worker: Started,
  { loadMs, push, ...asked }: Chat & { loadMs: number; push: Asking["push"] },
): Promise<void> {
  const startedMs = performance.now();
  let firstMs = startedMs;
  const { reason, promptTokens, tokens } = await said(worker, {
    message: { kind: "chat", ...asked },
    until: "done",
    take: (event) => {
      if (event.kind !== "text") return;
      if (firstMs === startedMs) firstMs = performance.now();
      push({ kind: "text", text: event.text });
    },
  });
  const ms = { promptMs: firstMs - startedMs, ms: performance.now() - firstMs, loadMs };
  push({ kind: "done", reason, stats: { promptTokens, tokens, ...ms, wasCut: false } });
}

function settingsOf({ options }: Question): Record<string, number> {
  const isKnown = ([name, value]: [string, number]): boolean =>
    SETTINGS[name] !== undefined && !(name === "num_predict" && value < 0);
  return Object.fromEntries(
    Object.entries(options)
      .filter(isKnown)
      .map(([name, value]) => [SETTINGS[name]!, value]),
  );
}

function start(key: string): Started {
  const worker = startWorker<Worker>("hearth-webllm");
  const started: Started = {
    key,
    send: (message) => worker.postMessage(message),
    end: () => {
      worker.terminate();
      started.listen({ kind: "failed", message: "it was unloaded" });
    },
    listen: () => {},
  };
  worker.onmessage = ({ data }: MessageEvent<FromWebLlm>) => started.listen(data);
  worker.onerror = ({ message }) => {
    const why = "the server may lack the optional package '@mlc-ai/web-llm'";
    started.listen({ kind: "failed", message: message || `its script did not start: ${why}` });
  };
  return started;
}

/** Waits for a message of this kind. */
function said<K extends FromWebLlm["kind"]>(
  worker: Started,
  { message, until, take }: { message: ToWebLlm; until: K; take: (event: FromWebLlm) => void },
): Promise<Extract<FromWebLlm, { kind: K }>> {
  return new Promise((resolve, reject) => {
    worker.listen = (event) => {
      if (event.kind === until)
        resolve(event as Extract<FromWebLlm, { kind: K }>); // its kind was compared
      else if (event.kind === "failed") reject(new Error(event.message));
      else take(event);
    };
    worker.send(message);
  });
}
