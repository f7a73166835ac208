/**
 * Reads request bodies into memory: never more than a limit, never longer than a deadline, whatever was announced and
 * however it is compressed.
 */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";
import { retryAfter } from "../../../base/index.ts";
import { Refusal } from "./problems.ts";

/** From a sender that has proved who it is, and from one that has not yet. */
export const READ_MS = 30_000;
export const UNPROVED_READ_MS = 10_000;
/** From an address that is locked out: a body that comes with its headers is there. */
export const LOCKED_READ_MS = 500;
/** A body of at most so many bytes comes in few packets, and is waited for as a whole: buffers of a stream are more. */
const SMALL_BYTES = 64 * 1024;
/** What a body of several chunks gets at first; it grows as bytes come in, not as they are announced. */
const FIRST_BYTES = 16 * 1024;

export interface ReadOptions {
  readonly limitBytes: number;
  readonly timeoutMs: number;
  /** Whether there is memory for so many bytes more; absent: always. */
  readonly hold?: (bytes: number) => boolean;
}

/** Bytes of an unwanted body that are read before its connection is closed. */
const DRAIN_BYTES_MAX = 64 * 1024 * 1024;
const DRAIN_MS = 1000;
const CLOSE = { connection: "close" };

interface Message {
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array> | null;
  /** All of it, in place of `body`: as many bytes as were announced. Absent: there is only the stream. */
  bytes?(): Promise<Uint8Array>;
}

/** The bytes as the sender wrote them, before compression. Throws a `Refusal`. */
export async function readBody(message: Message, options: ReadOptions): Promise<Uint8Array> {
  const { headers } = message;
  const decode = decoderOf(headers.get("content-encoding"));
  const declared = Number(headers.get("content-length") ?? 0);
  const { limitBytes, timeoutMs, hold = () => true } = options;
  if (declared > limitBytes) throw new Refusal("payload_too_large"); // the rest: see `dismiss`
  const isSmall = declared > 0 && declared <= SMALL_BYTES;
  if (isSmall && message.bytes && !hold(declared)) throw tooBusy();
  const received =
    isSmall && message.bytes
      ? await inTime(message.bytes(), timeoutMs)
      : await stream(message.body, { limitBytes, timeoutMs, hold });
  if (decode === undefined || received.length === 0) return received;
  if (!hold(limitBytes)) throw tooBusy(); // as many as may come of it
  return decode(received, limitBytes);
}

const tooBusy = (headers = {}): Refusal => new Refusal("too_busy", { headers: { ...retryAfter(1000), ...headers } });

/** Throws a `Refusal`. What comes later is nobody's: its connection is closed with the answer. */
async function inTime(bytes: Promise<Uint8Array>, timeoutMs: number): Promise<Uint8Array> {
  const tooLate = Promise.withResolvers<never>();
  const timer = setTimeout(() => tooLate.reject(late()), timeoutMs);
  const whole = bytes.catch((error: unknown): never => {
    throw new Refusal("client_gone", { cause: error });
  });
  try {
    return await Promise.race([whole, tooLate.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const stream = async (body: Message["body"], options: Required<ReadOptions>): Promise<Uint8Array> =>
  body === null ? new Uint8Array() : receive(body, options);

/** One chunk as it is, which most bodies are; one buffer for several: a client chooses how small they are. */
async function receive(
  body: ReadableStream<Uint8Array>,
  { limitBytes, timeoutMs, hold }: Required<ReadOptions>,
): Promise<Uint8Array> {
  const reader = body.getReader();
  let isLate = false;
  const cancel = (): void => void reader.cancel().catch(() => undefined); // it broke, or it is at its end
  const timer = setTimeout(() => {
    isLate = true;
    cancel(); // ends the read that waits
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
 * What a refusal's answer says of its connection. A body that nobody has read is read to its end, within limits: a
 * client that still writes would miss the answer. One that takes longer, or has more to send, loses its connection.
 */
export async function dismiss(body: Message["body"]): Promise<Readonly<Record<string, string>>> {
  if (body === null || body.locked) return {};
  return (await isDrained(body.getReader())) ? {} : CLOSE;
}

/** Whether the rest of a body came soon. */
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
    return false; // the client is gone
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
  // RFC 9110 means zlib's format by this name; some senders mean the bare one
  deflate: (bytes, options) => promisify(isZlib(bytes) ? inflate : inflateRaw)(bytes, options),
};

const isZlib = (bytes: Uint8Array): boolean =>
  bytes.length >= 2 && (bytes[0]! & 15) === 8 && ((bytes[0]! << 8) | bytes[1]!) % 31 === 0;

/** Undefined: there is nothing to decode. Throws for what we do not know, and for several at once. */
function decoderOf(encoding: string | null): Decode | undefined {
  const name = encoding?.trim().toLowerCase() || "identity";
  if (name === "identity") return undefined;
  const unpack = Object.hasOwn(UNPACK, name) ? UNPACK[name] : undefined;
  if (!unpack) throw new Refusal("unsupported_encoding", { headers: { "accept-encoding": "gzip, deflate, br" } });
  return async (bytes, limitBytes) => {
    try {
      return await unpack(bytes, { maxOutputLength: limitBytes });
    } catch (error) {
      const isTooLong = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE"; // node:zlib throws no other
      throw new Refusal(isTooLong ? "payload_too_large" : "invalid_encoding", { cause: error });
    }
  };
}
