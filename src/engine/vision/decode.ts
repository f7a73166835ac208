/**
 * Decodes image files in a separate thread, which contains the damage of hostile files. Alpha is dropped, gray is
 * replicated, orientation is ignored, as in the reference.
 */
import { AppError, runInThread } from "../../base/index.ts";
import type { DecodeJob, DecodeReply } from "./decode-worker.ts";
import { sizeText, type RgbImage } from "./image.ts";
import { readImageHeader } from "./image-header.ts";

/** Forty megapixels take two to five seconds, longer on a busy machine. */
const TIMEOUT_MS = 60_000;

/**
 * Throws `bad_request` for an invalid or damaged image, `too_large` beyond our limits, `timeout` if decoding takes far
 * too long, and `cancelled` by the signal.
 */
export async function decodeImage(bytes: Uint8Array, signal?: AbortSignal): Promise<RgbImage> {
  const { format, width, height } = readImageHeader(bytes);
  const what = `image: ${format} of ${sizeText({ width, height })}`;
  const own = new Uint8Array(bytes); // a copy, which is moved to the thread
  const job: DecodeJob = { format, width, height, bytes: own };
  const reply = await runInThread<DecodeReply>(new Worker(new URL("./decode-worker.ts", import.meta.url)), job, {
    what,
    transfer: [own.buffer],
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  if ("problem" in reply) throw new AppError("bad_request", `${what}: damaged or cut off (${reply.problem})`);
  return { width, height, data: reply.data };
}
