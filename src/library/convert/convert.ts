/**
 * Converts a model folder to one GGUF. Safetensors become its weights, as do whisper.cpp's; for other formats it only
 * describes the folder, with the vocabulary, and the files stay unchanged beside it. Matrices of safetensors become
 * F16, or stay BF16 if the folder has BF16; vectors become F32. (Same defaults as convert_hf_to_gguf.py of llama.cpp.)
 * Weights are streamed.
 */
import { basename } from "node:path";
import { AppError, type NamedFile } from "../../base/index.ts";
import {
  bf16,
  f16,
  f32,
  quants,
  type WriteModel,
  writeNewGguf,
  type WriteTensor,
  type WriteValue,
} from "../../engine/formats/index.ts";
import { u32, type Architecture, type Computed } from "./architecture.ts";
import { blockScaledData } from "./block-scaled.ts";
import { findArchitecture } from "./archs/index.ts";
import { configOf, layersOf, type Config } from "./config.ts";
import { checkActivation } from "./decoder.ts";
import { describeMlc } from "./describe-mlc.ts";
import { describeOnnx } from "./describe-onnx.ts";
import { expertData } from "./expert-data.ts";
import {
  findJson,
  folderKind,
  getJson,
  rootedAt,
  textConfig,
  WHISPER_CPP,
  type JsonObject,
  type ModelFolder,
} from "./folder.ts";
import { planTensors, type Plan } from "./plan.ts";
import { readWeights } from "./safetensors.ts";
import { samplingDefaults } from "./sampling-defaults.ts";
import { layerValues } from "./layer-values.ts";
import { DENSE, denseTensors, poolingType, textOptions } from "./sentence-transformers.ts";
import { tensorData, type TensorSource } from "./tensor-data.ts";
import { convertTokenizer } from "./tokenizer.ts";
import { whisperCppModel } from "./whisper-cpp.ts";

/** GGML_QNT_VERSION, ggml.h */
const QUANTIZATION_VERSION = 2;
/** llama_ftype, llama.h */
const FILE_TYPES: ReadonlyMap<unknown, number> = new Map([
  [f32, 0],
  [f16, 1],
  [bf16, 32],
  [quants.mxfp4, 38],
]);

/** Bytes of weights written, and the total. */
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
  /** Differences between the folder and the GGUF, a sentence each. */
  readonly notes: readonly string[];
  /** The folder's model files, if the GGUF has no weights. */
  readonly files?: readonly NamedFile[];
  /** Default options for requests, as a Modelfile's parameters. */
  readonly parameters?: Readonly<Record<string, number>>;
}

/**
 * Writes a GGUF at `to`.
 * Throws `bad_file` for an invalid folder, and `unsupported` for an architecture, tokenizer or weights that a GGUF
 * cannot express; the message names the file and the key or tensor.
 */
export async function convertModel({ folder, to, onProgress }: ConvertOptions): Promise<Converted> {
  const whisper = folder.files.get(WHISPER_CPP);
  if (whisper !== undefined) {
    const model = await whisperCppModel(whisper, folder.label);
    await writeNewGguf(to, onProgress ? watched(model, onProgress) : model);
    return { notes: [] };
  }
  const kind = folderKind(folder);
  if (kind !== "safetensors") {
    const { metadata, files } = await (kind === "onnx" ? describeOnnx(folder) : describeMlc(folder));
    await writeNewGguf(to, { metadata, tensors: [] });
    return { notes: [], files, ...(kind === "onnx" ? await textOptions(folder, Infinity) : {}) };
  }
  const rooted = rootedAt("config.json", folder);
  const { model, notes, ctxLen } = await loadFolder(rooted);
  await writeNewGguf(to, onProgress ? watched(model, onProgress) : model);
  return { notes, ...(await textOptions(rooted, ctxLen)) };
}

