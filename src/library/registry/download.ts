/**
 * Downloads one blob into the store: parts in order over several connections, hashed as they arrive, and published if
 * the digest is right. A download resumes where an earlier one stopped, and keeps its bytes whenever it stops.
 */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { AppError, checkNotCancelled } from "../../base/index.ts";
import { blobPath } from "../store/blobs.ts";
import { digestOfFile } from "../store/digest.ts";
import type { BlobSource } from "./blob-source.ts";
import type { BrokenBlobs } from "./broken-blobs.ts";
import { PartFile, type Part } from "./part-file.ts";
import { PrefixHash } from "./prefix-hash.ts";
import { retry, Transient, type Limits } from "./retry.ts";
import { StallWatch } from "./stall-watch.ts";

const CONNECTIONS = 8; // each buffers a few megabytes at most
const WRITE_MS = 2000; // on a slow line, bytes are written before a block is full
/**
 * Linux caches larger writes in pages of up to 2 MB, which a virtual machine may first have to get from its host: that
 * took two thirds of a fast download's time.
 */
const BLOCK_BYTES = 256 * 1024;

interface DownloadParts {
  readonly root: string;
  readonly source: BlobSource;
  readonly limits: Limits;
  /** Records the outcome. */
  readonly broken: BrokenBlobs;
}

/** Starts by itself. The creator awaits `stored`; `cancel` ends it early. */
export class Download {
  readonly source: BlobSource;
  /** The digest was right and the blob is in the store. Throws `registry`, `storage`, `cancelled`. */
  readonly stored: Promise<void>;
  #state: "receiving" | "received" | "stored" | { readonly error: unknown } = "receiving";
  readonly #root: string;
  readonly #limits: Limits;
  readonly #broken: BrokenBlobs;
  readonly #stop = new AbortController();
  #file: PartFile | undefined;

