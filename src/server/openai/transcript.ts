/** Transcripts in OpenAI's formats. */
import type { SpeechSegment } from "../../engine/index.ts";
import type { Frame } from "../http/sse.ts";
import type { TranscriptFormat } from "./transcription.ts";

export interface Transcript {
  readonly task: "transcribe" | "translate";
  /** As `en`. */
  readonly language: string;
  readonly seconds: number;
  readonly segments: readonly SpeechSegment[];
}

type Body = { readonly kind: "json"; readonly body: object } | { readonly kind: "text"; readonly body: string };

const WRITERS: Readonly<Record<TranscriptFormat, (transcript: Transcript) => Body>> = {
  json: ({ segments, seconds }) => ({ kind: "json", body: { text: textOf(segments), usage: usageOf(seconds) } }),
  text: ({ segments }) => ({ kind: "text", body: `${textOf(segments)}\n` }),
  srt: ({ segments }) => ({ kind: "text", body: segments.map((each, i) => `${i + 1}\n${cue(each, ",")}`).join("") }),
  vtt: ({ segments }) => ({ kind: "text", body: `WEBVTT\n\n${segments.map((each) => cue(each, ".")).join("")}` }),
  verbose_json: (transcript) => ({ kind: "json", body: verbose(transcript) }),
};

export const writeTranscript = (transcript: Transcript, format: TranscriptFormat): Body => WRITERS[format](transcript);

/** A part of the text, as soon as it is known. */
export const deltaFrame = ({ text }: SpeechSegment, isFirst: boolean): Frame => ({
  data: { type: "transcript.text.delta", delta: isFirst ? text.trimStart() : text },
});

export const doneFrame = ({ segments, seconds }: Transcript): Frame => ({
  data: { type: "transcript.text.done", text: textOf(segments), usage: usageOf(seconds) },
});

const textOf = (segments: readonly SpeechSegment[]): string =>
  segments
    .map(({ text }) => text)
    .join("")
    .trim();

const usageOf = (seconds: number): object => ({ type: "duration", seconds: Math.ceil(seconds) });

function verbose({ task, language, seconds, segments }: Transcript): object {
  return {
    task,
    language: nameOf(language),
    duration: rounded(seconds),
    text: textOf(segments),
    segments: segments.map((segment, id) => ({
      id,
      seek: Math.round(segment.from * 100),
      start: rounded(segment.start),
      end: rounded(segment.end),
      text: segment.text,
      tokens: segment.tokens,
      temperature: rounded(segment.temperature),
      avg_logprob: segment.logprob,
      compression_ratio: segment.repetition,
      no_speech_prob: segment.silence,
    })),
    usage: usageOf(seconds),
  };
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

/** The name in OpenAI's form: `english`. Whisper's code for Javanese is an old one. */
function nameOf(language: string): string {
  const names = new Intl.DisplayNames("en", { type: "language" });
  return (names.of(language === "jw" ? "jv" : language) ?? language).toLowerCase();
}

/** @param mark between seconds and milliseconds */
function cue({ start, end, text }: SpeechSegment, mark: "," | "."): string {
  return `${timeOf(start, mark)} --> ${timeOf(end, mark)}\n${text.trim().replaceAll("-->", "->")}\n\n`;
}

function timeOf(seconds: number, mark: string): string {
  const ms = Math.round(seconds * 1000);
  const parts = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map((value) =>
    String(Math.floor(value)).padStart(2, "0"),
  );
  return `${parts.join(":")}${mark}${String(ms % 1000).padStart(3, "0")}`;
}
