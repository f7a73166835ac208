/**
 * Converts a folder on its way into the store. Safetensors (a model or an adapter) become a GGUF blob; for other
 * formats a GGUF describes the folder, and its files are stored beside that. The result is an unnamed file until
 * complete, and is removed on failure or cancellation.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../base/index.ts";
import { reports } from "./reports.ts";
import type { AdapterBase } from "../convert/adapter.ts";
import type { ConvertJob } from "../convert/convert-worker.ts";
import type { Converted } from "../convert/convert.ts";
import type { ModelFolder } from "../convert/folder.ts";
import { convertInThread, type ThreadOptions } from "../convert/thread.ts";
import { blobPath, findBlob } from "../store/blobs.ts";
import type { Claims } from "../store/claims.ts";
import { digestOfFile, type Digest } from "../store/digest.ts";
import { writeDurably } from "../../base/system.ts";
import type { InTurn } from "./quantize-weights.ts";
import { storeFiles, type StoredFile } from "../store/model-files.ts";
import { labelled, type Source } from "./sources.ts";

/** Progress for the client; a note on omitted content carries no byte counts. */
interface ConvertStep {
  readonly status: string;
  /** Bytes of weights. */
  readonly total?: number;
  readonly completed?: number;
}

interface ConvertedSource extends Source {
  readonly digest: Digest;
  readonly isNew: boolean;
  /** Files of a model that the GGUF only describes. */
  readonly files: readonly StoredFile[];
  /** Default options for requests. */
  readonly parameters: Readonly<Record<string, number>>;
}

interface FolderToConvert {
  readonly folder: ModelFolder;
  /** The adapter's base model; absent: the folder is a model. */
  readonly base?: AdapterBase;
  /** Receives the created blobs. */
  readonly claims: Claims;
  readonly inTurn: InTurn;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes the folder's GGUF as a blob. Throws `bad_request` if its files are damaged or missing, `unsupported` for
 * content that cannot be converted, `storage` if the disk is full, and `cancelled`.
 */
export async function* convertFolder(
  root: string,
  { folder, base, claims, inTurn, signal }: FolderToConvert,
): AsyncGenerator<ConvertStep, ConvertedSource, void> {
  const status = base ? "converting adapter" : "converting model";
  yield { status };
  await checkThere(folder);
  const {
    blob,
    notes,
    files = [],
    parameters = {},
  } = yield* reports<ConvertStep, Result>(
    (report, ended) => {
      const onProgress: ThreadOptions["onProgress"] = (progress) => report({ status, ...progress });
      return inTurn(() => writeConverted(root, { folder, base, claims, onProgress, signal: ended }));
    },
    { signal },
  );
  for (const note of notes) yield { status: `${status}: ${note}` };
  if (files.length > 0) yield { status: "storing the files of the model" };
  const stored = await storeFiles(root, files, { label: folder.label, claims });
  return { label: folder.label, path: blobPath(root, blob.digest), ...blob, files: stored, parameters };
}

/** Reports missing uploads before an hour of work instead of after it. */
async function checkThere({ label, files }: ModelFolder): Promise<void> {
  for (const [name, path] of files) {
    const isThere = await stat(path).then(
      (found) => found.isFile(),
      () => false,
    );
    if (!isThere) throw new AppError("bad_file", `${label}: '${name}': no such file`);
  }
}

interface Result extends Converted {
  readonly blob: { readonly digest: Digest; readonly isNew: boolean };
}

async function writeConverted(
  root: string,
  {
    folder,
    base,
    claims,
    ...options
  }: Pick<FolderToConvert, "folder" | "claims"> & { base: AdapterBase | undefined } & ThreadOptions,
): Promise<Result> {
  let result: Result | undefined;
  await writeDurably(join(root, "blobs", "converted"), async (temporary) => {
    const paths = { folder, to: temporary };
    const job: ConvertJob = base ? { kind: "adapter", base, ...paths } : { kind: "model", ...paths };
    const { notes, files, parameters } = await convertInThread(job, options).catch((error: unknown) => {
      throw labelled(error, { path: temporary, label: folder.label });
    });
    const digest = await digestOfFile(temporary, options.signal);
    const isNew = (await findBlob(root, digest)) === undefined;
    claims.add(digest, isNew);
    result = { notes, ...(files ? { files } : {}), ...(parameters ? { parameters } : {}), blob: { digest, isNew } };
    return blobPath(root, digest);
  });
  return result!; // set above, unless that threw
}
