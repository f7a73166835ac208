/** Whisper in ONNX files: an encoder and a decoder, whose graphs the library runs. */
import { readFile } from "node:fs/promises";
import { AppError, isObject, type NamedFile } from "../../../../base/index.ts";
import { pathBeside } from "../../../formats/files/beside.ts";
import { readOnnxHeader } from "../../../formats/files/onnx.ts";
import { getNumber } from "../../../formats/gguf/keys.ts";
import type { Gguf } from "../../../formats/gguf/gguf.ts";
import { halfToFloat } from "../../../formats/half.ts";
import type { Backend, Program, Session } from "../../../program/backend.ts";
import type { HeardWindow, SpeechModel } from "../../../program/speech.ts";
import { openLibrary, withLinks, sizeOf, type Library, type LibraryModel, type Tensor } from "./library.ts";

const FRAMES = 3000;
const CONFIG_BYTES_MAX = 2 ** 20;

/** The encoder's graph, if the files are Whisper's. */
export const speechEncoder = (files: readonly NamedFile[]): NamedFile | undefined =>
  files.find(({ name }) => /(^|\/)encoder_model[^/]*\.onnx$/.test(name));

interface Graphs {
  readonly encoder: NamedFile;
  readonly decoder: NamedFile;
}

/** Throws as `openTransformers`. */
export async function openWhisper(
  files: readonly NamedFile[],
  { encoder, decoder, threads }: Graphs & { readonly threads: number },
): Promise<Backend> {
  const byName = new Map(files.map(({ name, path }) => [name, path]));
  for (const graph of [encoder, decoder])
    for (const name of readOnnxHeader(graph.path).external)
      pathBeside({ label: "the model", files: byName }, graph.name, name); // the runtime would open any path
  const config = {
    ...(await readConfig(byName, "config.json")),
    ...(await readConfig(byName, "generation_config.json")),
  };
  const library = await openLibrary();
  const model = await withLinks(
    files.map((file) => renamed(file, { encoder, decoder })),
    (path) =>
      library.AutoModelForSpeechSeq2Seq.from_pretrained(path, {
        subfolder: folderOf(encoder.name),
        dtype: "fp32", // adds no suffix to the names
        device: "cpu",
        local_files_only: true,
        use_external_data_format: false, // the runtime finds them beside the graph
        session_options: { intraOpNumThreads: threads, interOpNumThreads: 1 },
      }),
  );
  const weights = await sizeOf(files);
  const device = `CPU (${threads} threads, ONNX Runtime by transformers.js)`;
  return {
    name: "transformers",
    program: (gguf) => silentProgram(gguf),
    slotBytes: () => ({ perToken: 0, once: 0 }),
    load: async () => silentSession({ device, model, weights }),
    speech: speechOf({ library, model, config }),
  };
}

const folderOf = (name: string): string => (name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "");

/** The library chooses graphs by their names. */
function renamed(file: NamedFile, { encoder, decoder }: Graphs): NamedFile {
  const folder = folderOf(file.name);
  const prefix = folder === "" ? "" : `${folder}/`;
  if (file.name === encoder.name) return { ...file, name: `${prefix}encoder_model.onnx` };
  return file.name === decoder.name ? { ...file, name: `${prefix}decoder_model_merged.onnx` } : file;
}

/** A file of the model; empty if missing. Throws `bad_file` if it is not an object in JSON. */
async function readConfig(files: ReadonlyMap<string, string>, name: string): Promise<Record<string, unknown>> {
  const path = files.get(name);
  if (path === undefined) return {};
  const bytes = await readFile(path);
  let found: unknown;
  try {
    found = bytes.length > CONFIG_BYTES_MAX ? undefined : JSON.parse(bytes.toString());
  } catch {}
  if (isObject(found)) return found;
  throw new AppError("bad_file", `${path}: '${name}': expected an object in JSON of at most 1 MiB`);
}