  constructor({ root, source, limits, broken }: DownloadParts) {
    this.source = source;
    this.#broken = broken;
    this.#root = root;
    this.#limits = limits;
    this.stored = this.#run();
    this.stored.then(
      () => void (this.#state = "stored"),
      (error: unknown) => void (this.#state = { error }),
    );
  }

  get total(): number {
    return this.source.blob.size;
  }

  /** Bytes received; undefined until an earlier download's state was read. Never decreases. */
  get completed(): number | undefined {
    return this.#file?.completed;
  }

  /** True if all bytes were received. */
  get isReceived(): boolean {
    return this.#state === "received" || this.#state === "stored";
  }

  get isStored(): boolean {
    return this.#state === "stored";
  }

  /** Throws the failure of the download, if any. */
  check(): void {
    if (typeof this.#state === "object") throw this.#state.error;
  }

  /** Stops and keeps the received bytes. */
  cancel(): void {
    this.#stop.abort();
  }

  get isCancelled(): boolean {
    return this.#stop.signal.aborted;
  }

  async #run(): Promise<void> {
    const { digest, size } = this.source.blob;
    await using file = await PartFile.open(this.#root, this.source.blob, this.#limits.partBytes);
    this.#file = file;
    await checkSpace(this.#root, { bytes: size - file.completed, host: this.source.host });
    using hash = file.parts.length > 1 ? new PrefixHash(file) : undefined; // less is not worth a thread
    this.#stop.signal.addEventListener("abort", () => hash?.[Symbol.dispose](), { once: true });
    hash?.advance(file.prefix);
    await this.#receive(file, hash);
    this.#state = "received";
    const hashed = hash ? hash.finish(size) : digestOfFile(file.path);
    const [found] = await Promise.all([hashed, file.flush()]);
    checkNotCancelled(this.#stop.signal);
    const place = { host: this.source.host, digest };
    if (found === digest) {
      this.#broken.forget(place);
      return await file.install(blobPath(this.#root, digest));
    }
    await file.discard();
    throw this.#broken.note(place, found);
  }

  async #receive(file: PartFile, hash: PrefixHash | undefined): Promise<void> {
    const pending = file.parts.filter(({ size, completed }) => completed < size);
    const ranges = makeRanges();
    const failed = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, failed.signal]);
    const work = async (isFirst: boolean): Promise<void> => {
      if (!isFirst && !(await ranges.known)) return;
      for (let part = pending.shift(); part; part = pending.shift()) {
        await this.#fetch(part, { file, hash, signal, ranges });
      }
    };
    const workers = Array.from({ length: Math.min(CONNECTIONS, pending.length) }, (_, i) =>
      work(i === 0)
        .finally(() => i === 0 && ranges.settle(false))
        .catch((error: unknown) => {
          failed.abort();
          throw error;
        }),
    );
    const results = await Promise.allSettled(workers);
    checkNotCancelled(this.#stop.signal);
    const failures = results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
    const [first] = failures.filter((error) => !isCancelled(error)); // the other parts were cancelled because of it
    if (first instanceof RangesIgnored) {
      const whole = await file.merge();
      return this.#fetch(whole, { file, hash, signal: this.#stop.signal, ranges });
    }
    if (failures.length > 0) throw first ?? failures[0];
  }

  async #fetch(part: Part, options: FetchOptions): Promise<void> {
    await retry(() => this.#stream(part, options), {
      limits: this.#limits,
      signal: options.signal,
      progress: () => part.completed,
    });
  }

  async #stream(part: Part, { file, hash, signal, ranges }: FetchOptions): Promise<void> {
    const { source } = this;
    using watch = new StallWatch({ stallMs: this.#limits.stallMs, wanted: signal });
    const [from, to] = [part.offset + part.completed, part.offset + part.size];
    const opened = await source.open({ from, to }, watch);
    if (opened.kind === "whole" && file.parts.length > 1) {
      if (!ranges.areServed()) throw new RangesIgnored();
      throw new Transient(`${source.host}: expected a part of the blob, got all of it`);
    }
    ranges.settle(opened.kind === "range");
    const body = bounded(opened.body, { skip: opened.kind === "whole" ? from : 0, length: to - from });
    try {
      for await (const bytes of gathered(body, watch, { from, to })) {
        await file.write(part, bytes);
        hash?.advance(file.prefix);
      }
    } catch (error) {
      throw watch.translate(error, source.host);
    }
    if (part.completed < part.size) throw new Transient(`${source.host}: the connection ended early`);
  }
}

interface FetchOptions {
  readonly file: PartFile;
  readonly hash: PrefixHash | undefined;
  readonly signal: AbortSignal;
  readonly ranges: Ranges;
}

/** True if the server supports ranges, which its first answer shows. */
interface Ranges {
  readonly known: Promise<boolean>;
  areServed(): boolean;
  settle(served: boolean): void;
}

function makeRanges(): Ranges {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let isServed: boolean | undefined;
  return {
    known: promise,
    areServed: () => isServed === true,
    settle(served) {
      isServed ??= served;
      resolve(isServed);
    },
  };
}

/** The server sends the whole blob for any range. Never leaves this file. */
class RangesIgnored extends Error {}

const isCancelled = (error: unknown): boolean => error instanceof AppError && error.code === "cancelled";

/** `length` bytes after the first `skip`. */
export async function* bounded(
  body: AsyncIterable<Uint8Array>,
  { skip, length }: { skip: number; length: number },
): AsyncGenerator<Uint8Array, void, void> {
  let [before, left] = [skip, length];
  for await (const chunk of body) {
    const start = Math.min(before, chunk.length);
    before -= start;
    const piece = chunk.subarray(start, start + left);
    left -= piece.length;
    yield piece;
    if (left === 0) return;
  }
}

/**
 * Gathers chunks in a buffer with the alignment of its block in the file: copies between addresses of equal alignment
 * are several times faster. Yields the buffer's new bytes when the block is full, and before a failure is thrown; the
 * next step overwrites them. Frees each chunk, because the collector would do so late.
 */
async function* gathered(
  body: AsyncIterable<Uint8Array>,
  watch: StallWatch,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Uint8Array, void, void> {
  let start = from % BLOCK_BYTES;
  const block = new Uint8Array(Math.min(BLOCK_BYTES, start + to - from));
  let end = start;
  let lastMs = performance.now();
  let failure: { error: unknown } | undefined;
  try {
    for await (const chunk of body) {
      watch.moved();
      for (let at = 0; at < chunk.length;) {
        const piece = chunk.subarray(at, at + BLOCK_BYTES - end);
        block.set(piece, end);
        at += piece.length;
        end += piece.length;
        if (end < BLOCK_BYTES && performance.now() - lastMs < WRITE_MS) continue;
        yield block.subarray(start, end);
        start = end = end % BLOCK_BYTES;
        lastMs = performance.now();
      }
      const { buffer } = chunk;
      if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
    }
  } catch (error) {
    failure = { error };
  }
  if (end > start) yield block.subarray(start, end);
  if (failure) throw failure.error;
}

async function checkSpace(root: string, { bytes, host }: { bytes: number; host: string }): Promise<void> {
  const folder = join(root, "blobs");
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (bytes <= free) return;
  throw new AppError(
    "storage",
    `cannot write to '${folder}': ${host} announces ${bytes} bytes, the disk has ${free} left`,
  );
}
