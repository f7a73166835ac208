/**
 * Turns a Modelfile into a creation request: every FROM, ADAPTER and DRAFT becomes a base model, a blob, or a readable
 * file. Only configured folders are read, after symbolic links are resolved.
 */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve, sep } from "node:path";
import { AppError, messageOf } from "../../base/index.ts";
import { isFolder, kindOfFiles, listFolder, type ModelFolder } from "../convert/folder.ts";
import { readPart, shardPaths } from "../../engine/formats/index.ts";
import { blobPath } from "../store/blobs.ts";
import type { CreateRequest } from "./creation.ts";
import { parseDigest, type Digest } from "../store/digest.ts";
import { decodeModelfile, MODELFILE_BYTES_MAX, parseModelfile, type Modelfile } from "../store/modelfile.ts";
import { parseReference, type ModelName } from "../store/name.ts";
import { blobSource, type Source } from "./sources.ts";

interface ModelfilePlace {
  readonly root: string;
  /** Readable folders. */
  readonly importDirs: readonly string[];
  /** The Modelfile's own folder, for relative paths; undefined if it is not a file. */
  readonly folder?: string;
}

/** Reads a Modelfile from a path. Throws `forbidden` outside the readable folders, and `bad_request`. */
export async function readModelfileAt(path: string, place: ModelfilePlace): Promise<{ text: string; folder: string }> {
  const found = await allowedPath(path, { what: "path", ...place });
  const cannot = (reason: string): AppError => new AppError("bad_request", `path: cannot read '${path}': ${reason}`);
  const status = await stat(found).catch((error: unknown) => {
    throw cannot(messageOf(error));
  });
  if (!status.isFile()) throw cannot("expected a file, got something else");
  if (status.size > MODELFILE_BYTES_MAX) {
    throw cannot(`expected at most ${MODELFILE_BYTES_MAX} bytes, got ${status.size}`);
  }
  return { text: decodeModelfile(await readFile(found)), folder: dirname(found) };
}

/** Throws `bad_request`, `forbidden`, or `unsupported` for commands that this server does not support. */
export async function requestOfModelfile(
  text: string,
  { name, ...place }: ModelfilePlace & { name: ModelName },
): Promise<CreateRequest> {
  const file = parseModelfile(text);
  const bases: string[] = [];
  const sources: Source[] = [];
  const folders: ModelFolder[] = [];
  for (const from of file.from) {
    const found = await resolveFrom(from, { ...place, command: "FROM" });
    if (typeof found === "string") bases.push(found);
    else if (Array.isArray(found)) sources.push(...found);
    else folders.push(found);
  }
  const [folder, otherFolder] = folders;
  if (folder && otherFolder) {
    const found = `'${folder.label}' and '${otherFolder.label}'`;
    throw new AppError("bad_request", `expected one folder of a model, got ${found}`);
  }
  if (bases.length > 1) {
    throw new AppError(
      "bad_request",
      `expected one model to build upon, got ${bases.map((base) => `'${base}'`).join(" and ")}`,
    );
  }
  const [adapter] = file.adapters;
  const draft = await resolveDraft(file, place);
  return {
    shape: "modelfile",
    name,
    ...(bases[0] === undefined ? {} : { base: bases[0] }),
    sources,
    ...(folder ? { folder } : {}),
    ...(adapter === undefined ? {} : { adapter: await resolveAdapter(adapter, { ...place, command: "ADAPTER" }) }),
    ...(draft === undefined ? {} : { draft }),
    ...textsOf(file),
    licenses: file.licenses,
    parameters: file.parameters,
    messages: file.messages,
    extras: Object.fromEntries(
      (["renderer", "parser", "requires"] as const).flatMap((key) => {
        const value = file[key];
        return value ? [[key, value]] : [];
      }),
    ),
    capabilities: [],
  };
}

function textsOf({ template, system }: Modelfile): Pick<CreateRequest, "template" | "system"> {
  return { ...(template ? { template } : {}), ...(system ? { system } : {}) };
}

/** The position, and the command whose value is resolved. */
interface CommandPlace extends ModelfilePlace {
  readonly command: "FROM" | "ADAPTER" | "DRAFT";
}

async function resolveAdapter(value: string, place: CommandPlace): Promise<Source | ModelFolder> {
  const found = await resolveFrom(value, place);
  if (typeof found === "string") {
    throw new AppError("bad_request", `ADAPTER ${value}: expected a path or a blob, got a model name`);
  }
  const [source, ...more] = Array.isArray(found) ? found : [found];
  if (!source || more.length > 0) throw new AppError("bad_request", "only one adapter is currently supported");
  return source;
}