function speechOf({
  library,
  model,
  config,
}: {
  library: Library;
  model: LibraryModel;
  config: Readonly<Record<string, unknown>>;
}): SpeechModel {
  const count = (key: string): number => {
    const value = config[key];
    if (typeof value === "number" && Number.isInteger(value) && value > 0 && value < 2 ** 24) return value;
    throw new AppError("bad_file", `the model: 'config.json': '${key}': expected a count, got ${String(value)}`);
  };
  const ids = (key: string): number[] => {
    const value = config[key] ?? [];
    if (Array.isArray(value) && value.every((id) => Number.isInteger(id))) return value as number[]; // checked
    throw new AppError("bad_file", `the model: '${key}': expected an array of ids`);
  };
  const bins = count("num_mel_bins");
  const vocabSize = count("vocab_size");
  return {
    bins,
    vocabSize,
    ctxLen: count("max_target_positions"),
    suppressed: ids("suppress_tokens"),
    suppressedFirst: ids("begin_suppress_tokens"),
    async hear(mel) {
      const { Tensor: Make } = library;
      const outputs = await model.sessions["model"]!.run({
        input_features: new Make("float32", mel, [1, bins, FRAMES]).ort_tensor!,
      });
      const states = outputs["last_hidden_state"];
      if (!states) throw new AppError("bad_file", "the model: its encoder has no output 'last_hidden_state'");
      return windowOf({ library, model, vocabSize, states: new Make(states.type, states.data, states.dims) });
    },
  };
}

function windowOf({
  library,
  model,
  vocabSize,
  states,
}: {
  library: Library;
  model: LibraryModel;
  vocabSize: number;
  states: Tensor;
}): HeardWindow {
  let past: Record<string, Tensor> = {};
  const forward = async (tokens: readonly number[]): Promise<Float32Array> => {
    const ids = new library.Tensor("int64", BigInt64Array.from(tokens, BigInt), [1, tokens.length]);
    const known = Object.keys(past).length > 0 ? { past_key_values: { ...past } } : {};
    const outputs = await model({ encoder_outputs: states, decoder_input_ids: ids, ...known });
    past = pastOf(outputs, past);
    return lastRow(outputs["logits"], vocabSize);
  };
  return {
    async extend(tokens) {
      if (Object.keys(past).length === 0) return forward(tokens);
      let logits = new Float32Array(0);
      for (const token of tokens) logits = (await forward([token])) as Float32Array<ArrayBuffer>; // later runs take one
      return logits;
    },
    restart: () => void (past = {}),
  };
}

/** Keys and values of the text are from this run; keys and values of the sound stay unchanged since the first run. */
function pastOf(outputs: Readonly<Record<string, Tensor>>, before: Readonly<Record<string, Tensor>>) {
  const named = Object.entries(outputs).filter(([name]) => name.startsWith("present."));
  return Object.fromEntries(
    named.map(([output, tensor]) => {
      const name = output.replace("present", "past_key_values");
      return [name, (output.includes(".encoder.") && before[name]) || tensor] as const;
    }),
  );
}

/** Throws `bad_file` for another shape, `runner` for NaN. */
function lastRow(logits: Tensor | undefined, vocabSize: number): Float32Array {
  if (logits?.dims.length !== 3 || logits.dims[2] !== vocabSize) {
    const found = logits ? `(${logits.dims.join(", ")})` : "none";
    throw new AppError("bad_file", `the model: output 'logits': expected (1, tokens, ${vocabSize}), got ${found}`);
  }
  const { data, type } = logits;
  const row = data.subarray(data.length - vocabSize);
  const isHalf = type === "float16" && row instanceof Uint16Array;
  const values = Float32Array.from(row as Float32Array, isHalf ? halfToFloat : Number);
  if (values.some(Number.isNaN)) throw new AppError("runner", "the model: output 'logits': expected numbers, got NaN");
  return values;
}

/** The engine's view of a model that only transcribes speech. */
function silentProgram(gguf: Gguf): Program {
  const size = (key: string): number => getNumber(gguf.metadata, `onnx.${key}`, 1);
  const [dim, vocabSize] = [size("embedding_length"), size("vocab_size")];
  const shape = { arch: "onnx", dim, nLayers: size("block_count"), vocabSize };
  return { shape, steps: [], logits: undefined, states: { name: "states", dim }, weights: gguf };
}

function silentSession({ device, model, weights }: { device: string; model: LibraryModel; weights: number }): Session {
  const refuse = async (): Promise<never> => {
    throw new AppError("bad_request", "the model transcribes speech: it has no embeddings and no answers");
  };
  return {
    backend: "transformers",
    device,
    bytes: { weights, kv: 0, scratch: 0 },
    run: refuse,
    states: refuse,
    shift: () => {},
    copy: () => {},
    close: () => void model.dispose().catch(() => {}), // the process ends anyway
  };
}
