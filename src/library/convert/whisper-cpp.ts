/**
 * Converts whisper.cpp's `ggml-….bin` to the GGUF that its authors' folder gives. Weights keep their types and bytes.
 * The file has no merges and no list of suppressed tokens; both follow from its tokens.
 */
import { open } from "node:fs/promises";
import { reading } from "../../base/system.ts";
import { AppError } from "../../base/index.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../engine/formats/index.ts";
import { byteCharacters } from "../../engine/text/index.ts";
import { u32 } from "./architecture.ts";
import { whisper } from "./archs/whisper.ts";
import { mergesOf, partsOf } from "./bpe-ranks.ts";
import { configOf } from "./config.ts";
import { checkComplete, findRules } from "./plan.ts";
import { completeVocabulary, NORMAL, vocabularyMetadata, type AddedToken } from "./vocabulary.ts";
import { readWhisperCpp, type WhisperFile, type WhisperSizes, type WhisperTensor } from "./whisper-cpp-file.ts";

/** The authors' names, and the names in transformers, which `archs/whisper.ts` has. */
const NAMES: Readonly<Record<string, string>> = {
  positional_embedding: "embed_positions.weight",
  token_embedding: "embed_tokens",
  ln: "layer_norm",
  ln_post: "layer_norm",
  attn_ln: "self_attn_layer_norm",
  "attn.query": "self_attn.q_proj",
  "attn.key": "self_attn.k_proj",
  "attn.value": "self_attn.v_proj",
  "attn.out": "self_attn.out_proj",
  cross_attn_ln: "encoder_attn_layer_norm",
  "cross_attn.query": "encoder_attn.q_proj",
  "cross_attn.key": "encoder_attn.k_proj",
  "cross_attn.value": "encoder_attn.v_proj",
  "cross_attn.out": "encoder_attn.out_proj",
  mlp_ln: "final_layer_norm",
  "mlp.0": "fc1",
  "mlp.2": "fc2",
};

/** `llama_ftype` by `ggml_ftype`, where they differ. */
const FILE_TYPES: Readonly<Record<number, number>> = { 12: 14, 13: 16, 14: 18 };

/** From this size on, models know several languages, and the end of a text is one id later. */
const MULTILINGUAL_FROM = 51_865;
const ENGLISH_TOKENS = 50_256;
/** Languages of the first multilingual models; the next size has one more. */
const LANGUAGES_FIRST = 99;
const LANGUAGES = (
  "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml " +
  "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am " +
  "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
).split(" ");

/** Marks that are not spoken, by themselves and after a space; see `non_speech_tokens` of the authors' tokenizer. */
const MARKS = [
  ...'"#()*+/:;<=>@[\\]^_`{|}~「」『』',
  ..."<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪".split(" "),
];
/** Notes and their like are suppressed by the first of their tokens. */
const NOTES = [..."♩♪♫♬♭♮♯"];
/** A mark that is suppressed after a space only, for it also stands in words. */
const AFTER_SPACE = [" -", " '"];

const CHUNK_BYTES = 2 ** 20;

/** Throws `bad_file` if the file is damaged or lacks a tensor, `unsupported` for weights of a type we cannot read. */
export async function whisperCppModel(path: string, label: string): Promise<WriteModel> {
  const file = await readWhisperCpp(path, label);
  const { sizes } = file;
  const vocabulary = vocabularyOf(file, label);
  const config = configOf({ ...hyperparameters(sizes), ...vocabulary.suppressed }, label);
  const table = whisper.tensors(config);
  const tensors = new Map<string, WriteTensor>();
  for (const tensor of file.tensors) {
    const [rule] = findRules(table, ownName(tensor.name), Math.max(sizes.encoderLayers, sizes.decoderLayers));
    if (!rule) throw new AppError("unsupported", `${label}: tensor '${tensor.name}': not a weight of Whisper`);
    if (tensors.has(rule.name)) throw new AppError("bad_file", `${label}: expected one '${tensor.name}', got two`);
    tensors.set(rule.name, writeTensor(tensor, { name: rule.name, path, label }));
  }
  checkComplete({ planned: tensors, table, nLayers: sizes.decoderLayers, label });
  const own = Object.entries(whisper.metadata(config)).map(([key, value]) => [`whisper.${key}`, value] as const);
  const metadata: Record<string, WriteValue> = {
    "general.architecture": "whisper",
    "general.type": "model",
    "general.name": label.replace(/^.*[\\/]|\.bin$/gi, "").slice(0, 200),
    "general.file_type": u32(FILE_TYPES[sizes.fileType] ?? sizes.fileType),
    "general.quantization_version": u32(2), // GGML_QNT_VERSION, which the reader checked
    ...Object.fromEntries(own),
    "whisper.vocab_size": u32(sizes.vocab),
    ...vocabulary.metadata,
  };
  return { metadata, tensors: [...tensors.values()] };
}

