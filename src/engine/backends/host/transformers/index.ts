/**
 * Models in ONNX files, run by `@huggingface/transformers`: a backend for the single model it was opened for, whose
 * program has none of our steps. Files are blobs with names in a manifest; the library gets a folder of links to them.
 */
import { dirname } from "node:path";
import { AppError, type NamedFile } from "../../../../base/index.ts";
import { pathBeside } from "../../../formats/files/beside.ts";
import { readOnnxHeader, taskOf } from "../../../formats/files/onnx.ts";
import { getNumber } from "../../../formats/gguf/keys.ts";
import type { Gguf } from "../../../formats/gguf/gguf.ts";
import type { Backend, Program } from "../../../program/backend.ts";
import { physicalCores } from "../../onnx/threads.ts";
import { pastAxes, pastBytes } from "./cache.ts";
import { openLibrary, sizeOf, withLinks } from "./library.ts";
import { LibrarySession } from "./session.ts";
import { openWhisper, speechEncoder } from "./whisper.ts";

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
  const encoder = speechEncoder(files);
  if (encoder) return openWhisper(files, { encoder, decoder: graph, threads: threads || physicalCores() });
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
