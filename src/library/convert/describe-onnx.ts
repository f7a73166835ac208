/**
 * Describes a folder of ONNX by a GGUF without tensors: the model's metadata and its vocabulary. The graph and its
 * weights stay unchanged.
 */
import { basename } from "node:path";
import { AppError, isPlainName, type NamedFile } from "../../base/index.ts";
import { type OnnxHeader, pathBeside, readOnnxHeader, taskOf, type WriteValue } from "../../engine/formats/index.ts";
import { defined, u32 } from "./architecture.ts";
import { convertible } from "./archs/index.ts";
import { configOf, type Config } from "./config.ts";
import { describe, getJson, rootedAt, textConfig, type JsonObject, type ModelFolder } from "./folder.ts";
import { poolingType } from "./sentence-transformers.ts";
import { convertTokenizer } from "./tokenizer.ts";

/** A GGUF's metadata, and the files that belong to it. */
export interface Described {
  readonly metadata: Record<string, WriteValue>;
  readonly files: readonly NamedFile[];
}

/** Suffixes of a graph's name, best first, with the label of its weights; "": use the tensors' type. */
const VARIANTS: Readonly<Record<string, string>> = {
  "": "",
  _fp16: "F16",
  _quantized: "Q8",
  _int8: "Q8",
  _uint8: "Q8",
  _q8: "Q8",
  _q4: "Q4",
  _bnb4: "BNB4",
  _q4f16: "Q4F16",
};
const PLACES = ["onnx/model", "model", "onnx/decoder_model_merged", "decoder_model_merged"];
/** Graphs of models that transcribe speech. */
const DECODER_PLACES = ["onnx/decoder_model_merged", "decoder_model_merged"];
const ENCODER_PLACES = ["onnx/encoder_model", "encoder_model"];
/** Files beside the graph that the library reads, or that the vocabulary was made of. */
const BESIDE = /^[^/]+\.(json|jinja)$|^tokenizer\.model$|^1_Pooling\/config\.json$/;

/**
 * Throws `bad_file` for an invalid folder, and `unsupported` for a graph that is neither a decoder with a cache nor an
 * encoder, or a vocabulary that a GGUF cannot express. A Whisper has two graphs: a decoder and an encoder.
 */
export async function describeOnnx(given: ModelFolder): Promise<Described> {
  const folder = rootedAt("config.json", given);
  const { label, files } = folder;
  const json = await getJson(folder, "config.json");
  const text = { ...json, ...textConfig(json) };
  const config = configOf(text, `${label}: 'config.json'`);
  const isSpeech = json["model_type"] === "whisper";
  const graph = findGraph(folder, isSpeech ? DECODER_PLACES : PLACES);
  const header = readGraph(graph, label);
  const encoder = isSpeech ? findGraph(folder, ENCODER_PLACES) : undefined;
  const { external = [], parameterCount = 0 } = encoder ? readGraph(encoder, label) : {};
  const data = [
    ...[...header.external].map((name) => pathBeside(folder, graph.name, name)),
    ...[...external].map((name) => pathBeside(folder, encoder!.name, name)), // only an encoder has such
  ];
  const embeds = !isSpeech && taskOf(header, `${label}: '${graph.name}'`) === "embedding";
  const rows = config.count("vocab_size");
  const { metadata } = await convertTokenizer({ folder, config: text, architecture: ownTokenizer(text), rows });
  const isBeside = (name: string): boolean => BESIDE.test(name) && isPlainName(name); // other files are never read
  const beside = [...files].filter(([name]) => isBeside(name)).map(([name, path]) => ({ name, path }));
  return {
    metadata: {
      "general.architecture": "onnx",
      "general.type": "model",
      "general.name": nameOf(json, label),
      "general.parameter_count": { u64: header.parameterCount + parameterCount },
      "onnx.graph": graph.name,
      "onnx.model_type": config.text("model_type").slice(0, 60),
      "onnx.weights": VARIANTS[variantOf(graph.name)] || header.dataType,
      "onnx.vocab_size": u32(rows),
      ...sizesOf(config),
      ...(embeds ? { "onnx.pooling_type": u32((await poolingType(folder)) ?? 1) } : {}),
      ...metadata,
    },
    files: [graph, ...(encoder ? [encoder] : []), ...data, ...beside],
  };
}

function sizesOf(config: Config): Record<string, WriteValue> {
  const first = (...keys: string[]): WriteValue | undefined => {
    const found = keys.map((key) => config.findCount(key)).find((value) => value !== undefined);
    return found === undefined ? undefined : u32(found);
  };
  return defined({
    "onnx.context_length": first(
      "max_position_embeddings",
      "max_target_positions",
      "n_positions",
      "n_ctx",
      "max_seq_len",
    ),
    "onnx.embedding_length": first("hidden_size", "n_embd", "d_model", "dim"),
    "onnx.block_count": first("num_hidden_layers", "decoder_layers", "n_layer", "n_layers"),
  });
}

/** Prefers the graph with the most bits. */
function findGraph({ label, files }: ModelFolder, places: readonly string[]): NamedFile {
  for (const place of places) {
    for (const variant of Object.keys(VARIANTS)) {
      const name = `${place}${variant}.onnx`;
      const path = files.get(name);
      if (path !== undefined) return { name, path };
    }
  }
  const found = [...files.keys()].filter((name) => /\.onnx$/i.test(name));
  const known = Object.keys(VARIANTS).join(", ").replace(/^, /, "");
  const first = places === PLACES ? "onnx/model" : places[0];
  const expected = `'${first}.onnx', or with one of the endings ${known}`;
  throw new AppError("unsupported", `${label}: expected ${expected}, got ${describe(found)}`);
}

const variantOf = (name: string): string =>
  Object.keys(VARIANTS).find((ending) => ending !== "" && name.endsWith(`${ending}.onnx`)) ?? "";

function readGraph({ name, path }: NamedFile, label: string): OnnxHeader {
  try {
    return readOnnxHeader(path);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, error.message.replace(`${path}:`, `${label}: '${name}':`), { cause: error });
  }
}

/** Defaults of a family's vocabulary, for values that no file sets. */
function ownTokenizer({ architectures }: JsonObject): { addSpacePrefix?: boolean } {
  const name: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  return Object.entries(convertible).find(([known]) => known === name)?.[1] ?? {};
}

/** @param json `config.json`, or its equivalent */
export function nameOf(json: JsonObject, label: string): string {
  const path = json["_name_or_path"];
  const named = typeof path === "string" ? basename(path) : "";
  return (named || basename(label) || "model").slice(0, 200);
}
