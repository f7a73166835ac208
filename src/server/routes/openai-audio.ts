/** `POST /v1/audio/transcriptions` and `/v1/audio/translations`: recordings to text, in the OpenAI API. */
import { AppError, parseKeepAlive } from "../../base/index.ts";
import type { SpeechEvent, SpeechSegment } from "../../engine/index.ts";
import type { TranscribeRequest } from "../../runtime/portable.ts";
import { readForm } from "../http/body.ts";
import { openaiErrorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import type { Frame } from "../http/sse.ts";
import { findModel, requireModel } from "../models/find-model.ts";
import { deltaFrame, doneFrame, writeTranscript, type Transcript } from "../openai/transcript.ts";
import { FILE_BYTES_MAX, readSpeechForm, TranscriptionBody, TranslationBody } from "../openai/transcription.ts";
import type { RouteDeps } from "./deps.ts";
import { post } from "./route.ts";

/** The file, and the other fields. */
const FORM_BYTES_MAX = FILE_BYTES_MAX + 1024 * 1024;

export const openaiAudioRoutes = [
  post("/v1/audio/transcriptions", (deps, exchange) => transcribe(deps, exchange, "transcribe"), {
    api: "OpenAI",
    summary: "The text of a recording",
    body: TranscriptionBody,
    isForm: true,
    reply: ["json", "text", "events"],
  }),
  post("/v1/audio/translations", (deps, exchange) => transcribe(deps, exchange, "translate"), {
    api: "OpenAI",
    summary: "The text of a recording, in English",
    body: TranslationBody,
    isForm: true,
    reply: ["json", "text"],
  }),
];

async function transcribe(deps: RouteDeps, exchange: Exchange, task: Transcript["task"]): Promise<Reply> {
  const { request, signal, note } = exchange;
  const { audio, format, streams, keepAlive, ...asked } = await readSpeechForm(await readForm(request, FORM_BYTES_MAX));
  const model = requireModel(asked.model);
  note({ model });
  const keepAliveMs = parseKeepAlive(keepAlive);
  const ref = await findModel(deps.store, model);
  const facts = await deps.inspect(ref);
  if (facts && !facts.capabilities.includes("transcription")) {
    const needed = "it needs a model for speech, such as Whisper";
    throw new AppError("bad_request", `${JSON.stringify(model)} does not support transcription: ${needed}`);
  }
  const more = keepAliveMs === undefined ? {} : { keepAliveMs };
  const wanted: TranscribeRequest = { ...asked, ...more, ref, audio, task, options: {}, signal };
  const events = noted(deps.runtime.transcribe(wanted), exchange);
  if (!streams) return writeTranscript(await collected(events, task), format);
  return { kind: "events", frames: frames(events, task), failed: (error) => [{ data: openaiErrorBody(error) }] };
}

async function* noted(events: AsyncGenerator<SpeechEvent, void, void>, { note }: Exchange): typeof events {
  for await (const event of events) {
    if (event.kind === "transcribed") note({ seconds: event.seconds });
    yield event;
  }
}

async function collected(events: AsyncIterable<SpeechEvent>, task: Transcript["task"]): Promise<Transcript> {
  const segments: SpeechSegment[] = [];
  for await (const event of events) {
    if (event.kind === "segment") segments.push(event.segment);
    else return { task, language: event.language, seconds: event.seconds, segments };
  }
  throw new Error("invariant: a transcription ended without its last event");
}

async function* frames(
  events: AsyncGenerator<SpeechEvent, void, void>,
  task: Transcript["task"],
): AsyncGenerator<Frame, void, void> {
  const segments: SpeechSegment[] = [];
  for await (const event of events) {
    if (event.kind === "segment") {
      yield deltaFrame(event.segment, segments.length === 0);
      segments.push(event.segment);
    } else yield doneFrame({ task, language: event.language, seconds: event.seconds, segments });
  }
}
