/** The transcriptions of a runner: one after another, each until it is done or cancelled. */
import { AppError, codeOf, messageOf } from "../../base/index.ts";
import { RECORDING_SECONDS_MAX, SAMPLE_RATE } from "../audio/sound.ts";
import { makeTranscriber } from "../audio/whisper/transcriber.ts";
import type { EngineInfo } from "../batching/engine-info.ts";
import type { LoadedEngine } from "../batching/load.ts";
import type { SpeechModel } from "../program/speech.ts";
import type { Channel } from "./channel.ts";
import type { TranscribeMessage } from "./messages.ts";
import type { DecodeAudio } from "./open-images.ts";
import type { EventLoop } from "../batching/event-loop.ts";

export interface Speech {
  readonly info: Pick<EngineInfo, "speech">;
  /** Sends the text and its end, or the failure. */
  transcribe(message: TranscribeMessage): Promise<void>;
  /** Ends a request at its next token; no further messages are sent for it. */
  cancel(id: number): void;
  /** Ends all requests. */
  close(): Promise<void>;
}

/** Throws `bad_file` if the model's vocabulary is not Whisper's, `unsupported` if there is no audio decoder here. */
export async function openSpeechModel(
  model: SpeechModel,
  { tokenizer }: LoadedEngine,
  { channel, decode, loop }: { channel: Channel; decode: DecodeAudio | undefined; loop: EventLoop },
): Promise<Speech> {
  if (!decode) throw new AppError("unsupported", "models that transcribe speech run on the server only");
  const transcriber = makeTranscriber(model, tokenizer);
  const running = new Map<number, AbortController>();
  let last: Promise<void> = Promise.resolve();

  const write = async ({ id, audio, ...task }: TranscribeMessage, signal: AbortSignal): Promise<void> => {
    if (signal.aborted) return;
    const pause = async (): Promise<void> => {
      await loop.nextTurn();
      if (signal.aborted) throw new AppError("cancelled", "transcription: cancelled by the caller");
    };
    try {
      const samples = await decode(audio, { signal, secondsMax: RECORDING_SECONDS_MAX });
      const language = await transcriber.write(samples, task, {
        onSegment: (segment) => channel.send({ kind: "segment", id, segment }),
        pause,
      });
      channel.send({ kind: "transcribed", id, language, seconds: samples.length / SAMPLE_RATE });
    } catch (error) {
      if (!signal.aborted)
        channel.send({ kind: "transcribeFailed", id, code: codeOf(error), message: messageOf(error) });
    } finally {
      running.delete(id);
    }
  };
  return {
    info: { speech: { languages: transcriber.languages } },
    transcribe(message) {
      const abort = new AbortController();
      running.set(message.id, abort);
      return (last = last.then(() => write(message, abort.signal)));
    },
    cancel: (id) => running.get(id)?.abort(),
    async close() {
      for (const abort of running.values()) abort.abort();
      await last;
      model.close?.();
    },
  };
}
