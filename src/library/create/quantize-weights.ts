/**
 * Quantizes a new model's weights on their way into the store. The result is an unnamed file until complete, and is
 * removed on failure or cancellation.
 */
import { open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError, checkNotCancelled } from "../../base/index.ts";
import { reports } from "./reports.ts";
import { mergeShards, readPart } from "../../engine/formats/index.ts";
import { blobPath, findBlob } from "../store/blobs.ts";
import type { Claims } from "../store/claims.ts";
import { digestOfFile } from "../store/digest.ts";
import { writeDurably } from "../../base/system.ts";
import { checkUnquantized, type FileTypeName } from "./quantize-mix.ts";
import { quantizeFile } from "./quantize.ts";
import { labelled, type StoredSource } from "./sources.ts";

/** Placeholder digest in progress reports, because clients distinguish progress bars by digest. */
const NO_DIGEST = "0000000000000000000";
/** Maximum reports per file: few enough for a stream, many enough for a progress bar. */
const REPORTS_MAX = 1000;

interface QuantizeProgress {
  readonly status: string;
  readonly digest: string;
  /** Bytes of the source. */
  readonly total: number;
  readonly completed?: number;
}

export interface Weights {
  /** The request's name for them, for messages. */
  readonly label: string;
  /** All parts, in order. */
  readonly paths: readonly string[];
  /** Their file type, for messages. */
  readonly fileType: string;
}

/** Runs work after all earlier work has ended. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

type StoredBlob = Pick<StoredSource, "blob" | "isNew">;

/** Throws `bad_request` if a tensor is quantized already, or there are no tensors. */
export async function checkWeights({ label, paths }: Weights): Promise<void> {
  for (const [shard, path] of paths.entries()) {
    const { tensors } = (await readPart(path, { shard, arrayItemsMax: 0 })).header;
    if (tensors.size === 0) throw new AppError("bad_request", `${label}: has no tensors to quantize: not a GGUF's`);
    checkUnquantized(tensors);
  }
}

/**
 * Quantizes the weights into a blob. Throws `bad_request` if they are damaged, `storage` if the disk is full, and
 * `cancelled`.
 */
export async function* quantizeWeights(
  root: string,
  options: {
    weights: Weights;
    type: FileTypeName;
    claims: Claims;
    inTurn: InTurn;
    signal?: AbortSignal | undefined;
  },
): AsyncGenerator<QuantizeProgress, StoredBlob, void> {
  const { weights, type, claims, inTurn, signal } = options;
  const status = `quantizing ${weights.fileType} model to ${type}`;
  yield { status, digest: NO_DIGEST, total: await tensorBytes(weights) }; // now: the work may have to wait
  return yield* reports<QuantizeProgress, StoredBlob>(
    (report, ended) => {
      let reported = -1;
      const onProgress = ({ completed, total }: { completed: number; total: number }): void => {
        const now = Math.floor((REPORTS_MAX * completed) / Math.max(1, total));
        if (now > reported) report({ status, digest: NO_DIGEST, total, completed });
        reported = now;
      };
      return inTurn(() => writeQuantized(root, { weights, type, claims, signal: ended, onProgress }));
    },
    { signal },
  );
}

async function tensorBytes({ paths }: Weights): Promise<number> {
  let bytes = 0;
  for (const [shard, path] of paths.entries()) {
    const { tensors } = (await readPart(path, { shard, arrayItemsMax: 0 })).header;
    for (const { byteLength } of tensors.values()) bytes += byteLength;
  }
  return bytes;
}

interface Run {
  readonly weights: Weights;
  readonly type: FileTypeName;
  readonly signal: AbortSignal;
  readonly onProgress: (done: { completed: number; total: number }) => void;
}

async function writeQuantized(
  root: string,
  { weights, claims, ...rest }: Run & { claims: Claims },
): Promise<StoredBlob> {
  checkNotCancelled(rest.signal);
  let result: StoredBlob | undefined;
  await writeDurably(join(root, "blobs", "quantized"), async (temporary) => {
    await quantizeParts(weights, { to: temporary, ...rest });
    const digest = await digestOfFile(temporary, rest.signal);
    const isNew = (await findBlob(root, digest)) === undefined;
    claims.add(digest, isNew);
    result = { blob: { digest, size: (await stat(temporary)).size }, isNew };
    return blobPath(root, digest);
  });
  return result!; // set above, unless that threw
}

/** Joins parts first: blobs have no names by which the quantizer could find the other parts. */
async function quantizeParts({ label, paths }: Weights, rest: Omit<Run, "weights"> & { to: string }): Promise<void> {
  const [only] = paths;
  const from = paths.length === 1 && only !== undefined ? only : `${rest.to}-joined`;
  try {
    if (from !== only) await joinParts(paths, { to: from, signal: rest.signal });
    await quantizeFile({ from, ...rest });
  } catch (error) {
    throw labelled(error, { path: from, label });
  } finally {
    if (from !== only) await rm(from, { force: true });
  }
}

async function joinParts(paths: readonly string[], { to, signal }: { to: string; signal: AbortSignal }): Promise<void> {
  await using file = await open(to, "wx");
  for await (const chunk of mergeShards(paths)) {
    checkNotCancelled(signal);
    for (let done = 0; done < chunk.length;) done += (await file.write(chunk, done)).bytesWritten;
  }
}
