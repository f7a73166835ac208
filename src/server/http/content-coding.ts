/**
 * Compressed bodies, which some agents and proxies send for long conversations. The reader of the chunks must bound
 * them: a few bytes can expand to gigabytes.
 */
import { pipeline, Readable, type Transform } from "node:stream";
import * as zlib from "node:zlib";
import { AppError, messageOf } from "../../base/index.ts";

/** RFC 8878 requires every decoder to support 8 MiB, which the decoder allocates. */
const WINDOW_LOG_MAX = 23;

type Chunks = AsyncIterable<Uint8Array>;

/** Decoders by their names in `Content-Encoding`. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: zlib.createGunzip,
  "x-gzip": zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
  zstd: () => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX } }),
};
/** Names for `Accept-Encoding`. */
export const CONTENT_CODINGS = "gzip, deflate, br, zstd";

/** The coding of a body; undefined: not compressed. Throws `unsupported_coding`, also for several at once. */
export function contentCoding(headers: Headers): string | undefined {
  const name = headers.get("content-encoding")?.trim().toLowerCase() || "identity";
  if (name === "identity") return undefined;
  if (Object.hasOwn(DECODERS, name)) return name;
  const shown = name.slice(0, 80);
  throw new AppError("unsupported_coding", `content-encoding: expected one of ${CONTENT_CODINGS}, got '${shown}'`);
}

/** Decompresses the chunks. Throws `bad_request` for invalid data, and passes on errors of `chunks`. */
export async function* decompressed(chunks: Chunks, coding: string): AsyncGenerator<Uint8Array, void, void> {
  const { bare, whole } = coding === "deflate" ? await peeked(chunks) : { bare: false, whole: chunks };
  const decoder = bare ? zlib.createInflateRaw() : DECODERS[coding]!();
  let failure: unknown;
  const source = Readable.from(whole, { objectMode: false });
  source.once("error", (error) => (failure = error));
  pipeline(source, decoder, () => {}); // both ends are destroyed together; the decoder raises the errors
  try {
    yield* decoder as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (failure instanceof AppError) throw failure;
    throw new AppError("bad_request", `request body: expected ${coding}, got ${messageOf(error)}`, { cause: error });
  } finally {
    decoder.destroy();
  }
}

/** RFC 9110 means zlib's format by deflate; some senders send raw deflate. */
async function peeked(chunks: Chunks): Promise<{ bare: boolean; whole: Chunks }> {
  const rest = chunks[Symbol.asyncIterator]();
  let start: Uint8Array = new Uint8Array();
  while (start.length < 2) {
    const { value, done } = await rest.next();
    if (done) break;
    start = Buffer.concat([start, value as Uint8Array]);
  }
  const [first = 0, second = 0] = start;
  const whole = async function* (): AsyncGenerator<Uint8Array, void, void> {
    yield start;
    yield* { [Symbol.asyncIterator]: () => rest };
  };
  return { bare: start.length >= 2 && ((first & 15) !== 8 || ((first << 8) | second) % 31 !== 0), whole: whole() };
}
