/** The format of an audio file, by its first bytes. */
import { AppError } from "../../base/index.ts";

export type AudioFormat = "WAV" | "MP3" | "FLAC" | "Ogg" | "WebM";

const AUDIO_BYTES_MAX = 64 * 1024 * 1024;
const READABLE = "WAV, MP3, FLAC, Ogg (Vorbis, Opus) or WebM (Opus)";

/** Throws `bad_request` for another format, and `too_large` beyond our limit of bytes; both name the place. */
export function audioFormat(bytes: Uint8Array, place = "audio"): AudioFormat {
  if (bytes.length > AUDIO_BYTES_MAX)
    throw new AppError("too_large", `${place}: expected at most ${AUDIO_BYTES_MAX} bytes, got ${bytes.length}`);
  const found = formatOf(bytes);
  if (found) return found;
  throw new AppError("bad_request", `${place}: expected ${READABLE}, got ${otherFormat(bytes)}`);
}

/** Returns whether a file begins like one of these formats. */
export const isAudio = (bytes: Uint8Array): boolean => formatOf(bytes) !== undefined;

const text = (bytes: Uint8Array, at: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(at, at + length));

function formatOf(bytes: Uint8Array): AudioFormat | undefined {
  const start = text(bytes, 0, 4);
  if (/^(RIFF|RF64)$/.test(start) && text(bytes, 8, 4) === "WAVE") return "WAV";
  if (start === "fLaC") return "FLAC";
  if (start === "OggS") return "Ogg";
  if (start === "\x1aE\xdf\xa3") return "WebM";
  return start.startsWith("ID3") || isMpegFrame(bytes) ? "MP3" : undefined;
}

/** A frame's header: 11 set bits, then a version, a layer, a bitrate and a sampling rate that exist. */
function isMpegFrame(bytes: Uint8Array): boolean {
  const [first = 0, second = 0, third = 0] = bytes;
  const [version, layer] = [(second >> 3) & 3, (second >> 1) & 3];
  const [bitrate, rate] = [third >> 4, (third >> 2) & 3];
  return first === 0xff && second >= 0xe0 && version !== 1 && layer !== 0 && bitrate !== 15 && rate !== 3;
}

function otherFormat(bytes: Uint8Array): string {
  if (bytes.length === 0) return "nothing";
  if (text(bytes, 4, 4) === "ftyp") return "MP4 (M4A), which `ffmpeg -i in.m4a out.mp3` converts";
  const start = Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `a file that begins with ${start}`;
}
