/**
 * The used part of `@huggingface/transformers`: a model's forward pass, and tensors. The package is optional: only
 * folders of ONNX need it.
 */
import { link, mkdir, mkdtemp, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { AppError, messageOf, type NamedFile } from "../../../../base/index.ts";
import { packageFolder } from "../../../../base/system.ts";

const PACKAGE = "@huggingface/transformers";

type Values = Float32Array | Float64Array | Uint16Array | Int32Array | Uint8Array | Int8Array | BigInt64Array;

export interface Tensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: Values;
  /** The runtime's own tensor. */
  readonly ort_tensor?: RuntimeTensor;
}

/** A tensor of the runtime below the library. */
type RuntimeTensor = Pick<Tensor, "type" | "data" | "dims">;

interface TensorInfo {
  readonly name: string;
  /** A name stands for a size that is known at run time. */
  readonly shape: readonly (number | string)[];
  readonly type: string;
}

export interface LibraryModel {
  (inputs: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, Tensor>>>;
  readonly sessions: Readonly<Record<string, GraphSession>>;
  dispose(): Promise<unknown>;
}

/** One graph of a model. */
interface GraphSession {
  readonly inputMetadata: readonly TensorInfo[];
  run(inputs: Readonly<Record<string, RuntimeTensor>>): Promise<Readonly<Record<string, RuntimeTensor>>>;
}

interface Loader {
  from_pretrained(folder: string, options: Readonly<Record<string, unknown>>): Promise<LibraryModel>;
}

export interface Library {
  readonly AutoModel: Loader;
  readonly AutoModelForCausalLM: Loader;
  readonly AutoModelForSpeechSeq2Seq: Loader;
  readonly Tensor: new (type: string, data: Values, dims: readonly number[]) => Tensor;
  readonly LogLevel: { readonly ERROR: number };
  readonly env: Record<string, unknown>;
}

/** Loads the package, with downloads disabled. Throws `unsupported` if it is not installed. */
export async function openLibrary(load = (name: string): Promise<unknown> => import(name)): Promise<Library> {
  let library: Library;
  try {
    packageFolder(PACKAGE);
    library = (await load(PACKAGE)) as Library; // in the version in package.json, which has the parts above
  } catch (error) {
    const isCompiled = error instanceof AppError; // such a program cannot load packages
    const how = `${isCompiled ? "run Hearth from its npm package, and " : ""}install it beside Hearth (npm install ${PACKAGE})`;
    const what = `models in ONNX files need the optional package '${PACKAGE}', which cannot be loaded here`;
    throw new AppError("unsupported", `${what}: ${how}: ${messageOf(error).split("\n")[0]}`, { cause: error });
  }
  const { env, LogLevel } = library;
  Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, useFSCache: false, logLevel: LogLevel.ERROR });
  return library;
}

/** A copy of the first `length` positions of an axis. `make` may be the library's own tensor class. */
export function firstOf(
  tensor: Tensor,
  { axis, length, make }: { axis: number; length: number; make: Library["Tensor"] },
): Tensor {
  const { type, dims, data } = tensor;
  const had = dims[axis]!; // a valid axis
  const outer = dims.slice(0, axis).reduce((product, size) => product * size, 1);
  const inner = dims.slice(axis + 1).reduce((product, size) => product * size, 1);
  const kept = new (data.constructor as new (length: number) => Values)(outer * length * inner);
  for (let i = 0; i < outer; i++) {
    const part = data.subarray(i * had * inner, (i * had + length) * inner);
    (kept as Float32Array).set(part as Float32Array, i * length * inner); // both have the same class
  }
  return new make(type, kept, dims.with(axis, length));
}

/** Calls a function with a temporary folder in which the files have their names. */
export async function withLinks(
  files: readonly NamedFile[],
  work: (folder: string) => Promise<LibraryModel>,
): Promise<LibraryModel> {
  const folder = await mkdtemp(join(tmpdir(), "hearth-onnx-"));
  try {
    for (const { name, path } of files) {
      const target = join(folder, name);
      await mkdir(dirname(target), { recursive: true });
      await symlink(path, target).catch(() => link(path, target)); // on Windows, few users may create symbolic ones
    }
    return await work(folder);
  } catch (error) {
    if (error instanceof AppError) throw error;
    const message = messageOf(error).replaceAll(folder, "the model").slice(0, 500);
    throw new AppError("unsupported", `transformers.js cannot load the model: ${message}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Bytes of all files together. */
export async function sizeOf(files: readonly NamedFile[]): Promise<number> {
  let bytes = 0;
  for (const { path } of files) bytes += (await stat(path)).size;
  return bytes;
}
