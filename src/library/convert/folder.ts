/**
 * The files of a model in Hugging Face's layout, by name. Their content may be in a local folder, or in blobs that were
 * uploaded one by one.
 */
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf, isObject } from "../../base/index.ts";
import { reading } from "../../base/system.ts";

/** The largest published `tokenizer.json` has 35 MB. */
const JSON_BYTES_MAX = 128 * 2 ** 20;
/** The largest published models have fewer than 200 shards. */
const FILES_MAX = 4096;

export interface ModelFolder {
  /** For messages, and for the model's name if no file has one. */
  readonly label: string;
  /** Paths by name; names of files in subfolders contain a `/`. */
  readonly files: ReadonlyMap<string, string>;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Names of readable files in a folder and one level below that a model may need. Throws `bad_request`. */
export async function listFolder(path: string): Promise<string[]> {
  const names: string[] = [];
  const entries = await readdir(path).catch((error: unknown) => {
    throw new AppError("bad_request", `cannot read the folder '${path}': ${messageOf(error)}`, { cause: error });
  });
  for (const entry of entries) {
    if (isModelFile(entry)) names.push(entry);
    const nested = join(path, entry);
    if (entry.startsWith(".") || !(await isFolder(nested))) continue;
    for (const inner of await readdir(nested).catch(() => [])) {
      const isWanted = /\.json$|\.onnx/.test(inner) || (entry.endsWith("_Dense") && inner === "model.safetensors");
      if (isWanted && isModelFile(inner)) names.push(`${entry}/${inner}`);
    }
  }
  if (names.length > FILES_MAX) {
    throw new AppError("bad_request", `${path}: expected at most ${FILES_MAX} files of a model, got ${names.length}`);
  }
  return names.sort();
}

/** Returns whether conversion may read the file: weights, configuration, vocabulary, template. */
export function isModelFile(name: string): boolean {
  const isWeights = /\.(safetensors|onnx|wasm)$|\.onnx[._]data(_\d+)?$|(^|\/)params_shard_\d+\.bin$/i.test(name);
  return isWeights || /\.(json|jinja)$|(^|\/)((?:tokenizer|tiktoken)\.model|(merges|rwkv_vocab_\w+)\.txt)$/i.test(name);
}

/** The name of a file of whisper.cpp, which is a whole model; such files are recognized by their content. */
export const WHISPER_CPP = "ggml.bin";

/** A file that only folders of the MLC project have. */
export const MLC_CONFIG = "mlc-chat-config.json";

/** The format of a folder's weights. */
export type FolderKind = "safetensors" | "onnx" | "mlc";

/** The format of the weights, preferring formats that we run ourselves; undefined: there are no weights. */
export function kindOfFiles(names: Iterable<string>): FolderKind | undefined {
  const all = [...names];
  if (all.some((name) => /\.safetensors$/i.test(name))) return "safetensors";
  if (all.some((name) => name === MLC_CONFIG || name.endsWith(`/${MLC_CONFIG}`))) return "mlc";
  return all.some((name) => /\.onnx$/i.test(name)) ? "onnx" : undefined;
}

/** As `kindOfFiles`, but a folder without weights counts as safetensors. */
export const folderKind = ({ files }: ModelFolder): FolderKind => kindOfFiles(files.keys()) ?? "safetensors";

/** Multimodal models nest their text model's configuration. */
export function textConfig(json: JsonObject): JsonObject {
  const text = json["text_config"];
  if (!isObject(text)) return json;
  const { architectures: _, ...rest } = text;
  return rest;
}

export async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/**
 * Names relative to the folder of the configuration: clients may send `model/config.json` or `config.json`.
 * @param config the file whose folder is the root, as in `config.json`
 */
export function rootedAt(config: string, { label, files }: ModelFolder): ModelFolder {
  const places = [...files.keys()].filter((name) => name === config || name.endsWith(`/${config}`));
  const [place] = places.sort((a, b) => a.split("/").length - b.split("/").length);
  const prefix = place === undefined ? "" : place.slice(0, -config.length);
  const inside = [...files].filter(([name]) => name.startsWith(prefix));
  return { label, files: new Map(inside.map(([name, path]) => [name.slice(prefix.length), path])) };
}

/** The bytes of a small file; undefined if it does not exist. */
export async function findBytes(folder: ModelFolder, name: string): Promise<Uint8Array | undefined> {
  const path = folder.files.get(name);
  if (path === undefined) return undefined;
  const what = `${folder.label}: '${name}'`;
  const wrong = (problem: string, cause?: unknown): AppError =>
    new AppError("bad_file", `${what}: ${problem}`, { cause });
  const found = await stat(path).catch((error: unknown) => {
    throw wrong(messageOf(error), error);
  });
  if (!found.isFile()) throw wrong("expected a file, got something else");
  if (found.size > JSON_BYTES_MAX) throw wrong(`expected at most ${JSON_BYTES_MAX} bytes, got ${found.size}`);
  await using file = await reading(what, open(path, "r"));
  const bytes = new Uint8Array(found.size);
  let done = 0;
  for (let count = -1; count !== 0 && done < bytes.length; done += count) {
    count = (await reading(what, file.read(bytes, done, bytes.length - done, done))).bytesRead;
  }
  return bytes.subarray(0, done);
}

export async function findText(folder: ModelFolder, name: string): Promise<string | undefined> {
  const bytes = await findBytes(folder, name);
  return bytes && new TextDecoder().decode(bytes);
}

/** The object in a JSON file; undefined if the file does not exist. Throws `bad_file` for anything else. */
export async function findJson(folder: ModelFolder, name: string): Promise<JsonObject | undefined> {
  const text = await findText(folder, name);
  return text === undefined ? undefined : parseObject(text, `${folder.label}: '${name}'`);
}

export async function getJson(folder: ModelFolder, name: string): Promise<JsonObject> {
  const found = await findJson(folder, name);
  if (!found) throw new AppError("bad_file", `${folder.label}: expected a file '${name}', got none`);
  return found;
}

/** @param what names the text in messages */
export function parseObject(text: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new AppError("bad_file", `${what}: not JSON: ${messageOf(error)}`, { cause: error });
  }
  if (!isObject(value)) throw new AppError("bad_file", `${what}: expected an object, got ${describe(value)}`);
  return value;
}

/** A short description of a value of unknown size. */
export function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
