/**
 * Bodies that come compressed with Zstandard (RFC 8878), as some agents send long conversations. The window is bounded
 * because the decoder allocates it, the text because a few bytes can stand for gigabytes.
 */
import { pipeline, Readable } from "node:stream";
import { constants, createZstdDecompress } from "node:zlib";
import { AppError, messageOf } from "../../base/errors.ts";

/** What RFC 8878 wants every decoder to take, 8 MiB. */
const WINDOW_LOG_MAX = 23;
/** Decompressed: the longest context of any model is a few megabytes of text. */
export const ZSTD_BYTES_MAX = 20 * 1024 * 1024;

/** The decompressed chunks. Throws `bad_request` where they are no Zstandard, `too_large` beyond the limit. */
export async function* decompressed(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const params = { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX };
  const decoder = createZstdDecompress({ params });
  let failure: unknown;
  const source = Readable.from(chunks, { objectMode: false });
  source.once("error", (error) => (failure = error));
  pipeline(source, decoder, () => {}); // both ends are destroyed together; errors come out of the decoder
  let length = 0;
  try {
    for await (const chunk of decoder as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > ZSTD_BYTES_MAX) {
        throw new AppError("too_large", `request body: expected at most ${ZSTD_BYTES_MAX} bytes once decompressed`);
      }
      yield chunk;
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (failure instanceof AppError) throw failure;
    throw new AppError("bad_request", `request body: expected Zstandard, got ${messageOf(error)}`, { cause: error });
  } finally {
    decoder.destroy();
  }
}
