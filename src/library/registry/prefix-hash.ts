/**
 * The digest of a blob that arrives in parts, computed on a separate thread: it follows the gapless start of the file
 * during the download, so that little is left to hash at the end.
 */
import { AppError } from "../../base/index.ts";
import { parseDigest, type Digest } from "../store/digest.ts";
import type { HashReply, HashRequest } from "./hash-worker.ts";

const STEP_BYTES = 4 * 1024 * 1024; // fewer, larger requests

/** Dispose it before the file is closed: that ends the thread and its work. */
export class PrefixHash implements Disposable {
  readonly #worker = new Worker(new URL("./hash-worker.ts", import.meta.url));
  readonly #result = Promise.withResolvers<Digest>();
  #asked = 0;

  constructor({ path, fd }: { readonly path: string; readonly fd: number }) {
    const { resolve, reject } = this.#result;
    this.#result.promise.catch(() => {}); // `finish` rejects with the same error
    this.#worker.onmessage = ({ data }: { data: HashReply }) => {
      if ("hex" in data) resolve(parseDigest(`sha256:${data.hex}`));
      else reject(new AppError("storage", `${path}: ${data.problem}`));
    };
    this.#worker.onerror = ({ message }) => reject(new Error(`a hashing thread failed: ${message}`));
    this.#post({ fd });
  }

  /** This many bytes from the start have arrived. */
  advance(prefix: number): void {
    if (prefix - this.#asked < STEP_BYTES) return;
    this.#asked = prefix;
    this.#post({ upTo: prefix });
  }

  /**
   * The digest of the first `size` bytes, all of which have arrived. Throws `storage`, and `cancelled` when disposed.
   */
  finish(size: number): Promise<Digest> {
    this.#post({ upTo: size, isLast: true });
    return this.#result.promise;
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
    this.#result.reject(new AppError("cancelled", "request canceled"));
  }

  #post(request: HashRequest): void {
    this.#worker.postMessage(request);
  }
}
