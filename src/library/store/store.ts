/**
 * The model store: `manifests/<host>/<namespace>/<model>/<tag>` and `blobs/`, possibly made by another server and
 * served in place. Reading never writes. The folders' content is untrusted: names are checked, sizes bounded.
 */
import { statSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { mapAtOnce } from "./at-once.ts";
import { AppError, messageOf, type NamedFile, isObject } from "../../base/index.ts";
import { type Options, parseOptions } from "../../engine/index.ts";
import { blobPath, findBlob } from "./blobs.ts";
import {
  layersOf,
  manifestBytes,
  parseJson,
  parseJsonObject,
  readManifest,
  type Layer,
  type LayerKind,
} from "./manifest.ts";
import { fileLayers, fileName } from "./model-files.ts";
import { isSafetensors, safetensorsText } from "./safetensors.ts";
import { makeResolved, type Resolved } from "./resolved.ts";
import { displayName, fullName, parseReference, type ModelName } from "./name.ts";
import { manifestSegments, nameAt, partAt } from "./segments.ts";

export const CONFIG_BYTES_MAX = 16 * 1024 * 1024;
export const TEXT_BYTES_MAX = 16 * 1024 * 1024; // the largest known template has 2 MB
const MODELS_MAX = 100_000;
/** Cached models that requests named: each includes its small layers, some kilobytes. */
const RESOLVED_MAX = 256;
/** Cached models of the list, about a kilobyte each. */
const LISTED_MAX = 10_000;

/** The fields of the configuration blob that are present. */
export interface ModelConfig {
  readonly model_format?: string;
  readonly model_family?: string;
  readonly model_families?: readonly string[];
  /** Size label, as in `1.2B`. */
  readonly model_type?: string;
  /** Quantization label, as in `Q4_K_M`. */
  readonly file_type?: string;
  readonly remote_host?: string;
  readonly remote_model?: string;
  /** The built-in prompt renderer, if it replaces the template. */
  readonly renderer?: string;
  /** The built-in answer parser. */
  readonly parser?: string;
  /** The oldest version of Ollama that runs the model. */
  readonly requires?: string;
  readonly capabilities?: readonly string[];
  readonly context_length?: number;
  readonly embedding_length?: number;
  /** Digest of the Hearth model that this was installed from; only on models that Hearth installed itself. */
  readonly hearth_embedded?: string;
  /** Capabilities set by `create` on this server. They count even if the files do not prove them. */
  readonly hearth_capabilities?: readonly string[];
  /** `own`: the TEMPLATE was set by `create` on this server, and overrides the file's own. */
  readonly hearth_template?: string;
}

/** A model in a list: manifest and configuration were read, layers were not. */
export interface StoredModel {
  /** Root of its store. */
  readonly root: string;
  readonly name: ModelName;
  /** Shortest name, with tag. */
  readonly displayName: string;
  /** Hex SHA-256 of the manifest. */
  readonly digest: string;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
  readonly config: ModelConfig;
  readonly layers: readonly Layer[];
}

export interface StoredMessage {
  readonly role: string;
  readonly content: string;
}

/** A model as requests use it: its small layers are read, its licenses are not. */
export interface ModelRef extends StoredModel {
  /** Absolute paths of blobs. */
  readonly paths: {
    readonly model: string;
    readonly adapters: readonly string[];
    readonly projectors: readonly string[];
    readonly drafts: readonly string[];
    /** The model's files, if its GGUF only describes it. */
    readonly files: readonly NamedFile[];
  };
  /** Bytes of the model with its files, its adapters, its projector and its draft model. */
  readonly weightBytes: number;
  readonly template?: string;
  readonly system?: string;
  readonly parameters: Options;
  readonly messages: readonly StoredMessage[];
}

/** A model with all its small layers read and all its blobs checked for existence. */
export interface ModelEntry extends ModelRef {
  readonly licenses: readonly string[];
}

export interface Store {
  readonly root: string;
  /**
   * All models, the most recently changed first. Skips models in formats that cannot run here, and unreadable
   * manifests, which `onBad` receives.
   */
  list(onBad?: (path: string, reason: string) => void): Promise<StoredModel[]>;
  /** The model of that name, case-insensitively. Throws `bad_request` if the name is malformed. */
  find(name: string): Promise<StoredModel | undefined>;
  /** As `find`, with the small layers. Also throws `bad_file` if a layer is missing or malformed. */
  resolve(name: string): Promise<ModelRef | undefined>;
  /** Throws `bad_file` if a file that a runner loads is missing or differs in size from its layer. */
  check(model: ModelRef): Promise<void>;
  /** Returns whether a missing model could be pulled from the source, if any. Throws `registry`, `cancelled`. */
  isOffered?(name: ModelName, signal: AbortSignal): Promise<boolean>;
  /** Throws `not_found`, and `bad_file` if a layer is missing or malformed. */
  load(name: string): Promise<ModelEntry>;
}

/** Throws `bad_file` if `root` exists but is not usable as a store. A missing store is empty. */
export async function openStore(root: string): Promise<Store> {
  for (const folder of [root, join(root, "manifests"), join(root, "blobs")]) await checkFolder(folder);
  const find = async (text: string): Promise<StoredModel | undefined> => {
    const name = await findName(root, parseReference(text));
    return name && readModel(root, name);
  };
  const resolved = makeResolved<ModelRef>(RESOLVED_MAX);
  const listed = makeResolved<StoredModel>(LISTED_MAX);
  return {
    root,
    find,
    list: (onBad) => listModels(root, listed, onBad),
    resolve: async (text) => {
      const wanted = parseReference(text);
      const known = resolved.known(manifestPath(root, wanted));
      if (known) return known;
      const name = await findName(root, wanted);
      if (!name) return undefined;
      const path = manifestPath(root, name);
      return resolved.known(path) ?? resolved.read(path, async () => loadRef(root, await readModel(root, name)));
    },
    check: async (model) => void (await checkedPaths(root, model)),
    load: async (text) => {
      const model = await find(text);
      if (!model) throw new AppError("not_found", `model '${text}' not found`);
      return { ...(await loadRef(root, model)), licenses: await textsOf(root, model, "license") };
    },
  };
}

export function manifestPath(root: string, name: ModelName): string {
  return join(root, "manifests", ...manifestSegments(name));
}

async function checkFolder(path: string): Promise<void> {
  try {
    await readdir(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return; // node:fs throws errors with a code
    throw new AppError("bad_file", `model store: cannot read the folder '${path}': ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function listModels(
  root: string,
  listed: Resolved<StoredModel>,
  onBad?: (path: string, reason: string) => void,
): Promise<StoredModel[]> {
  const models = await mapAtOnce(await manifestFiles(root), async (segments) => {
    const path = join(root, "manifests", ...segments);
    try {
      const name = nameAt(segments);
      const found = listed.known(path) ?? (await listed.read(path, () => readModel(root, name)));
      return isSafetensors(found) ? [] : [found];
    } catch (error) {
      onBad?.(path, messageOf(error));
      return [];
    }
  });
  return models.flat().sort((a, b) => b.modifiedAt.getTime() - a.modifiedAt.getTime() || compare(a, b));
}

const compare = (a: StoredModel, b: StoredModel): number => (a.displayName < b.displayName ? -1 : 1);

/** Path segments of every file four levels below `manifests/`. */
export async function manifestFiles(root: string): Promise<string[][]> {
  let paths: string[][] = [[]];
  for (let depth = 0; depth < 4; depth++) {
    const below = await mapAtOnce(paths, async (path) => {
      const names = await entries(join(root, "manifests", ...path));
      return names.filter((name) => !name.startsWith(".")).map((name) => [...path, name]);
    });
    paths = below.flat();
    if (paths.length > MODELS_MAX)
      throw new AppError("bad_file", `${root}: expected at most ${MODELS_MAX} manifests, got ${paths.length}`);
  }
  return paths;
}

/** Names in a folder; empty if it is missing or not a folder. */
async function entries(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code; // node:fs throws errors with a code
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw new AppError("bad_file", `model store: cannot read the folder '${folder}': ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * The name in the store's spelling, undefined if it does not exist: an exact match if possible, else one that differs
 * in case.
 */
export async function findName(root: string, name: ModelName): Promise<ModelName | undefined> {
  if (isFile(manifestPath(root, name)) && !IGNORES_CASE) return name;
  let paths: string[][] = [[]];
  for (const part of [name.host, name.namespace, name.model, name.tag]) {
    const next: string[][] = [];
    for (const path of paths) {
      const found = await entries(join(root, "manifests", ...path));
      next.push(...found.filter((entry) => sameText(partAt(entry), part)).map((entry) => [...path, entry]));
    }
    paths = next;
  }
  const isThere = await Promise.all(paths.map((path) => isNoFolder(join(root, "manifests", ...path))));
  const there = paths.filter((_, i) => isThere[i]);
  const found = there.find((path) => fullName(nameAt(path)) === fullName(name)) ?? there[0];
  return found && nameAt(found);
}

/** File systems of these systems find a file by a name in other capitals. */
const IGNORES_CASE = process.platform === "win32" || process.platform === "darwin";

const sameText = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** Special files and dangling links count as manifests: broken ones, which can be deleted. */
async function isNoFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => !found.isDirectory(),
    () => true,
  );
}

/** Synchronous: a turn of the thread pool takes longer, and every request asks. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

async function readModel(root: string, name: ModelName): Promise<StoredModel> {
  const path = manifestPath(root, name);
  const manifest = await readManifest(path);
  const { mtime } = await stat(path);
  const config = await readText(root, { layer: manifest.config, limit: CONFIG_BYTES_MAX, what: `${path}: config` });
  return {
    root,
    name,
    displayName: displayName(name),
    digest: manifest.digest,
    sizeBytes: manifestBytes(manifest),
    modifiedAt: mtime,
    config: configOf(parseJsonObject(config, blobPath(root, manifest.config.digest))),
    layers: manifest.layers,
  };
}

/** The fields of the right type; another server may have written anything. */
function configOf(json: Record<string, unknown>): ModelConfig {
  const texts = [
    "model_format",
    "model_family",
    "model_type",
    "file_type",
    "remote_host",
    "remote_model",
    "renderer",
    "parser",
    "requires",
    "hearth_embedded",
    "hearth_template",
  ];
  const numbers = ["context_length", "embedding_length"];
  const lists = ["model_families", "capabilities", "hearth_capabilities"];
  const fits = ([key, value]: [string, unknown]): boolean =>
    (texts.includes(key) && typeof value === "string") ||
    (numbers.includes(key) && Number.isSafeInteger(value)) ||
    (lists.includes(key) && Array.isArray(value) && value.every((item) => typeof item === "string"));
  return Object.fromEntries(Object.entries(json).filter(fits));
}

async function loadRef(root: string, model: StoredModel): Promise<ModelRef> {
  const what = `model '${model.displayName}'`;
  if (model.config.remote_host)
    throw new AppError("unsupported", `${what} runs on ${model.config.remote_host}, not here`);
  const paths = await checkedPaths(root, model);
  const [template] = await textsOf(root, model, "template");
  const [system] = await textsOf(root, model, "system");
  const [params] = await textsOf(root, model, "params");
  const [messages] = await textsOf(root, model, "messages");
  const first = (["model", "projector", "draft"] as const).flatMap((kind) => layersOf(model.layers, kind).slice(0, 1));
  const weights = [...first, ...layersOf(model.layers, "adapter"), ...fileLayers(model.layers)];
  return {
    ...model,
    paths,
    weightBytes: weights.reduce((sum, { size }) => sum + size, 0),
    ...(template === undefined ? {} : { template }),
    ...(system === undefined ? {} : { system }),
    parameters: params === undefined ? {} : parseParameters(params, `${what}: params layer`),
    messages: messages === undefined ? [] : parseMessages(messages, `${what}: messages layer`),
  };
}

async function checkedPaths(root: string, model: StoredModel): Promise<ModelRef["paths"]> {
  const what = `model '${model.displayName}'`;
  const paths = async (kind: LayerKind): Promise<string[]> => {
    const found: string[] = [];
    for (const layer of layersOf(model.layers, kind))
      found.push(await checkedPath(root, { layer, what: `${what}: ${kind} layer` }));
    return found;
  };
  const [weights] = await paths("model");
  if (isSafetensors(model)) throw new AppError("unsupported", safetensorsText(what, model.name));
  if (weights === undefined) throw new AppError("bad_file", `${what}: expected a layer with a GGUF model, found none`);
  const files: NamedFile[] = [];
  for (const layer of fileLayers(model.layers)) {
    const name = fileName(layer, what);
    files.push({ name, path: await checkedPath(root, { layer, what: `${what}: ${name}` }) });
  }
  const [adapters, projectors] = [await paths("adapter"), await paths("projector")];
  return { model: weights, adapters, projectors, drafts: await paths("draft"), files };
}

async function textsOf(root: string, model: StoredModel, kind: LayerKind): Promise<string[]> {
  const found: string[] = [];
  for (const layer of layersOf(model.layers, kind)) {
    const what = `model '${model.displayName}': ${kind} layer`;
    found.push(await readText(root, { layer, limit: TEXT_BYTES_MAX, what }));
  }
  return found;
}

async function checkedPath(root: string, { layer, what }: { layer: Layer; what: string }): Promise<string> {
  const size = await findBlob(root, layer.digest);
  if (size !== layer.size) {
    const found = size === undefined ? "no such blob" : `${size} bytes`;
    throw new AppError("bad_file", `${what}: expected ${layer.size} bytes in ${layer.digest}, found ${found}`);
  }
  return blobPath(root, layer.digest);
}

/** The text of a blob. Throws `bad_file` if it is missing, too large, or differs in size from its layer. */
export async function readText(root: string, at: { layer: Layer; limit: number; what: string }): Promise<string> {
  const path = await checkedPath(root, at);
  if (at.layer.size > at.limit) {
    throw new AppError("bad_file", `${at.what}: expected at most ${at.limit} bytes, got ${at.layer.size}`);
  }
  return readFile(path, "utf8");
}

function parseParameters(text: string, what: string): Options {
  try {
    return parseOptions(parseJsonObject(text, what)).options;
  } catch (error) {
    throw new AppError("bad_file", `${what}: ${messageOf(error)}`, { cause: error });
  }
}

function parseMessages(text: string, what: string): StoredMessage[] {
  const list = parseJson(text, what);
  const isMessage = (value: unknown): value is StoredMessage =>
    isObject(value) && typeof value["role"] === "string" && typeof value["content"] === "string";
  if (!Array.isArray(list) || !list.every(isMessage)) {
    throw new AppError("bad_file", `${what}: expected an array of {role, content}, got ${text.slice(0, 80)}`);
  }
  return list;
}