const hyperparameters = (sizes: WhisperSizes): Record<string, unknown> => ({
  d_model: sizes.dim,
  encoder_layers: sizes.encoderLayers,
  decoder_layers: sizes.decoderLayers,
  encoder_attention_heads: sizes.encoderHeads,
  decoder_attention_heads: sizes.decoderHeads,
  encoder_ffn_dim: 4 * sizes.dim,
  decoder_ffn_dim: 4 * sizes.dim,
  max_source_positions: sizes.soundPositions,
  max_target_positions: sizes.textPositions,
  num_mel_bins: sizes.bins,
});

/** The name in transformers, as `decoder.layers.0.fc1.weight`. */
function ownName(name: string): string {
  const [, side = "", layer, bare = "", part = ""] =
    /^(encoder|decoder)\.(?:blocks\.(\d{1,6})\.)?(.+?)(\.weight|\.bias)?$/.exec(name) ?? [];
  const inner = Object.hasOwn(NAMES, bare) ? NAMES[bare]! : bare;
  return `${side}.${layer === undefined ? "" : `layers.${layer}.`}${inner}${part}`;
}

interface Place {
  readonly name: string;
  readonly path: string;
  readonly label: string;
}

function writeTensor({ shape, quant, offset, byteLength }: WhisperTensor, { name, path, label }: Place): WriteTensor {
  const isVector = name.endsWith(".bias"); // biases of convolutions have a second dimension, of 1
  return {
    name,
    shape: isVector ? [shape.reduce((product, length) => product * length, 1)] : shape,
    quant,
    data: {
      async *[Symbol.asyncIterator]() {
        await using file = await reading(label, open(path, "r"));
        for (let done = 0; done < byteLength;) {
          const chunk = new Uint8Array(Math.min(CHUNK_BYTES, byteLength - done));
          const { bytesRead } = await reading(label, file.read(chunk, 0, chunk.length, offset + done));
          if (bytesRead === 0)
            throw new AppError("bad_file", `${label}: expected ${offset + byteLength} bytes, got fewer`);
          done += bytesRead;
          yield chunk.subarray(0, bytesRead);
        }
      },
    },
  };
}

interface WhisperVocabulary {
  readonly metadata: Record<string, WriteValue>;
  /** As a folder's configuration lists them. */
  readonly suppressed: {
    readonly suppress_tokens: readonly number[];
    readonly begin_suppress_tokens: readonly number[];
  };
}

function vocabularyOf({ tokens, sizes }: WhisperFile, label: string): WhisperVocabulary {
  const characters = byteCharacters();
  const inAlphabet = (bytes: Uint8Array): string => Array.from(bytes, (byte) => characters[byte]!).join("");
  const pieces = tokens.map(inAlphabet);
  const ranks = new Map(pieces.map((piece, id) => [piece, id]));
  const encode = (text: string): (number | undefined)[] =>
    partsOf(inAlphabet(new TextEncoder().encode(text)), (pair) => ranks.get(pair) ?? Infinity).map((part) =>
      ranks.get(part),
    );
  const control = controlTokens(sizes.vocab);
  const end = control[0]!.id;
  const merges = mergesOf(pieces);
  const vocabulary = { pieces, types: pieces.map(() => NORMAL), scores: [] };
  completeVocabulary(vocabulary, { added: control, rows: sizes.vocab, label }); // adds pieces, which have no merges
  const space = encode(" ").filter((id) => id !== undefined);
  return {
    metadata: {
      "tokenizer.ggml.model": "gpt2",
      "tokenizer.ggml.pre": "gpt-2",
      ...vocabularyMetadata(vocabulary),
      "tokenizer.ggml.merges": merges,
      "tokenizer.ggml.eos_token_id": u32(end),
      "tokenizer.ggml.add_bos_token": false,
    },
    suppressed: { suppress_tokens: unspoken(encode), begin_suppress_tokens: [...space, end] },
  };
}

/** The control tokens but for the times, in the order of their ids. */
function controlTokens(vocab: number): AddedToken[] {
  const isMultilingual = vocab >= MULTILINGUAL_FROM;
  const languages = LANGUAGES.slice(0, LANGUAGES_FIRST + (isMultilingual ? vocab - MULTILINGUAL_FROM : 0));
  const names = ["endoftext", "startoftranscript", ...languages, "translate", "transcribe", "startoflm"];
  names.push("startofprev", "nospeech", "notimestamps");
  const first = ENGLISH_TOKENS + (isMultilingual ? 1 : 0);
  return names.map((name, i) => ({ id: first + i, content: `<|${name}|>`, isSpecial: true }));
}

/** @param encode returns the ids of a text, undefined for a byte without a token */
function unspoken(encode: (text: string) => readonly (number | undefined)[]): number[] {
  const found = new Set<number>();
  const add = (id: number | undefined): void => void (id !== undefined && found.add(id));
  for (const text of AFTER_SPACE) add(encode(text)[0]);
  for (const mark of [...MARKS, ...NOTES]) {
    for (const text of [mark, ` ${mark}`]) {
      const ids = encode(text);
      if (ids.includes(undefined)) continue; // old files have replacement characters for bytes
      if (ids.length === 1 || NOTES.includes(mark)) add(ids[0]);
    }
  }
  return [...found].sort((a, b) => a - b);
}