async function loadFolder(folder: ModelFolder): Promise<{ model: WriteModel; notes: string[]; ctxLen: number }> {
  const { label } = folder;
  const json = await getJson(folder, "config.json");
  const architecture = findArchitecture(json, label);
  const text = textConfig(json);
  const config = configOf(text, `${label}: 'config.json'`);
  const encoder = await encoderOf(architecture, folder, configOf(json, `${label}: 'config.json'`));
  const table = { ...architecture.tensors(config), ...encoder.tensors };
  const takesDense = Object.hasOwn(table, DENSE);
  const pooling = await poolingType(folder, takesDense);
  const weights = await readWeights(folder, await findJson(folder, "model.safetensors.index.json"));
  if (takesDense) weights.push(...(await denseTensors(folder)));
  const whole = planTensors({
    tensors: weights,
    architecture,
    table,
    nLayers: layersOf(config),
    isTied: !architecture.keepsOutput && config.flag("tie_word_embeddings", false),
    label,
  });
  const rows = whole.tensors.find(({ name }) => name === "token_embd.weight")!.shape[1] ?? 0; // the plan is complete
  const { metadata, leftOut } = await convertTokenizer({ folder, config: { ...json, ...text }, architecture, rows });
  const { activations, activationKey } = architecture;
  if (activations) checkActivation(config, activations, activationKey);
  const plan = { ...whole, tensors: withAnswers(whole.tensors, metadata, { ...architecture, label }) };
  const generation = (await findJson(folder, "generation_config.json")) ?? {};
  const settings = architecture.settings?.(configOf(generation, `${label}: 'generation_config.json'`));
  const hyperparameters = Object.entries({ ...architecture.metadata(config), ...encoder.metadata, ...settings }).map(
    ([key, value]) => [`${architecture.arch}.${key}`, value] as const,
  );
  const model = {
    metadata: {
      ...generalMetadata({ json, architecture, label, plan }),
      ...Object.fromEntries(hyperparameters),
      ...(await layerValues(weights, { architecture, nLayers: layersOf(config), label })),
      [`${architecture.arch}.vocab_size`]: u32(rows),
      ...(architecture.arch === "bert" ? inputKinds(config) : {}),
      ...(config.find("is_causal") === false ? { [`${architecture.arch}.attention.causal`]: false } : {}),
      ...(pooling === undefined ? {} : { [`${architecture.arch}.pooling_type`]: u32(pooling) }),
      ...(await samplingDefaults(folder)),
      ...architecture.whole,
      ...metadata,
    },
    tensors: [...computedTensors(architecture.computed?.(config) ?? {}), ...plan.tensors.map(tensorOf(label))],
  };
  const hasOutput = "lm_head" in table && !architecture.unused?.test("lm_head.weight") && pooling === undefined;
  const notes = notesOf(plan, leftOut.length);
  if (hasOutput && config.find("tie_word_embeddings") === false && !whole.tensors.some(isOutput)) notes.push(TIED);
  return { model, notes, ctxLen: config.findCount("max_position_embeddings") ?? Infinity };
}

/** The image encoder of a model that has it in its own file. */
async function encoderOf({ encoder }: Architecture, folder: ModelFolder, whole: Config) {
  const vision = encoder && whole.findPart("vision_config");
  if (!vision) return {};
  const file = "preprocessor_config.json";
  const images = configOf((await findJson(folder, file)) ?? {}, `${folder.label}: '${file}'`);
  return { tensors: encoder.tensors(vision), metadata: encoder.metadata(vision, images) };
}

/** Replaces the output by a head of some tokens' rows, if the architecture names such tokens. */
function withAnswers(
  tensors: Plan["tensors"],
  metadata: Record<string, WriteValue>,
  { answers, label }: Pick<Architecture, "answers"> & { label: string },
): Plan["tensors"] {
  if (!answers) return tensors;
  const pieces = metadata["tokenizer.ggml.tokens"] as string[]; // every tokenizer has it
  const order = answers.map((answer) => pieces.indexOf(answer));
  if (order.includes(-1))
    throw new AppError("bad_file", `${label}: tokenizer: expected the tokens ${answers.join(", ")}`);
  const output = tensors.find(isOutput) ?? tensors.find(({ name }) => name === "token_embd.weight")!; // planned
  const [dim = 0] = output.shape;
  const sources = output.sources.map((source) => ({ ...source, rows: { shape: [order.length, dim], order } }));
  const head = { ...output, name: "cls.output.weight", shape: [dim, order.length], sources: sources as TensorSource[] };
  return [...tensors.filter((tensor) => !isOutput(tensor)), head];
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
  const { fallback, known } = architecture.name ?? {};
  const name = named || (fallback === undefined || known?.test(label) ? basename(label) : fallback) || "model";
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
  for (const { quant, sources } of tensors) {
    for (const { tensor } of sources) bytes.set(quant, (bytes.get(quant) ?? 0) + tensor.byteLength);
  }
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
  ({ name, shape, quant, sources }: Plan["tensors"][number]): WriteTensor => ({
    name,
    shape,
    quant,
    data: {
      async *[Symbol.asyncIterator]() {
        for (const source of sources) {
          if ("scales" in source) yield* expertData(source, quant, label);
          else if ("blockScales" in source) yield* blockScaledData(source, label);
          else yield* tensorData(source, quant, label);
        }
      },
    },
  });

/** The number of token types of a BERT. */
const inputKinds = (config: Config): Record<string, WriteValue> => ({
  "tokenizer.ggml.token_type_count": u32(config.count("type_vocab_size", { fallback: 1 })),
});

const isOutput = ({ name }: Plan["tensors"][number]): boolean => name === "output.weight";
const TIED = "'tie_word_embeddings' is false and 'lm_head.weight' is missing: the embedding is the output";

function notesOf({ encoderCount }: Plan, tokensLeftOut: number): string[] {
  const notes: string[] = [];
  if (encoderCount > 0) notes.push(`left out ${encoderCount} tensors of image or audio encoders`);
  if (tokensLeftOut > 0) notes.push(`left out ${tokensLeftOut} added tokens that have no embedding`);
  return notes;
}

/** The same model, with progress reports. */
function watched(model: WriteModel, onProgress: (progress: ConvertProgress) => void): WriteModel {
  const total = model.tensors.reduce(
    (sum, { shape, quant }) =>
      sum + (shape.reduce((product, size) => product * size, 1) / quant.blockLen) * quant.blockBytes,
    0,
  );
  let completed = 0;
  async function* counted(data: WriteTensor["data"]): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of data instanceof Uint8Array ? [data] : data) {
      yield chunk;
      completed += chunk.length;
      onProgress({ completed, total });
    }
  }
  return { ...model, tensors: model.tensors.map((tensor) => ({ ...tensor, data: counted(tensor.data) })) };
}
