/**
 * Models of several named files as layers: each file is a blob, and the manifest has its name. Their model layer is a
 * GGUF without tensors that describes them (`library/convert/describe-onnx.ts`, `describe-mlc.ts`).
 */
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { AppError, isPlainName, type NamedFile } from "../../base/index.ts";
import { blobPath, findBlob, importBlob, touchBlob, type Blob } from "./blobs.ts";
import type { Claims } from "./claims.ts";
import { blobName, parseDigest } from "./digest.ts";
import type { Layer } from "./manifest.ts";

/** Not a media type of other servers: none of them could run it. */
const FILE_TYPE = "application/vnd.hearth.model.file";

export interface StoredFile {
  readonly name: string;
  readonly blob: Blob;
  readonly isNew: boolean;
}

export const fileLayers = (layers: readonly Layer[]): readonly Layer[] =>
  layers.filter(({ mediaType }) => mediaType === FILE_TYPE);

export const layerOfFile = ({ name, blob }: StoredFile): Layer => ({ mediaType: FILE_TYPE, ...blob, name });

/** The name of a file in its folder. Throws `bad_file`: a manifest may come from anywhere. */
export function fileName({ name = "" }: Layer, what: string): string {
  if (isPlainName(name)) return name;
  throw new AppError(
    "bad_file",
    `${what}: expected the name of a file in a folder, got ${JSON.stringify(name.slice(0, 80))}`,
  );
}

/**
 * Puts files into the store; uploaded ones are there already. Throws `bad_request` for invalid names, before any file
 * is stored.
 */
export async function storeFiles(
  root: string,
  files: readonly NamedFile[],
  { label, claims }: { label: string; claims: Claims },
): Promise<StoredFile[]> {
  const odd = files.find(({ name }) => !isPlainName(name));
  if (odd) throw new AppError("bad_request", `${label}: a file cannot be kept under the name '${odd.name}'`);
  const before = new Set(await readdir(join(root, "blobs")).catch(() => []));
  const stored: StoredFile[] = [];
  for (const { name, path } of files) {
    const blob = (await uploadedBlob(root, path)) ?? (await importBlob(root, path));
    const isNew = !before.has(blobName(blob.digest));
    claims.add(blob.digest, isNew);
    stored.push({ name, blob, isNew });
  }
  return stored;
}

/** The blob at a path, if it belongs to our store. */
async function uploadedBlob(root: string, path: string): Promise<Blob | undefined> {
  if (!/^sha256-[0-9a-f]{64}$/.test(basename(path))) return undefined;
  const digest = parseDigest(basename(path));
  if (path !== blobPath(root, digest)) return undefined;
  await touchBlob(root, digest);
  const size = await findBlob(root, digest);
  return size === undefined ? undefined : { digest, size };
}
