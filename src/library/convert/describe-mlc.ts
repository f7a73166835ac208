/**
 * Describes a folder of the MLC project (compiled for WebGPU in pages) by a GGUF without tensors or vocabulary, for
 * model lists. The server cannot run it; the files are stored unchanged, each under its digest, for pages.
 */
import { statSync } from "node:fs";
import { AppError, messageOf, type NamedFile, isObject } from "../../base/index.ts";
import { pathBeside, type WriteValue } from "../../engine/formats/index.ts";
import { defined, u32 } from "./architecture.ts";
import { configOf } from "./config.ts";
import { nameOf, type Described } from "./describe-onnx.ts";
import { describe, findJson, getJson, MLC_CONFIG, rootedAt, type JsonObject, type ModelFolder } from "./folder.ts";

/** The list of shards: its current name and the older one. */
const CACHES = ["tensor-cache.json", "ndarray-cache.json"];
const TOKENIZERS =
  /^(tokenizer\.json|tokenizer\.model|tokenizer_config\.json|vocab\.json|merges\.txt|added_tokens\.json)$/;

/** Throws `bad_file` if a file is missing, or a shard's size differs from the list. */
export async function describeMlc(given: ModelFolder): Promise<Described> {
  const folder = rootedAt(MLC_CONFIG, given);
  const { label, files } = folder;
  const json = await getJson(folder, MLC_CONFIG);
  const config = configOf(json, `${label}: '${MLC_CONFIG}'`);
  const cache = await findCache(folder);
  const shards = shardsOf(folder, cache);
  const own = [...files].filter(([name]) => TOKENIZERS.test(name)).map(([name, path]) => ({ name, path }));
  if (!own.some(({ name }) => /^tokenizer\.(json|model)$/.test(name))) {
    throw new AppError("bad_file", `${label}: expected 'tokenizer.json' or 'tokenizer.model', got neither`);
  }
  const named = [MLC_CONFIG, cache.name].map((name) => pathBeside(folder, name, name));
  return {
    metadata: {
      "general.architecture": "mlc",
      "general.type": "model",
      "general.name": nameOf(json, label),
      "general.parameter_count": { u64: parameterCount(cache.json) },
      "mlc.model_type": config.text("model_type").slice(0, 60),
      "mlc.weights": config.text("quantization", "unknown").slice(0, 60),
      ...sizesOf(config),
    },
    files: [findLibrary(folder), ...named, ...own, ...shards],
  };
}

function sizesOf(config: ReturnType<typeof configOf>): Record<string, WriteValue> {
  const model = config.findPart("model_config");
  const ctxLen = config.findNumber("context_window_size") ?? model?.findNumber("context_window_size") ?? -1; // −1: a sliding window
  const dim = model?.findCount("hidden_size");
  return defined({
    "mlc.context_length": ctxLen > 0 ? u32(ctxLen) : undefined,
    "mlc.embedding_length": dim === undefined ? undefined : u32(dim),
  });
}

/** The program that was compiled for the model; the weights need it. */
function findLibrary({ label, files }: ModelFolder): NamedFile {
  const found = [...files].filter(([name]) => /^[^/]+\.wasm$/.test(name)).map(([name, path]) => ({ name, path }));
  const [library] = found;
  if (library && found.length === 1) return library;
  const got = library ? describe(found.map(({ name }) => name)) : "none";
  throw new AppError("bad_file", `${label}: expected the model's library, one file '….wasm', got ${got}`);
}

async function findCache(folder: ModelFolder): Promise<{ name: string; json: JsonObject }> {
  for (const name of CACHES) {
    const json = await findJson(folder, name);
    if (json) return { name, json };
  }
  throw new AppError("bad_file", `${folder.label}: expected a file '${CACHES.join("' or '")}', got neither`);
}

function recordsOf(json: JsonObject): readonly unknown[] {
  const { records } = json;
  return Array.isArray(records) ? records : [];
}

function shardsOf(folder: ModelFolder, { name: by, json }: { name: string; json: JsonObject }): NamedFile[] {
  const shards = new Map<string, NamedFile>();
  for (const record of recordsOf(json)) {
    const { dataPath, nbytes } = isObject(record) ? record : {};
    if (typeof dataPath !== "string" || typeof nbytes !== "number") {
      throw new AppError("bad_file", `${folder.label}: '${by}': expected {dataPath, nbytes}, got ${describe(record)}`);
    }
    const shard = pathBeside(folder, by, dataPath);
    const size = sizeOf(shard, folder.label);
    if (size !== nbytes) {
      const what = `${folder.label}: '${shard.name}'`;
      throw new AppError("bad_file", `${what}: expected ${nbytes} bytes, as '${by}' says, got ${size}`);
    }
    shards.set(shard.name, shard);
  }
  if (shards.size === 0) throw new AppError("bad_file", `${folder.label}: '${by}': expected 'records', got none`);
  return [...shards.values()];
}

function sizeOf({ name, path }: NamedFile, label: string): number {
  try {
    return statSync(path).size;
  } catch (error) {
    throw new AppError("bad_file", `${label}: '${name}': ${messageOf(error)}`, { cause: error });
  }
}

/** Computed from the bits per weight in the list; 0 if absent. */
function parameterCount({ metadata }: JsonObject): number {
  const { ParamBytes: bytes, BitsPerParam: bits } = isObject(metadata) ? metadata : {};
  if (typeof bytes !== "number" || typeof bits !== "number" || !(bits > 0)) return 0;
  const count = Math.round((bytes * 8) / bits);
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}
