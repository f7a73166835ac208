/** The thread of `PrefixHash`: hashes a file up to a given offset. */
import { read } from "node:fs";
import { promisify } from "node:util";
import { messageOf } from "../../base/index.ts";

const readFrom = promisify(read);

const PIECE_BYTES = 1024 * 1024;

/**
 * First the file, which its opener owns (a terminated thread leaks files that it opened), then the offsets to hash up
 * to.
 */
export type HashRequest = { readonly fd: number } | { readonly upTo: number; readonly isLast?: true };
export type HashReply = { readonly hex: string } | { readonly problem: string };

interface Thread {
  onmessage: (event: { data: HashRequest }) => void;
  postMessage(reply: HashReply): void;
}

/** Handles one request at a time, in order. */
function makeHash(): (request: HashRequest) => Promise<string | undefined> {
  const hasher = new Bun.CryptoHasher("sha256");
  const buffer = new Uint8Array(PIECE_BYTES);
  let fd: number | undefined;
  let hashed = 0;
  return async (request) => {
    if ("fd" in request) {
      ({ fd } = request);
      return undefined;
    }
    while (fd !== undefined && hashed < request.upTo) {
      const { bytesRead } = await readFrom(fd, buffer, 0, Math.min(PIECE_BYTES, request.upTo - hashed), hashed);
      if (bytesRead === 0) throw new Error(`expected ${request.upTo} bytes, found ${hashed}`);
      hasher.update(buffer.subarray(0, bytesRead));
      hashed += bytesRead;
    }
    return request.isLast && hasher.digest("hex");
  };
}

if (!Bun.isMainThread) {
  const thread = globalThis as unknown as Thread; // a worker's global object has these
  const hash = makeHash();
  let last = Promise.resolve();
  thread.onmessage = ({ data }) => {
    last = last.then(async () => {
      try {
        const hex = await hash(data);
        if (hex !== undefined) thread.postMessage({ hex });
      } catch (error) {
        thread.postMessage({ problem: messageOf(error) });
      }
    });
  };
}
