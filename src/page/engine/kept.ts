/**
 * The models in a page's storage, from any version: weights for Hearth's own engine, complete or partial, and WebLLM's
 * files. Used to list them and to make room.
 */
import { AppError, messageOf } from "../../base/index.ts";
import { removeModel } from "./storage.ts";
import { MODELS_FOLDER, PARTIAL, pageStorage, type FolderHandle } from "./storage-api.ts";

export interface Kept {
  readonly of: "hearth" | "webllm";
  /** Hexadecimal digest of the weights, or of the manifest for WebLLM. Empty: unknown. */
  readonly digest: string;
  readonly bytes: number;
  readonly isWhole: boolean;
  readonly files: readonly KeptFile[];
}

interface KeptFile {
  readonly folder: string;
  readonly name: string;
}

/** The name of a model's file, by the digest of its bytes. */
export const storedName = (digest: string): string => `${digest.replace(":", "-")}.gguf`;

const STORED = /^sha256-([0-9a-f]{64})\.gguf(\.part)?$/;
/** Folders of WebLLM's library, with a payload beside a record of its URL. */
const WEBLLM_FOLDERS = ["config", "model", "wasm"].map((scope) => `tvmjs-opfs-store/webllm/${scope}`);
const RECORD = ".record.json";
/** The form of URLs that `webllm/worker-main.ts` makes. */
const OF_MODEL = /\/mlc\/([0-9a-f]+)\/resolve\/main\//;

export async function listKept(): Promise<Kept[]> {
  const own = (await filesOf(MODELS_FOLDER)).map(({ name, bytes, ...file }): Kept => {
    const isWhole = !name.endsWith(PARTIAL);
    return { of: "hearth", digest: STORED.exec(name)?.[1] ?? "", bytes, isWhole, files: [{ ...file, name }] };
  });
  return [...own.toSorted((a, b) => (a.digest < b.digest ? -1 : 1)), ...(await keptByWebLlm())];
}

/** Throws `conflict` if a model in memory, here or in another tab, has one of the files open. */
export async function removeKept({ of, files }: Kept): Promise<void> {
  try {
    for (const { folder, name } of files) {
      if (of === "hearth") await removeModel(name.replace(/\.part$/, ""));
      else await (await folderAt(folder))?.removeEntry(name);
    }
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "NoModificationAllowedError") throw error;
    const what = "the model is in memory, here or in another tab, or on its way: unload it there, then remove it";
    throw new AppError("conflict", what, { cause: error });
  }
}

/** Groups files by model; payloads without a record come from unfinished downloads. */
async function keptByWebLlm(): Promise<Kept[]> {
  const files = (await Promise.all(WEBLLM_FOLDERS.map(filesOf))).flat();
  const digests = new Map<string, string>();
  for (const { name, text } of files) {
    if (name.endsWith(RECORD)) digests.set(name.slice(0, -RECORD.length), OF_MODEL.exec(await text())?.[1] ?? "");
  }
  const models = Map.groupBy(files, ({ name }) => digests.get(name.replace(/\.(record\.json|bin)$/, "")) ?? "");
  return [...models].map(([digest, parts]) => ({
    of: "webllm",
    digest,
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    isWhole: digest !== "",
    files: parts.map(({ folder, name }) => ({ folder, name })),
  }));
}

async function filesOf(folder: string) {
  const handle = await folderAt(folder);
  const files: (KeptFile & { bytes: number; text: () => Promise<string> })[] = [];
  for await (const name of handle?.keys() ?? []) {
    const file = await (await handle!.getFileHandle(name)).getFile(); // the loop runs only with a handle
    files.push({ folder, name, bytes: file.size, text: () => file.text() });
  }
  return files;
}

/** Undefined: the folder does not exist. */
async function folderAt(path: string): Promise<FolderHandle | undefined> {
  let folder = await pageStorage().getDirectory();
  for (const name of path.split("/")) {
    const found = await folder.getDirectoryHandle(name).catch((error: unknown) => {
      if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
      throw new AppError("storage", `this page's storage: ${messageOf(error)}`, { cause: error });
    });
    if (!found) return undefined;
    folder = found;
  }
  return folder;
}
