/**
 * Reads request bodies into memory, within limits of size and time, regardless of their announced length and their
 * compression.
 */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";
import { inTime, retryAfter } from "../../../base/index.ts";
import { Refusal } from "./problems.ts";

/** Read limit for authenticated and unauthenticated senders. */
export const READ_MS = 30_000;
export const UNPROVED_READ_MS = 10_000;
/** Read limit for locked-out addresses: enough for a body that arrives with its headers. */
export const LOCKED_READ_MS = 500;
/** A body of at most this size arrives in few packets and is read at once: a stream's buffers are larger. */
const SMALL_BYTES = 64 * 1024;
/** Initial buffer of a body in several chunks; it grows with the bytes received, not with the length announced. */
const FIRST_BYTES = 16 * 1024;

export interface ReadOptions {
  readonly limitBytes: number;
  readonly timeoutMs: number;
  /** Reserves memory; false: not enough is left. Absent: always true. */
  readonly hold?: (bytes: number) => boolean;
}

/** Maximum number of bytes of an unwanted body that are read before its connection is closed. */
const DRAIN_BYTES_MAX = 64 * 1024 * 1024;
const DRAIN_MS = 1000;
const CLOSE = { connection: "close" };

interface Message {
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array> | null;
  /** Reads all of `body`, with the announced length. Absent: only the stream is available. */
  bytes?(): Promise<Uint8Array>;
}

/** The decompressed body. Throws a `Refusal`. */
export async function readBody(message: Message, options: ReadOptions): Promise<Uint8Array> {
  const { headers } = message;
  const decode = decoderOf(headers.get("content-encoding"));
  const declared = Number(headers.get("content-length") ?? 0);
  const { limitBytes, timeoutMs, hold = () => true } = options;
  if (declared > limitBytes) throw new Refusal("payload_too_large"); // `dismiss` reads the rest
  const isSmall = declared > 0 && declared <= SMALL_BYTES;
  if (isSmall && message.bytes && !hold(declared)) throw tooBusy();
  const received =
    isSmall && message.bytes
      ? await whole(message.bytes(), timeoutMs)
      : await stream(message.body, { limitBytes, timeoutMs, hold });
  if (decode === undefined || received.length === 0) return received;
  if (!hold(limitBytes)) throw tooBusy(); // the largest size it may decompress to
  return decode(received, limitBytes);
}

const tooBusy = (headers = {}): Refusal => new Refusal("too_busy", { headers: { ...retryAfter(1000), ...headers } });

/** Throws a `Refusal`. Later bytes are dropped: the connection is closed with the answer. */
function whole(bytes: Promise<Uint8Array>, timeoutMs: number): Promise<Uint8Array> {
  const broken = (error: unknown): never => {
    throw new Refusal("client_gone", { cause: error });
  };
  const tooLate = (): never => {
    throw late();
  };
  return inTime(bytes.catch(broken), { ms: timeoutMs, late: tooLate });
}

const stream = async (body: Message["body"], options: Required<ReadOptions>): Promise<Uint8Array> =>
  body === null ? new Uint8Array() : receive(body, options);

/**
 * Returns a single chunk, the common case, unchanged; joins several in one buffer, because a client chooses their size.
 */
async function receive(
  body: ReadableStream<Uint8Array>,
  { limitBytes, timeoutMs, hold }: Required<ReadOptions>,
): Promise<Uint8Array> {
  const reader = body.getReader();
  let isLate = false;
  const cancel = (): void => void reader.cancel().catch(() => undefined); // the stream is broken or at its end
  const timer = setTimeout(() => {
    isLate = true;
    cancel(); // ends the pending read
  }, timeoutMs);
  let bytes: Uint8Array = new Uint8Array();
  let length = 0;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      if (length + value.length > limitBytes) {
        throw new Refusal("payload_too_large", { headers: (await isDrained(reader)) ? {} : CLOSE });
      }
      if (!hold(value.length)) throw tooBusy((await isDrained(reader)) ? {} : CLOSE);
      if (length === 0) bytes = value;
      else {
        bytes = withRoom(bytes, { length, more: value.length, limitBytes });
        bytes.set(value, length);
      }
      length += value.length;
    }
  } catch (error) {
    if (error instanceof Refusal || isLate) throw isLate ? late() : error;
    throw new Refusal("client_gone", { cause: error });
  } finally {
    clearTimeout(timer);
    cancel();
  }
  if (isLate) throw late();
  return bytes.subarray(0, length);
}

const late = (): Refusal => new Refusal("body_timeout", { headers: CLOSE });

interface Reader {
  read(): Promise<{ readonly value?: Uint8Array | undefined; readonly done: boolean }>;
  cancel(): Promise<void>;
}

/**
 * Connection headers for a refusal. An unread body is read to its end, within limits, because a client that still
 * writes would miss the answer. A longer or slower one loses its connection.
 */
export async function dismiss(body: Message["body"]): Promise<Readonly<Record<string, string>>> {
  if (body === null || body.locked) return {};
  return (await isDrained(body.getReader())) ? {} : CLOSE;
}

/** True if the rest of a body arrived in time. */
async function isDrained(reader: Reader): Promise<boolean> {
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), DRAIN_MS);
  const untilMs = performance.now() + DRAIN_MS;
  try {
    for (let bytes = 0; bytes <= DRAIN_BYTES_MAX;) {
      const { value, done } = await reader.read();
      if (done) return performance.now() < untilMs;
      bytes += value?.length ?? 0;
    }
    return false;
  } catch {
    return false; // the client disconnected
  } finally {
    clearTimeout(timer);
    void reader.cancel().catch(() => undefined);
  }
}

function withRoom(
  bytes: Uint8Array,
  { length, more, limitBytes }: { length: number; more: number; limitBytes: number },
): Uint8Array {
  if (length + more <= bytes.length) return bytes;
  const larger = new Uint8Array(Math.min(limitBytes, Math.max(length + more, bytes.length * 2, FIRST_BYTES)));
  larger.set(bytes.subarray(0, length));
  return larger;
}

type Decode = (bytes: Uint8Array, limitBytes: number) => Promise<Uint8Array>;
type Unpack = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

const UNPACK: Readonly<Record<string, Unpack>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  br: promisify(brotliDecompress),
  // RFC 9110 means zlib's format by this name; some senders send raw deflate
  deflate: (bytes, options) => promisify(isZlib(bytes) ? inflate : inflateRaw)(bytes, options),
};

const isZlib = (bytes: Uint8Array): boolean =>
  bytes.length >= 2 && (bytes[0]! & 15) === 8 && ((bytes[0]! << 8) | bytes[1]!) % 31 === 0;

/** Undefined: not encoded. Throws for unknown encodings, and for several at once. */
function decoderOf(encoding: string | null): Decode | undefined {
  const name = encoding?.trim().toLowerCase() || "identity";
  if (name === "identity") return undefined;
  const unpack = Object.hasOwn(UNPACK, name) ? UNPACK[name] : undefined;
  if (!unpack) throw new Refusal("unsupported_encoding", { headers: { "accept-encoding": "gzip, deflate, br" } });
  return async (bytes, limitBytes) => {
    try {
      return await unpack(bytes, { maxOutputLength: limitBytes });
    } catch (error) {
      // node:zlib throws no other type
      const isTooLong = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
      throw new Refusal(isTooLong ? "payload_too_large" : "invalid_encoding", { cause: error });
    }
  };
}
