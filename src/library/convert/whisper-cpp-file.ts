/**
 * Reads the headers of whisper.cpp's `ggml-….bin`: sizes, vocabulary, and the places of the tensors. The file is
 * untrusted: every count is bounded before it is used, and no tensor may reach outside the file. All numbers are
 * little-endian 32-bit integers. Format: `whisper_model_load`, whisper.cpp.
 */
import { open, type FileHandle } from "node:fs/promises";
import { AppError } from "../../base/index.ts";
import { reading } from "../../base/system.ts";
import { quantOf, unsupportedQuant, type Quant } from "../../engine/formats/index.ts";

/** GGML_FILE_MAGIC, ggml.h */
const MAGIC = 0x67_67_6d_6c;
/** GGML_QNT_VERSION and GGML_QNT_VERSION_FACTOR, ggml.h */
const [QUANTIZATION_VERSION, VERSION_FACTOR] = [2, 1000];
/** From this file type on, matrices are quantized. */
const FIRST_QUANTIZED = 2;
/** Four times the largest published sizes. */
const MAX = { vocabulary: 2 ** 18, width: 2 ** 13, layers: 128, bins: 512, bands: 2 ** 12, tensors: 2 ** 13 };
const [PIECE_BYTES_MAX, NAME_BYTES_MAX, DIMS_MAX] = [512, 256, 4];
const WINDOW_BYTES = 2 ** 16;

export interface WhisperSizes {
  readonly vocab: number;
  readonly soundPositions: number;
  readonly dim: number;
  readonly encoderHeads: number;
  readonly encoderLayers: number;
  readonly textPositions: number;
  readonly decoderHeads: number;
  readonly decoderLayers: number;
  readonly bins: number;
  /** The `ggml_ftype` of the matrices, without its version. */
  readonly fileType: number;
}

export interface WhisperTensor {
  /** In the names of its authors, as `encoder.blocks.0.attn.query.weight`. */
  readonly name: string;
  /** Fastest-varying dimension first, as in a GGUF. */
  readonly shape: readonly number[];
  readonly quant: Quant;
  /** In the file, in bytes. */
  readonly offset: number;
  readonly byteLength: number;
}

export interface WhisperFile {
  readonly sizes: WhisperSizes;
  /** The listed tokens' bytes, by id; control tokens follow without a text. */
  readonly tokens: readonly Uint8Array[];
  readonly tensors: readonly WhisperTensor[];
}

/** Returns whether the file begins as whisper.cpp's files do; false if it cannot be read. */
export async function isWhisperCpp(path: string): Promise<boolean> {
  try {
    await using file = await open(path, "r");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.readUInt32LE(0) === MAGIC;
  } catch {
    return false;
  }
}

/** Throws `bad_file` for a damaged file, `unsupported` for weights of a type that we cannot read. */
export async function readWhisperCpp(path: string, label: string): Promise<WhisperFile> {
  await using file = await reading(label, open(path, "r"));
  const { size } = await reading(label, file.stat());
  const cursor = new FileCursor(file, { size, label });
  if ((await cursor.u32("magic")) !== MAGIC) throw cursor.wrong("a file of whisper.cpp", "other bytes");
  const sizes = await readSizes(cursor);
  await skipFilters(cursor, sizes);
  const tokens = await readTokens(cursor, sizes);
  const tensors: WhisperTensor[] = [];
  while (cursor.offset < size) {
    if (tensors.length === MAX.tensors) throw cursor.wrong(`at most ${MAX.tensors} tensors`, "more");
    tensors.push(await readTensor(cursor));
  }
  return { sizes, tokens, tensors };
}

async function readSizes(cursor: FileCursor): Promise<WhisperSizes> {
  const width = () => cursor.count("a width", MAX.width);
  const layers = () => cursor.count("a number of layers", MAX.layers);
  const vocab = await cursor.count("the size of the vocabulary", MAX.vocabulary);
  const [soundPositions, dim, encoderHeads, encoderLayers] = [
    await width(),
    await width(),
    await width(),
    await layers(),
  ];
  const [textPositions, textDim, decoderHeads, decoderLayers] = [
    await width(),
    await width(),
    await width(),
    await layers(),
  ];
  const bins = await cursor.count("the number of mel bins", MAX.bins);
  const type = await cursor.u32("the file type");
  if (textDim !== dim) throw cursor.wrong(`a decoder as wide as the encoder, ${dim}`, String(textDim));
  const [version, fileType] = [Math.floor(type / VERSION_FACTOR), type % VERSION_FACTOR];
  if (fileType >= FIRST_QUANTIZED && version !== QUANTIZATION_VERSION) {
    throw cursor.wrong(`quantized weights of version ${QUANTIZATION_VERSION}`, `version ${version}`);
  }
  return {
    vocab,
    soundPositions,
    dim,
    encoderHeads,
    encoderLayers,
    textPositions,
    decoderHeads,
    decoderLayers,
    bins,
    fileType,
  };
}

