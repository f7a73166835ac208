/**
 * A model folder of safetensors as one GGUF. Matrices become F16, or stay BF16 where they are stored so; vectors become
 * F32. (convert_hf_to_gguf.py of llama.cpp chooses the same by default.) Weights are streamed.
 */
import { basename } from "node:path";
import { bf16 } from "../quant/bf16.ts";
import { f16 } from "../quant/f16.ts";
import { f32 } from "../quant/f32.ts";
import { writeNewGguf, type WriteModel, type WriteTensor, type WriteValue } from "../files/write.ts";
import { u32, type Architecture, type Computed } from "./architecture.ts";
import { findArchitecture } from "./archs/index.ts";
import { configOf, type Config } from "./config.ts";
import {
  describe,
  findJson,
  findText,
  getJson,
  isObject,
  parseObject,
  rootedAt,
  type JsonObject,
  type ModelFolder,
} from "./folder.ts";
import { planTensors, type Plan } from "./plan.ts";
import { readWeights } from "./safetensors.ts";
import { tensorData } from "./tensor-data.ts";
import { convertTokenizer } from "./tokenizer.ts";
import { AppError } from "../base/errors.ts";

/** GGML_QNT_VERSION, ggml.h */
const QUANTIZATION_VERSION = 2;
/** llama_ftype, llama.h */
const FILE_TYPES: ReadonlyMap<unknown, number> = new Map([
  [f32, 0],
  [f16, 1],
  [bf16, 32],
]);

/** Bytes of weights that are written, of all. */
export interface ConvertProgress {
  readonly completed: number;
  readonly total: number;
}

export interface ConvertOptions {
  readonly folder: ModelFolder;
  /** Output path; must not exist. A failed conversion may leave a partial file. */
  readonly to: string;
  readonly onProgress?: (progress: ConvertProgress) => void;
}

export interface Converted {
  /** What the folder has and the GGUF has not, a sentence each. */
  readonly notes: readonly string[];
}

/**
 * Writes a GGUF at `to`.
 * Throws `bad_file` for a folder that is not sound, `unsupported` for an architecture, a tokenizer or weights that we
 * cannot express; the message names the file and the key or tensor.
 */
export async function convertModel({ folder, to, onProgress }: ConvertOptions): Promise<Converted> {
  const { model, notes } = await loadFolder(rootedAt("config.json", folder));
  await writeNewGguf(to, onProgress ? watched(model, onProgress) : model);
  return { notes };
}

async function loadFolder(folder: ModelFolder): Promise<{ model: WriteModel; notes: string[] }> {
  const { label } = folder;
  const json = await getJson(folder, "config.json");
  const architecture = findArchitecture(json, label);
  const text = textConfig(json);
  const config = configOf(text, `${label}: 'config.json'`);
  const weights = await readWeights(folder, await findJson(folder, "model.safetensors.index.json"));
  const plan = planTensors({
    tensors: weights,
    architecture,
    table: architecture.tensors(config),
    nLayers: config.count("num_hidden_layers"),
    isTied: config.flag("tie_word_embeddings", false),
    label,
  });
  const rows = plan.tensors.find(({ name }) => name === "token_embd.weight")!.shape[1] ?? 0; // the plan is complete
  const { metadata, leftOut } = await convertTokenizer({ folder, config: { ...json, ...text }, architecture, rows });
  const hyperparameters = Object.entries(architecture.metadata(config)).map(
    ([key, value]) => [`${architecture.arch}.${key}`, value] as const,
  );
  const model = {
    metadata: {
      ...generalMetadata({ json, architecture, label, plan }),
      ...Object.fromEntries(hyperparameters),
      [`${architecture.arch}.vocab_size`]: u32(rows),
      ...(architecture.arch === "bert" ? await embeddingMetadata(folder, config) : {}),
      ...metadata,
    },
    tensors: [...computedTensors(architecture.computed?.(config) ?? {}), ...plan.tensors.map(tensorOf(label))],
  };
  return { model, notes: notesOf(plan, leftOut.length) };
}

/** Models that also see or hear keep their text model's configuration apart. */
function textConfig(json: JsonObject): JsonObject {
  const text = json["text_config"];
  if (!isObject(text)) return json;
  const { architectures: _, ...rest } = text;
  return rest;
}

interface General {
  readonly json: JsonObject;
  readonly architecture: Architecture;
  readonly label: string;
  readonly plan: Plan;
}