/** A GGUF file, or the name of a model. */
async function resolveDraft({ drafts, from }: Modelfile, place: ModelfilePlace): Promise<Source | string | undefined> {
  const [value, ...more] = drafts;
  if (value === undefined) return undefined;
  if (more.length > 0) throw new AppError("bad_request", "only one draft model is currently supported");
  if (from.includes(value)) throw new AppError("bad_request", `DRAFT ${value}: expected another model than FROM names`);
  const found = await resolveFrom(value, { ...place, command: "DRAFT" });
  if (typeof found === "string") return found;
  const [source, ...others] = Array.isArray(found) ? found : [];
  if (source && others.length === 0) return source;
  throw new AppError("bad_request", `DRAFT ${value}: expected one GGUF file or the name of a model`);
}

/** A model name, GGUF files, or a folder of other files. */
async function resolveFrom(from: string, place: CommandPlace): Promise<string | Source[] | ModelFolder> {
  const digest = findDigest(from, place.root);
  if (digest) return [blobSource(place.root, { label: from, digest })];
  const path = await findPath(from, place);
  if (path === undefined) {
    parseReference(from);
    return from;
  }
  const allowed = await allowedPath(path, { what: place.command, ...place });
  return (await isFolder(allowed)) ? folderAt(allowed, place) : filesAt(allowed, { label: from, place });
}

/** The weights of a folder with their other files, else its GGUF files. */
async function folderAt(path: string, place: CommandPlace): Promise<ModelFolder | Source[]> {
  const resolved = async (names: readonly string[]): Promise<[string, string][]> => {
    const paths: [string, string][] = [];
    for (const name of names) {
      paths.push([name, await allowedPath(join(path, name), { what: place.command, ...place })]);
    }
    return paths;
  };
  const names = await listFolder(path);
  if (kindOfFiles(names)) return { label: path, files: new Map(await resolved(names)) };
  const ggufs = (await readdir(path)).filter((name) => /\.gguf$/i.test(name)).sort();
  if (ggufs.length === 0) {
    throw new AppError(
      "bad_request",
      `${place.command} ${path}: expected safetensors, ONNX, MLC or GGUF files in the folder, got none`,
    );
  }
  return (await resolved(ggufs)).map(([, file]) => ({ label: file, path: file }));
}

/** `@sha256:…`, `sha256:…`, or the path from the response to a blob upload. */
function findDigest(from: string, root: string): Digest | undefined {
  const text = from.startsWith("@") ? from.slice(1) : from;
  if (/^sha256[:-][0-9a-f]{64}$/i.test(text)) return parseDigest(text);
  const named = /[\\/](sha256-[0-9a-f]{64})$/.exec(from)?.[1];
  if (named === undefined || !isAbsolute(from)) return undefined;
  const digest = parseDigest(named);
  return resolve(from) === resolve(blobPath(root, digest)) ? digest : undefined;
}

/** undefined: a model name */
async function findPath(from: string, { folder, command }: CommandPlace): Promise<string | undefined> {
  if (isAbsolute(from)) return from;
  const isPath = /^\.{0,2}[\\/]|^~|^\.{1,2}$/.test(from);
  if (folder !== undefined) {
    const path = resolve(folder, from);
    if (isPath || (path.startsWith(folder + sep) && (await exists(path)))) return path;
  }
  if (isPath) {
    throw new AppError(
      "bad_request",
      `${command} ${from}: expected ${command === "ADAPTER" ? "" : "a model, "}an absolute path or a blob, got a relative path`,
    );
  }
  return undefined;
}

/** Checks access before existence, so that errors do not reveal files. */
async function allowedPath(path: string, at: ModelfilePlace & { what: string }): Promise<string> {
  const wanted = at.folder === undefined ? path : resolve(at.folder, path);
  const real = isAbsolute(wanted) ? await realpath(wanted).catch(() => resolve(wanted)) : wanted;
  for (const dir of at.importDirs) {
    const folder = await realpath(dir).catch(() => resolve(dir));
    if (real === folder || real.startsWith(folder.endsWith(sep) ? folder : folder + sep)) return real;
  }
  throw new AppError(
    "forbidden",
    `${at.what} ${path}: outside the folders that this server may read (setting 'importDirs')`,
  );
}

/** The file, and the other parts if it is the first of a split model. */
async function filesAt(path: string, { label, place }: { label: string; place: CommandPlace }): Promise<Source[]> {
  if (!(await isFile(path))) throw new AppError("bad_request", `${place.command} ${label}: no such file`);
  const parts = await splitPaths(path);
  const sources: Source[] = [];
  for (const part of parts) {
    sources.push({
      label: parts.length > 1 ? part : label,
      path: await allowedPath(part, { what: place.command, ...place }),
    });
  }
  return sources;
}

/** Inspection reports invalid GGUF files. */
async function splitPaths(path: string): Promise<string[]> {
  const part = await readPart(path, { shard: 0, arrayItemsMax: 0 }).catch(() => undefined);
  if (!part) return [path];
  try {
    return shardPaths(path, part.header.metadata);
  } catch (error) {
    throw new AppError("bad_request", messageOf(error), { cause: error });
  }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return (await isFile(path)) || isFolder(path);
}
