/**
 * `hearth create`: reads the Modelfile and the files it names here, uploads those that the server lacks, and asks for
 * the model. The server never sees a path of this machine.
 */
import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { decodeModelfile, MODELFILE_BYTES_MAX, parseModelfile, type Modelfile } from "../../store/modelfile.ts";
import type { CliContext } from "../context.ts";
import type { Progress } from "../progress.ts";
import { modelFiles, resolvePath, type ModelFile } from "../model-files.ts";
import { follow, watched } from "./transfer.ts";

/** What is still there after Ctrl+C. */
const UPLOADED = "what was uploaded";

interface CreateOptions {
  readonly file?: string;
  readonly quantize?: string;
  readonly draftQuantize?: string;
  readonly insecure?: boolean;
}

export async function create(context: CliContext, model: string, options: CreateOptions): Promise<void> {
  const { file, folder } = await readModelfile(options.file);
  const body = await watched(context, UPLOADED, (progress, signal) =>
    requestOf(file, { context, folder, progress, signal }),
  );
  const quantize = {
    ...(options.quantize ? { quantize: options.quantize } : {}),
    ...(options.draftQuantize ? { draft_quantize: options.draftQuantize } : {}),
  };
  const insecure = options.insecure ? { insecure: true } : {};
  await follow(context, { path: "/api/create", kept: UPLOADED }, { model, ...body, ...quantize, ...insecure });
}

/** A folder of weights without a Modelfile is a model as it stands. */
async function readModelfile(given: string | undefined): Promise<{ file: Modelfile; folder: string }> {
  if (given === "-") {
    return { file: parseModelfile(decodeModelfile(await Bun.stdin.bytes())), folder: process.cwd() };
  }
  const path = resolve(given ?? "Modelfile");
  if (await Bun.file(path).exists()) {
    await checkText(path);
    return { file: parseModelfile(decodeModelfile(await Bun.file(path).bytes())), folder: dirname(path) };
  }
  const folder = given === undefined ? process.cwd() : dirname(path);
  const hasWeights = given === undefined && (await modelFiles(folder).catch(() => [])).length > 0;
  if (!hasWeights) throw new Error(`no Modelfile or safetensors files found${given ? ` at '${given}'` : ""}`);
  return { file: parseModelfile("FROM ."), folder };
}

/** Throws for weights where a Modelfile is expected, before all of them are read. */
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

interface Upload {
  readonly context: CliContext;
  readonly folder: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

async function requestOf(file: Modelfile, upload: Upload): Promise<object> {
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

/** What exists here is uploaded; anything else is the name of a model. */
async function uploadAll(
  values: readonly string[],
  upload: Upload,
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
      const digest = await uploadFile(entry, upload);
      files[freeName(entry.name, { files, digest })] = digest;
    }
  }
  return { ...(from === undefined ? {} : { from }), files };
}

/** Files of two folders may have one name: those of GGUF say themselves what they are, and get names of their own. */
function freeName(name: string, { files, digest }: { files: Record<string, string>; digest: string }): string {
  if ((files[name] ?? digest) === digest) return name;
  if (/\.gguf$/i.test(name)) return `${Object.keys(files).length}-${name}`;
  throw new Error(`expected files of different names, got two called '${name}'`);
}

const looksLikePath = (value: string): boolean => /^(\.{0,2}\/|~|[A-Za-z]:\\)/.test(value);

/** A folder's model, or a file with the other parts of a split one; one of safetensors stands for its folder. */
async function filesAt(path: string, isFolder: boolean): Promise<readonly ModelFile[]> {
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

/** Its digest, once the server has it. */
async function uploadFile({ path, name }: ModelFile, upload: Upload): Promise<string> {
  const { client } = upload.context;
  if (!(await stat(path)).isFile()) throw new Error(`expected a file, got a pipe or a device: ${path}`); // it is read twice
  const total = Bun.file(path).size;
  const hasher = new Bun.CryptoHasher("sha256");
  const show = (what: string, digest: string, completed: number): void =>
    upload.progress.show({ status: `${what} ${name}`, digest, total, completed });
  await drain(
    counted(Bun.file(path).stream(), (bytes, done) => {
      upload.signal.throwIfAborted();
      hasher.update(bytes);
      show("hashing", `hash of ${path}`, done);
    }),
  );
  const digest = `sha256:${hasher.digest("hex")}`;
  if (await client.hasBlob(digest)) return digest;
  const content = counted(Bun.file(path).stream(), (_, done) => show("uploading", digest, done));
  await client.uploadBlob(digest, content, upload.signal);
  return digest;
}

/** Tells of every piece that passes. */
function counted(
  stream: ReadableStream<Uint8Array>,
  onPiece: (bytes: Uint8Array, done: number) => void,
): ReadableStream<Uint8Array> {
  let done = 0;
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      async transform(bytes, controller) {
        await setImmediate(); // reads from the page cache are done at once and would let no timer or signal in between
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
