/** The thread behind `PrefixHash`: hashes a file up to the offset that it is given. */
import { open, type FileHandle } from "node:fs/promises";
import { messageOf } from "../../base/errors.ts";

const PIECE_BYTES = 1024 * 1024;

/** The file first, then how far to go. */
export type HashRequest = { readonly path: string } | { readonly upTo: number; readonly isLast?: true };
export type HashReply = { readonly hex: string } | { readonly problem: string };

interface Thread {
  onmessage: (event: { data: HashRequest }) => void;
  postMessage(reply: HashReply): void;
}

/** One request at a time, in order. */
function makeHash(): (request: HashRequest) => Promise<string | undefined> {
  const hasher = new Bun.CryptoHasher("sha256");
  const buffer = new Uint8Array(PIECE_BYTES);
  let file: FileHandle | undefined;
  let hashed = 0;
  return async (request) => {
    if ("path" in request) {
      file = await open(request.path, "r");
      return undefined;
    }
    while (file && hashed < request.upTo) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(PIECE_BYTES, request.upTo - hashed), hashed);
      if (bytesRead === 0) throw new Error(`expected ${request.upTo} bytes, found ${hashed}`);
      hasher.update(buffer.subarray(0, bytesRead));
      hashed += bytesRead;
    }
    if (!request.isLast) return undefined;
    await file?.close();
    return hasher.digest("hex");
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
