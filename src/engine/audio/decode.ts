/** Decodes audio files in a separate thread, which contains the damage of hostile files. */
import { AppError, runInThread } from "../../base/index.ts";
import type { DecodeJob, DecodeReply } from "./decode-worker.ts";
import { audioFormat } from "./format.ts";
import { RECORDING_SECONDS_MAX, SAMPLE_RATE } from "./sound.ts";

/** Two hours of MP3 take about 20 seconds, longer on a busy machine. */
const TIMEOUT_MS = 180_000;

interface DecodeOptions {
  readonly signal?: AbortSignal;
  /** Longer recordings are refused as soon as the limit is reached. */
  readonly secondsMax?: number;
}

/**
 * The sound of a WAV, MP3, AAC, FLAC, Ogg, WebM or MP4 file: one channel, the mean of all, at 16,000 samples per
 * second, between -1 and 1 if the file's samples are. A truncated file is read up to its end.
 *
 * Throws `bad_request` for another format, a damaged file and one without sound; `too_large` beyond our limits of bytes
 * or seconds; `timeout` if decoding takes far too long; and `cancelled` by the signal.
 */
export async function decodeAudio(
  bytes: Uint8Array,
  { signal, secondsMax = RECORDING_SECONDS_MAX }: DecodeOptions = {},
): Promise<Float32Array> {
  const format = audioFormat(bytes);
  const what = `audio: ${format}`;
  const own = new Uint8Array(bytes); // a copy, which is moved to the thread
  const job: DecodeJob = { format, bytes: own, samplesMax: secondsMax * SAMPLE_RATE };
  const reply = await runInThread<DecodeReply>(new Worker(new URL("./decode-worker.ts", import.meta.url)), job, {
    what,
    transfer: [own.buffer],
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  if ("samples" in reply) return reply.samples;
  if ("isTooLong" in reply)
    throw new AppError("too_large", `${what}: expected at most ${secondsMax} seconds, got more`);
  throw new AppError("bad_request", `${what}: ${reply.problem}`);
}
