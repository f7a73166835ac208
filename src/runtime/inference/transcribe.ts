/** Transcribe: transcribes a recording with a model for speech. */
import type { SpeechEvent } from "../../engine/index.ts";
import { AppError } from "../../base/index.ts";
import { lease, modelOf, type RuntimeParts } from "./lease.ts";
import type { TranscribeRequest } from "../requests/runtime.ts";

/** Repeats the request once on a fresh runner if the first one ended before it received it. */
export async function* runTranscribe(
  parts: RuntimeParts,
  request: TranscribeRequest,
): AsyncGenerator<SpeechEvent, void, void> {
  const model = await modelOf(parts, request);
  const { audio, language, task, prompt, temperature, signal } = request;
  for (let isLast = false; ; isLast = true) {
    const loaded = await lease(parts, model, request);
    const { runner } = loaded.lease;
    try {
      if (!runner.info.speech) {
        const needed = "it needs a model for speech, such as Whisper";
        throw new AppError("bad_request", `${JSON.stringify(request.model)} does not support transcription: ${needed}`);
      }
      yield* runner.transcribe({ audio, language, task, prompt, temperature }, signal);
      return;
    } catch (error) {
      if (isLast || !loaded.lease.wasSilent()) throw error;
    } finally {
      loaded.lease.release();
    }
    await loaded.lease.ended;
  }
}
