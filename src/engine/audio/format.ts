/** The format of an audio file, by its first bytes. */
import { AppError } from "../../base/index.ts";

export type AudioFormat = "WAV" | "MP3" | "FLAC" | "Ogg" | "WebM" | "MP4" | "AAC";

const AUDIO_BYTES_MAX = 64 * 1024 * 1024;
const READABLE = "WAV, MP3, AAC, FLAC, Ogg, WebM or MP4 (M4A)";
/** Pictures in the same container: HEIC and AVIF. */
const PICTURE_BRANDS = /^(?:hei[cmsx]|hev[cmsx]|mif1|msf1|avi[fs])$/;

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
  if (text(bytes, 4, 4) === "ftyp") return PICTURE_BRANDS.test(text(bytes, 8, 4)) ? undefined : "MP4";
  if (isAdts(bytes)) return "AAC";
  return start.startsWith("ID3") || isMpegFrame(bytes) ? "MP3" : undefined;
}

/** Returns whether a frame of AAC may begin here: 12 set bits, any version, and two zeros. (ISO/IEC 14496-3, ADTS) */
export const isAdts = (bytes: Uint8Array, at = 0): boolean => bytes[at] === 0xff && (bytes[at + 1]! & 0xf6) === 0xf0;

/** A frame's header: 11 set bits, then a version, a layer, a bitrate and a sampling rate that exist. */
function isMpegFrame(bytes: Uint8Array): boolean {
  const [first = 0, second = 0, third = 0] = bytes;
  const [version, layer] = [(second >> 3) & 3, (second >> 1) & 3];
  const [bitrate, rate] = [third >> 4, (third >> 2) & 3];
  return first === 0xff && second >= 0xe0 && version !== 1 && layer !== 0 && bitrate !== 15 && rate !== 3;
}

function otherFormat(bytes: Uint8Array): string {
  if (bytes.length === 0) return "nothing";
  const start = Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `a file that begins with ${start}`;
}
