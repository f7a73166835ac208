/** The forms of `POST /v1/audio/transcriptions` and `/v1/audio/translations`. */
import { t } from "elysia";
import { AppError } from "../../base/index.ts";
import type { Form } from "../http/body.ts";
import { InvalidRequest } from "../http/errors.ts";

/** OpenAI's limit. */
export const FILE_BYTES_MAX = 25 * 1024 * 1024;

const translationFields = {
  /** WAV, MP3, AAC, FLAC, Ogg, WebM or MP4. */
  file: t.String({ format: "binary" }),
  model: t.String(),
  /** Names and style that the text should follow. */
  prompt: t.Optional(t.String()),
  response_format: t.Optional(t.String()),
  temperature: t.Optional(t.Number()),

  // not in the OpenAI API
  keep_alive: t.Optional(t.String()),
};
export const TranslationBody = t.Object(translationFields, { title: "TranslationRequest" });
export const TranscriptionBody = t.Object(
  {
    ...translationFields,
    /** A code of ISO 639-1; missing: the model detects the language. */
    language: t.Optional(t.String()),
    stream: t.Optional(t.Boolean()),
    "timestamp_granularities[]": t.Optional(t.Array(t.String())),
  },
  { title: "TranscriptionRequest" },
);

const FORMATS = ["json", "text", "srt", "verbose_json", "vtt"] as const;
export type TranscriptFormat = (typeof FORMATS)[number];

/** The fields of a form. */
export interface SpeechForm {
  readonly audio: Uint8Array;
  readonly model: string;
  readonly language: string | undefined;
  readonly prompt: string | undefined;
  readonly format: TranscriptFormat;
  readonly temperature: number;
  readonly streams: boolean;
  readonly keepAlive: string | undefined;
}

/** Throws `bad_request` naming the field, and `too_large`. */
export async function readSpeechForm(form: Form): Promise<SpeechForm> {
  const text = (name: string): string | undefined => {
    const value = form.get(name);
    if (value !== null && typeof value !== "string") throw wrong(name, "a text", "a file");
    return value?.trim() || undefined;
  };
  const format = (text("response_format") ?? "json") as TranscriptFormat; // checked below
  if (!FORMATS.includes(format)) throw wrong("response_format", FORMATS.join(", "), `'${format.slice(0, 40)}'`);
  const temperature = Number(text("temperature") ?? 0);
  if (!(temperature >= 0 && temperature <= 1)) throw wrong("temperature", "0 to 1", `'${text("temperature")}'`);
  const streams = /^(true|1)$/i.test(text("stream") ?? "");
  if (streams && format !== "json" && format !== "text")
    throw wrong("response_format", "json or text for a stream", `'${format}'`);
  checkGranularities(form);
  return {
    audio: await fileOf(form),
    model: text("model") ?? "",
    language: text("language")?.toLowerCase(),
    prompt: text("prompt"),
    format,
    temperature,
    streams,
    keepAlive: text("keep_alive"),
  };
}

async function fileOf(form: Form): Promise<Uint8Array> {
  const file: unknown = form.get("file");
  if (!(file instanceof Blob)) throw wrong("file", "a file of sound", file === null ? "none" : "a text");
  if (file.size > FILE_BYTES_MAX)
    throw new AppError("too_large", `file: expected at most ${FILE_BYTES_MAX} bytes, got ${file.size}`);
  return new Uint8Array(await file.arrayBuffer());
}

/** Refuses times of words, which need the decoder's attention: its graph does not return that. */
function checkGranularities(form: Form): void {
  const name = "timestamp_granularities[]";
  const asked = [...form.getAll(name), ...form.getAll("timestamp_granularities")];
  const other = asked.find((each) => each !== "segment");
  if (other !== undefined) throw wrong(name, "segment, the only one that models here have", `'${String(other)}'`);
}

function wrong(param: string, expected: string, got: string): AppError {
  return new InvalidRequest("bad_request", `${param}: expected ${expected}, got ${got}`, { param });
}
