/** Uploads local files: computes their digests, then sends the files that the server lacks. */
import { stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { modelFiles, type ModelFile } from "../client/model-files.ts";
import type { Progress } from "./progress.ts";

/** The data that remains after Ctrl+C. */
export const UPLOADED = "what was uploaded";

export interface Upload {
  readonly client: Client;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/**
 * Files of a folder's model, or a file with the other parts of a split model; a safetensors file stands for its folder.
 */
export async function filesAt(path: string, isFolder: boolean): Promise<readonly ModelFile[]> {
  if (isFolder) return modelFiles(path);
  const beside = /\.safetensors$/i.test(path) ? await modelFiles(dirname(path)).catch(() => []) : [];
  if (beside.some(({ name }) => name === basename(path))) return beside;
  const split = /^(.+-)(\d{5})-of-(\d{5})\.gguf$/.exec(basename(path));
  if (!split) return [{ path, name: basename(path) }];
  const [, stem, , count = ""] = split;
  const parts = Array.from({ length: Math.min(Number(count), 9999) }, (_, i) => {
    const name = `${stem}${String(i + 1).padStart(5, "0")}-of-${count}.gguf`;
    return { path: join(dirname(path), name), name };
  });
  for (const part of parts) {
    if (!(await Bun.file(part.path).exists())) throw new Error(`no such file: ${part.path}, a part of ${path}`);
  }
  return parts;
}

export async function digestOf({ path, name }: ModelFile, { progress, signal }: Upload): Promise<string> {
  // a pipe is refused, because the file is read twice
  if (!(await stat(path)).isFile()) throw new Error(`expected a file, got a pipe or a device: ${path}`);
  const total = Bun.file(path).size;
  const hasher = new Bun.CryptoHasher("sha256");
  await drain(
    counted(Bun.file(path).stream(), (bytes, completed) => {
      signal.throwIfAborted();
      hasher.update(bytes);
      progress.show({ status: `hashing ${name}`, digest: `hash of ${path}`, total, completed });
    }),
  );
  return `sha256:${hasher.digest("hex")}`;
}

/** Sends a file unless the server has it. */
export async function send({ path, name }: ModelFile, digest: string, upload: Upload): Promise<void> {
  const { client, progress, signal } = upload;
  if (await client.hasBlob(digest)) return;
  const total = Bun.file(path).size;
  const show = (completed: number): void => progress.show({ status: `uploading ${name}`, digest, total, completed });
  const content = counted(Bun.file(path).stream(), (_, done) => show(done));
  await client.uploadBlob(digest, content, signal);
}

/** Reports every piece that passes. */
function counted(
  stream: ReadableStream<Uint8Array>,
  onPiece: (bytes: Uint8Array, done: number) => void,
): ReadableStream<Uint8Array> {
  let done = 0;
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      async transform(bytes, controller) {
        await setImmediate(); // reads from the page cache complete at once, and would starve timers and signals
        done += bytes.length;
        onPiece(bytes, done);
        controller.enqueue(bytes);
      },
    }),
  );
}

async function drain(stream: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of stream);
}
