/** Bounded downloads of a release's files. */
import { open, type FileHandle } from "node:fs/promises";
import { AppError, messageOf } from "../../base/index.ts";
import type { ReleaseFile } from "./manifest.ts";

/** A download that receives nothing for this long has failed. */
const STALL_MS = 30_000;

export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
  readonly stallMs?: number | undefined;
}

/** A small file. Throws `upstream` for a server that refuses or stalls, `bad_request` for more than `maxBytes`. */
export async function fetchSmall(url: string, maxBytes: number, options: FetchOptions = {}): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(url, options)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new AppError("bad_request", `${url}: expected at most ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Downloads a file of a release and unpacks it into `path`, which must not exist. Nothing is unpacked before the
 * download's digest is checked. The caller always removes `path`.zst, and `path` after a failure.
 * @param onBytes receives the number of bytes so far
 */
export async function fetchUnpacked(
  base: string,
  about: ReleaseFile,
  path: string,
  { onBytes, ...options }: FetchOptions & { onBytes?: (bytes: number) => void },
): Promise<void> {
  const { file, bytes, sha256, unpackedBytes, unpackedSha256 } = about;
  const packed = `${path}.zst`;
  await write(packed, { name: file, bytes, sha256, onBytes }, chunksOf(`${base}/${file}`, options));
  const unpacked = Bun.file(packed).stream().pipeThrough(new DecompressionStream("zstd"));
  await write(path, { name: `${file}, unpacked`, bytes: unpackedBytes, sha256: unpackedSha256 }, unpacked);
}

interface Expected {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** Writes a new file. Throws `bad_file` unless size and digest are as expected. */
async function write(path: string, expected: Expected, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await writeChecked(file, expected, chunks);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeChecked(
  file: FileHandle,
  { name, bytes, sha256, onBytes }: Expected,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256");
  let done = 0;
  for await (const chunk of chunks) {
    if (done + chunk.length > bytes) throw new AppError("bad_file", `${name}: expected ${bytes} bytes, got more`);
    hash.update(chunk);
    for (let written = 0; written < chunk.length;) written += (await file.write(chunk, written)).bytesWritten;
    done += chunk.length;
    onBytes?.(done);
  }
  if (done < bytes) throw new AppError("bad_file", `${name}: expected ${bytes} bytes, got ${done}`);
  const found = hash.digest("hex");
  if (found !== sha256) throw new AppError("bad_file", `${name}: expected the digest sha256:${sha256}, got ${found}`);
}

/** The chunks of a reply. Throws `upstream`, and the signal's reason. */
async function* chunksOf(url: string, { signal, stallMs = STALL_MS }: FetchOptions): AsyncGenerator<Uint8Array> {
  const stop = new AbortController();
  const stalled = (): void =>
    stop.abort(new AppError("upstream", `${url}: nothing came for ${Math.ceil(stallMs / 1000)} seconds`));
  let timer = setTimeout(stalled, stallMs);
  try {
    const response = await fetch(url, {
      headers: { "accept-encoding": "identity" }, // digests are of the bytes as stored
      signal: signal ? AbortSignal.any([signal, stop.signal]) : stop.signal,
    });
    if (!response.ok || !response.body)
      throw new AppError("upstream", `${url}: the server answered ${response.status}`);
    for await (const chunk of response.body) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(stalled, stallMs);
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (stop.signal.aborted) throw stop.signal.reason;
    throw error instanceof AppError ? error : new AppError("upstream", `${url}: ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