/** We compute the same mel filters. */
async function skipFilters(cursor: FileCursor, { bins }: WhisperSizes): Promise<void> {
  const rows = await cursor.count("the rows of the mel filters", MAX.bins);
  const bands = await cursor.count("the columns of the mel filters", MAX.bands);
  if (rows !== bins) throw cursor.wrong(`mel filters for ${bins} bins`, String(rows));
  cursor.skip("the mel filters", rows * bands * Float32Array.BYTES_PER_ELEMENT);
}

async function readTokens(cursor: FileCursor, { vocab }: WhisperSizes): Promise<Uint8Array[]> {
  const count = await cursor.count("the number of tokens", vocab);
  const tokens: Uint8Array[] = [];
  for (let id = 0; id < count; id++) {
    const length = await cursor.u32("the length of a token");
    if (length > PIECE_BYTES_MAX) throw cursor.wrong(`token ${id} of at most ${PIECE_BYTES_MAX} bytes`, String(length));
    tokens.push(await cursor.bytes("a token", length));
  }
  return tokens;
}

async function readTensor(cursor: FileCursor): Promise<WhisperTensor> {
  const dims = await cursor.count("the number of a tensor's dimensions", DIMS_MAX);
  const nameBytes = await cursor.count("the length of a tensor's name", NAME_BYTES_MAX);
  const type = await cursor.u32("the type of a tensor");
  const shape: number[] = [];
  for (let i = 0; i < dims; i++) shape.push(await cursor.count("a dimension of a tensor", MAX.vocabulary));
  const name = new TextDecoder().decode(await cursor.bytes("the name of a tensor", nameBytes));
  const quant = quantOf(type);
  if (!quant) throw new AppError("unsupported", `${cursor.label}: tensor '${name}': ${unsupportedQuant(type)}`);
  if (shape[0]! % quant.blockLen !== 0)
    throw cursor.wrong(`'${name}': rows of whole blocks of ${quant.blockLen}`, String(shape[0]));
  const values = shape.reduce((product, length) => product * length, 1);
  const byteLength = (values / quant.blockLen) * quant.blockBytes;
  const { offset } = cursor;
  cursor.skip(`tensor '${name}'`, byteLength);
  return { name, shape, quant, offset, byteLength };
}

/** Reads a file from its beginning, through a window; data that is skipped is not read. */
class FileCursor {
  offset = 0;
  readonly label: string;
  readonly #file: FileHandle;
  readonly #size: number;
  #window = Buffer.alloc(0);
  #start = 0;

  constructor(file: FileHandle, { size, label }: { size: number; label: string }) {
    this.#file = file;
    this.#size = size;
    this.label = label;
  }

  wrong(expected: string, got: string): AppError {
    return new AppError("bad_file", `${this.label}: at byte ${this.offset}: expected ${expected}, got ${got}`);
  }

  skip(what: string, length: number): void {
    const left = this.#size - this.offset;
    if (length > left) throw this.wrong(`${length} bytes of ${what}`, `${left} bytes to the end of the file`);
    this.offset += length;
  }

  async u32(what: string): Promise<number> {
    return (await this.#take(what, 4)).readUInt32LE(0);
  }

  /** A number from 1 to `max`. */
  async count(what: string, max: number): Promise<number> {
    const value = await this.u32(what);
    if (value >= 1 && value <= max) return value;
    this.offset -= 4; // the message names its place
    throw this.wrong(`${what}, 1 … ${max}`, String(value));
  }

  /** A copy of the next bytes. */
  async bytes(what: string, length: number): Promise<Uint8Array> {
    return Uint8Array.from(await this.#take(what, length));
  }

  async #take(what: string, length: number): Promise<Buffer> {
    const { offset: start } = this;
    this.skip(what, length);
    if (start < this.#start || start + length > this.#start + this.#window.length)
      await this.#load(what, start, length);
    return this.#window.subarray(start - this.#start, start - this.#start + length);
  }

  async #load(what: string, start: number, length: number): Promise<void> {
    const window = Buffer.alloc(Math.min(WINDOW_BYTES, this.#size - start));
    const { bytesRead } = await reading(this.label, this.#file.read(window, 0, window.length, start));
    if (bytesRead < length)
      throw this.wrong(`${length} bytes of ${what}`, `${bytesRead} of a file that became shorter`);
    [this.#window, this.#start] = [window.subarray(0, bytesRead), start];
  }
}
