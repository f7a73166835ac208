/**
 * `hearth create`: reads the Modelfile and the local files that it names, uploads the missing ones, and requests the
 * model. The server never sees a path of this machine.
 */
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { decodeModelfile, type Modelfile, MODELFILE_BYTES_MAX, parseModelfile } from "../../library/portable.ts";
import { ApiError } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { modelFiles, resolvePath } from "../client/model-files.ts";
import { digestOf, filesAt, send, UPLOADED, type Upload } from "../terminal/upload.ts";
import { readStandardInput } from "../client/standard-input.ts";
import { isMissing, pullFailure } from "../client/missing-model.ts";
import { follow, watched } from "./transfer.ts";

interface CreateOptions {
  readonly file?: string;
  readonly quantize?: string;
  readonly draftQuantize?: string;
  readonly insecure?: boolean;
}

export async function create(context: CliContext, model: string, options: CreateOptions): Promise<void> {
  const { file, folder } = await readModelfile(options.file);
  await context.client.get("/api/version"); // fails early: digests of large files take minutes
  const body = await watched(context, UPLOADED, (progress, signal) =>
    requestOf(file, { client: context.client, folder, progress, signal }),
  );
  const quantize = {
    ...(options.quantize ? { quantize: options.quantize } : {}),
    ...(options.draftQuantize ? { draft_quantize: options.draftQuantize } : {}),
  };
  const insecure = options.insecure ? { insecure: true } : {};
  try {
    await follow(context, { path: "/api/create", kept: UPLOADED }, { model, ...body, ...quantize, ...insecure });
  } catch (error) {
    throw await baseFailure(context, error, body.from);
  }
}

/** Names the model of the FROM line if it could not be pulled. */
async function baseFailure({ client }: CliContext, error: unknown, from: string | undefined): Promise<unknown> {
  if (from === undefined || !(error instanceof ApiError)) return error;
  const isHere = await client.post("/api/show", { model: from }).then(
    () => true,
    (problem: unknown) => !isMissing(problem),
  );
  return isHere ? error : pullFailure(client, error, { model: from, isWanted: true });
}

/** A folder of weights needs no Modelfile. */
async function readModelfile(given: string | undefined): Promise<{ file: Modelfile; folder: string }> {
  if (given === "-") {
    return { file: parseModelfile(decodeModelfile(await readStandardInput())), folder: process.cwd() };
  }
  const path = resolve(given ?? "Modelfile");
  if (given !== undefined && (await stat(path).catch(() => undefined))?.isDirectory()) {
    throw new Error(`expected a Modelfile, got the folder ${path}: the line 'FROM ${path}' of a Modelfile names it`);
  }
  if (await Bun.file(path).exists()) {
    await checkText(path);
    return { file: parseModelfile(decodeModelfile(await Bun.file(path).bytes())), folder: dirname(path) };
  }
  const folder = given === undefined ? process.cwd() : dirname(path);
  const hasWeights = given === undefined && (await modelFiles(folder).catch(() => [])).length > 0;
  if (!hasWeights) throw new Error(`no Modelfile or safetensors files found${given ? ` at '${given}'` : ""}`);
  return { file: parseModelfile("FROM ."), folder };
}

/** Throws early if the Modelfile is a file of weights. */
async function checkText(path: string): Promise<void> {
  const found = await stat(path);
  if (!found.isFile()) return; // a pipe: `-f <(…)`
  if ((await Bun.file(path).slice(0, 4).text()) === "GGUF") {
    throw new Error(
      `expected a Modelfile, got the weights ${path}: a Modelfile with the line 'FROM ${path}' names them`,
    );
  }
  if (found.size > MODELFILE_BYTES_MAX) {
    throw new Error(`${path}: expected a Modelfile of at most ${MODELFILE_BYTES_MAX} bytes, got ${found.size}`);
  }
}

interface FolderUpload extends Upload {
  readonly folder: string;
}

async function requestOf(file: Modelfile, upload: FolderUpload): Promise<{ from?: string }> {
  const { from, files } = await uploadAll(file.from, upload);
  const adapters = (await uploadAll(file.adapters, upload, { mustExist: true })).files;
  const drafts = await uploadAll(file.drafts, upload);
  const { template, system, renderer, parser, requires, parameters, messages, licenses } = file;
  const texts = { template, system, renderer, parser, requires };
  return {
    ...(from === undefined ? {} : { from }),
    ...(Object.keys(files).length > 0 ? { files } : {}),
    ...(Object.keys(adapters).length > 0 ? { adapters } : {}),
    ...(drafts.from === undefined ? {} : { draft: drafts.from }),
    ...(Object.keys(drafts.files).length > 0 ? { draft_files: drafts.files } : {}),
    ...Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== undefined)),
    ...(Object.keys(parameters).length > 0 ? { parameters } : {}),
    ...(messages.length > 0 ? { messages } : {}),
    ...(licenses.length > 0 ? { license: licenses } : {}),
  };
}

/** Uploads existing files; any other value is the name of a model. */
async function uploadAll(
  values: readonly string[],
  upload: FolderUpload,
  { mustExist = false } = {},
): Promise<{ from?: string; files: Record<string, string> }> {
  const files: Record<string, string> = {};
  let from: string | undefined;
  for (const value of values) {
    const path = resolvePath(value, upload.folder);
    const found = await stat(path).catch(() => undefined);
    if (!found && (mustExist || looksLikePath(value))) throw new Error(`no such file: ${path}`);
    if (!found) from = value;
    for (const entry of found ? await filesAt(path, found.isDirectory()) : []) {
      const digest = await digestOf(entry, upload);
      await send(entry, digest, upload);
      files[freeName(entry.name, { files, digest })] = digest;
    }
  }
  return { ...(from === undefined ? {} : { from }), files };
}

/**
 * Another name for a file if its name is taken: GGUF files are identified by content, so any name will do.
 */
function freeName(name: string, { files, digest }: { files: Record<string, string>; digest: string }): string {
  if ((files[name] ?? digest) === digest) return name;
  if (/\.gguf$/i.test(name)) return `${Object.keys(files).length}-${name}`;
  throw new Error(`expected files of different names, got two called '${name}'`);
}

const looksLikePath = (value: string): boolean => /^(\.{0,2}[\\/]|~|[A-Za-z]:[\\/])/.test(value);