function generalMetadata({ json, architecture, label, plan }: General): Record<string, WriteValue> {
  const path = json["_name_or_path"];
  const named = typeof path === "string" ? basename(path) : "";
  const own = architecture.name === undefined || label.toLowerCase().includes(architecture.name.toLowerCase());
  const name = named || (own ? basename(label) : architecture.name) || "model";
  return {
    "general.architecture": architecture.arch,
    "general.type": "model",
    "general.name": name.slice(0, 200),
    "general.file_type": u32(fileType(plan)),
    "general.quantization_version": u32(QUANTIZATION_VERSION),
  };
}

/** The type that holds most bytes. */
function fileType({ tensors }: Plan): number {
  const bytes = new Map<unknown, number>();
  for (const { quant, source } of tensors) bytes.set(quant, (bytes.get(quant) ?? 0) + source.tensor.byteLength);
  const [most] = [...bytes].sort(([, a], [, b]) => b - a);
  return FILE_TYPES.get(most?.[0]) ?? 1;
}

function computedTensors(computed: Computed): WriteTensor[] {
  return Object.entries(computed).map(([name, values]) => ({
    name: `${name}.weight`,
    shape: [values.length],
    quant: f32,
    data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
  }));
}

const tensorOf =
  (label: string) =>
  ({ name, shape, quant, source }: Plan["tensors"][number]): WriteTensor => ({
    name,
    shape,
    quant,
    data: { [Symbol.asyncIterator]: () => tensorData(source, quant, label) },
  });

/** What the vectors of a text's tokens become one by: the number of llama.cpp's `llama_pooling_type`. */
const POOLING = { pooling_mode_mean_tokens: 1, pooling_mode_cls_token: 2, pooling_mode_lasttoken: 3 } as const;

/** The kinds of input that an embedding model knows, and its pooling, as sentence-transformers describes it. */
async function embeddingMetadata(folder: ModelFolder, config: Config): Promise<Record<string, WriteValue>> {
  await checkModules(folder);
  const kinds = { "tokenizer.ggml.token_type_count": u32(config.count("type_vocab_size", { fallback: 1 })) };
  const pooling = await findJson(folder, "1_Pooling/config.json");
  if (!pooling) return kinds;
  const modes = Object.entries(pooling).filter(([key, value]) => key.startsWith("pooling_mode_") && value === true);
  const [type] = Object.entries(POOLING).filter(([key]) => modes.some(([mode]) => mode === key));
  if (modes.length !== 1 || !type) {
    const found = modes.map(([mode]) => mode).join(", ") || "none";
    const expected = `one of ${Object.keys(POOLING).join(", ")}`;
    throw new AppError("unsupported", `${folder.label}: '1_Pooling/config.json': expected ${expected}, got ${found}`);
  }
  return { ...kinds, "bert.pooling_type": u32(type[1]) };
}

/** What sentence-transformers runs after the model: beside pooling and normalization, a GGUF of BERT has none of it. */
async function checkModules(folder: ModelFolder): Promise<void> {
  const { label } = folder;
  const text = await findText(folder, "modules.json");
  if (text === undefined) return;
  const { modules } = parseObject(`{"modules":${text}}`, `${label}: 'modules.json'`); // the file holds a list
  const types = [modules].flat().map((module) => (isObject(module) ? module["type"] : module));
  const other = types.find((type) => !/\.(Transformer|Pooling|Normalize)$/.test(String(type)));
  if (other === undefined) return;
  throw new AppError(
    "unsupported",
    `${label}: 'modules.json': expected Transformer, Pooling and Normalize, got ${describe(other)}`,
  );
}

function notesOf({ encoderCount }: Plan, tokensLeftOut: number): string[] {
  const notes: string[] = [];
  if (encoderCount > 0) notes.push(`left out ${encoderCount} tensors of image or audio encoders`);
  if (tokensLeftOut > 0) notes.push(`left out ${tokensLeftOut} added tokens that have no embedding`);
  return notes;
}

/** The same, telling how much of it is written. */
function watched(model: WriteModel, onProgress: (progress: ConvertProgress) => void): WriteModel {
  const total = model.tensors.reduce(
    (sum, { shape, quant }) =>
      sum + (shape.reduce((product, size) => product * size, 1) / quant.blockLen) * quant.blockBytes,
    0,
  );
  let completed = 0;
  async function* told(data: WriteTensor["data"]): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of data instanceof Uint8Array ? [data] : data) {
      yield chunk;
      completed += chunk.length;
      onProgress({ completed, total });
    }
  }
  return { ...model, tensors: model.tensors.map((tensor) => ({ ...tensor, data: told(tensor.data) })) };
}
