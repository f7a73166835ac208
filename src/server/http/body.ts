/** Request bodies as text, with bounded memory. A body is read as JSON, even if it has another content type. */
import type { Static, TSchema } from "elysia";
import { AppError, inTime } from "../../base/index.ts";
import { contentCoding, decompressed } from "./content-coding.ts";
import { decode } from "./decode.ts";
import { parseBody } from "./json.ts";

/** Room for a dozen photographs in base64. The process-wide limit is far higher, for uploads of models. */
export const JSON_BYTES_MAX = 64 * 1024 * 1024;

/** A client that is silent for this long in the middle of a body is gone, or malicious. */
const BODY_IDLE_MS = 60_000;

/** A body of at most this size arrives in few packets and is read at once. */
const SMALL_BYTES = 64 * 1024;

/** Throws `bad_request` and `too_large`. */
export async function readRequest<T extends TSchema>(request: Request, schema: T): Promise<Static<T>> {
  return decode(schema, await readJson(request));
}

/** A body of any shape. Throws `bad_request` and `too_large`. */
export async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request, JSON_BYTES_MAX);
  if (/^[ \t\r\n]*$/.test(text)) throw new AppError("bad_request", "missing request body");
  return parseBody(text);
}

/** A form of texts and files. */
export type Form = Awaited<ReturnType<Response["formData"]>>;

/** Reads a form. Throws `bad_request` and `too_large`. */
export async function readForm(request: Request, limit: number): Promise<Form> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^multipart\/form-data\b/i.test(type))
    throw new AppError("bad_request", `content type: expected 'multipart/form-data', got '${type.slice(0, 80)}'`);
  checkAnnounced(request, limit);
  const body = await readBytes(request, limit);
  try {
    return await new Response(body, { headers: { "content-type": type } }).formData();
  } catch (error) {
    throw new AppError("bad_request", "request body: expected a form in parts, got something else", { cause: error });
  }
}

async function readText(request: Request, limit: number): Promise<string> {
  const announced = checkAnnounced(request, limit);
  const coding = contentCoding(request.headers);
  if (announced > 0 && announced <= SMALL_BYTES && coding === undefined) return arrived(request.text(), BODY_IDLE_MS);
  return new TextDecoder().decode(await readBytes(request, limit));
}

/** The announced length; 0 if it is missing. Throws `too_large`. */
function checkAnnounced(request: Request, limit: number): number {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > limit) throw tooLarge(limit, announced);
  return announced;
}

async function readBytes(request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const isPlain = contentCoding(request.headers) === undefined;
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const chunk of decoded(request)) {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit, isPlain ? length : undefined);
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/** The decompressed body. Throws `unsupported_coding`. */
export function decoded(request: Request): AsyncIterable<Uint8Array> {
  const coding = contentCoding(request.headers);
  return coding === undefined ? received(request) : decompressed(received(request), coding);
}

/**
 * The body as it arrives. A broken connection means that the client left; a connection that is silent for `idleMs` is
 * dropped.
 */
export async function* received(request: Request, idleMs = BODY_IDLE_MS): AsyncGenerator<Uint8Array, void, void> {
  const reader = request.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      const { value, done } = await arrived(reader.read(), idleMs);
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined); // the stream is broken or at its end
  }
}

/** Throws `cancelled` if the promise fails, `timeout` if it takes too long. */
function arrived<T>(part: Promise<T>, ms: number): Promise<T> {
  const broken = (error: unknown): never => {
    throw new AppError("cancelled", "request canceled", { cause: error });
  };
  const late = (): never => {
    throw new AppError("timeout", `request body: expected more of it within ${ms / 1000} s, got nothing`);
  };
  return inTime(part.catch(broken), { ms, late });
}

/** @param found undefined: the body is compressed, and was not read to its end */
function tooLarge(limit: number, found: number | undefined): AppError {
  const got = found === undefined ? "got more once decompressed" : `got ${found}`;
  return new AppError("too_large", `request body: expected at most ${limit} bytes, ${got}`);
}
