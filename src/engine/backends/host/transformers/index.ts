/**
 * Models in ONNX files, run by `@huggingface/transformers`: a backend for the single model it was opened for, whose
 * program has none of our steps. Files are blobs with names in a manifest; the library gets a folder of links to them.
 */
import { link, mkdir, mkdtemp, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { AppError, messageOf, type NamedFile } from "../../../../base/index.ts";
import { pathBeside } from "../../../formats/files/beside.ts";
import { readOnnxHeader, taskOf } from "../../../formats/files/onnx.ts";
import { getNumber } from "../../../formats/gguf/keys.ts";
import type { Gguf } from "../../../formats/gguf/gguf.ts";
import type { Backend, Program } from "../../../program/backend.ts";
import { physicalCores } from "../../onnx/threads.ts";
import { pastAxes, pastBytes } from "./cache.ts";
import { openLibrary, type LibraryModel } from "./library.ts";
import { LibrarySession } from "./session.ts";

interface OpenOptions {
  /** 0: the number of physical cores. */
  readonly threads: number;
}

/**
 * Loads a model of these files. Throws `unsupported` without the package, for an unknown model class or an unusable
 * graph, and `bad_file` if a file is missing or invalid.
 */
export async function openTransformers(files: readonly NamedFile[], { threads }: OpenOptions): Promise<Backend> {
  const graph = files.find(({ name }) => /\.onnx$/i.test(name));
  if (!graph) throw new AppError("unsupported", "the model's files are of a format that cannot be run on the server");
  const folder = {
    label: "the model",
    files: new Map(files.map(({ name, path }) => [name, path])),
  };
  const header = readOnnxHeader(graph.path);
  for (const name of header.external) pathBeside(folder, graph.name, name); // the runtime would open any path
  const task = taskOf(header, graph.path);
  const library = await openLibrary();
  const cores = threads || physicalCores();
  const { AutoModel, AutoModelForCausalLM } = library;
  const model = await withLinks(files, (path) =>
    (task === "completion" ? AutoModelForCausalLM : AutoModel).from_pretrained(path, graphOptions(graph.name, cores)),
  );
  const axes = pastAxes(model, graph.path);
  const slotBytes = pastBytes(model);
  const weights = await sizeOf(files);
  return {
    name: "transformers",
    program: (gguf) => programOf(gguf, task),
    slotBytes: () => slotBytes,
    async load(program, options) {
      const kv = slotBytes.perToken * options.ctxLen * options.slots;
      const device = `CPU (${cores} threads, ONNX Runtime by transformers.js)`;
      return new LibrarySession({ library, model, program, options, axes, device, bytes: { weights, kv, scratch: 0 } });
    },
  };
}

/** The exact file, on the CPU, whatever the configuration says. */
function graphOptions(name: string, threads: number): Record<string, unknown> {
  return {
    subfolder: name.includes("/") ? dirname(name) : "",
    model_file_name: name.slice(name.lastIndexOf("/") + 1).replace(/\.onnx$/i, ""),
    dtype: "fp32", // adds no suffix to the name
    device: "cpu",
    local_files_only: true,
    use_external_data_format: false, // the runtime finds them beside the graph
    session_options: { intraOpNumThreads: threads, interOpNumThreads: 1 },
  };
}

/** Calls a function with a temporary folder in which the files have their names. */
async function withLinks(
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

async function sizeOf(files: readonly NamedFile[]): Promise<number> {
  let bytes = 0;
  for (const { path } of files) bytes += (await stat(path)).size;
  return bytes;
}

/** The engine's view of a program without steps. */
function programOf(gguf: Gguf, task: "completion" | "embedding"): Program {
  const count = (key: string): number => {
    const value = getNumber(gguf.metadata, `onnx.${key}`);
    if (Number.isInteger(value) && value > 0 && value < 2 ** 31) return value;
    throw new AppError("bad_file", `${gguf.path}: 'onnx.${key}': expected a number of at least 1, got ${value}`);
  };
  const vocabSize = count("vocab_size");
  const dim = task === "embedding" ? count("embedding_length") : getNumber(gguf.metadata, "onnx.embedding_length", 1);
  return {
    shape: { arch: "onnx", dim, nLayers: getNumber(gguf.metadata, "onnx.block_count", 1), vocabSize },
    steps: [],
    logits: task === "completion" ? { name: "logits", dim: vocabSize } : undefined,
    states: { name: "states", dim },
    weights: gguf,
  };
}
