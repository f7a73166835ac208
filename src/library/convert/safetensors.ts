/**
 * Reads safetensors headers: a file's tensors and their places. The file is untrusted: its header is bounded before it
 * is read, and no tensor may reach outside the file or overlap another. Format: README.md of huggingface/safetensors.
 */
import { open, stat } from "node:fs/promises";
import { AppError, messageOf, isObject } from "../../base/index.ts";
import { reading } from "../../base/system.ts";
import { describe, parseObject, type JsonObject, type ModelFolder } from "./folder.ts";

/** MAX_HEADER_SIZE of the format's own library. */
const HEADER_BYTES_MAX = 100_000_000;
const DIMS_MAX = 8;

/** Bytes per element. Types below one byte are missing here: they are refused only when used. */
const DTYPE_BYTES: Readonly<Record<string, number>> = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  F8_E8M0: 1,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
};

export interface SafeTensor {
  readonly name: string;
  /** As in `BF16`. */
  readonly dtype: string;
  /** Slowest-varying dimension first; GGUF has the opposite order. */
  readonly shape: readonly number[];
  readonly path: string;
  /** In the file, in bytes. */
  readonly offset: number;
  readonly byteLength: number;
}

/** Throws `bad_file` naming the file if anything is invalid. */
export async function readSafetensors(path: string, label: string): Promise<SafeTensor[]> {
  const wrong = (problem: string, cause?: unknown): AppError =>
    new AppError("bad_file", `${label}: ${problem}`, { cause });
  const found = await stat(path).catch((error: unknown) => {
    throw wrong(messageOf(error), error);
  });
  if (!found.isFile()) throw wrong("expected a file, got something else"); // opening a pipe would wait for its writer
  await using file = await reading(label, open(path, "r"));
  const fileBytes = (await reading(label, file.stat())).size;
  const read = async (offset: number, length: number): Promise<Uint8Array> => {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length;) {
      const { bytesRead } = await reading(label, file.read(bytes, done, length - done, offset + done));
      if (bytesRead === 0) throw wrong(`expected ${offset + length} bytes, got ${offset + done}`);
      done += bytesRead;
    }
    return bytes;
  };
  if (fileBytes < 8) throw wrong(`expected a header length of 8 bytes, got ${fileBytes} bytes in all`);
  const length = headerLength(await read(0, 8), { label, fileBytes });
  const text = new TextDecoder().decode(await read(8, length));
  return parseHeader(text, { path, label, dataStart: 8 + length, fileBytes });
}

function headerLength(bytes: Uint8Array, { label, fileBytes }: { label: string; fileBytes: number }): number {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  const max = Math.min(HEADER_BYTES_MAX, fileBytes - 8);
  if (length >= 2n && length <= BigInt(max)) return Number(length);
  throw new AppError("bad_file", `${label}: header length: expected 2 … ${max} bytes, got ${length}`);
}

interface HeaderPlace {
  readonly path: string;
  readonly label: string;
  /** Offsets are relative to this. */
  readonly dataStart: number;
  readonly fileBytes: number;
}

/** The tensors in a header's text, in the order of their data. */
export function parseHeader(text: string, place: HeaderPlace): SafeTensor[] {
  const header = parseObject(text, `${place.label}: header`);
  const tensors = Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, entry]) => parseEntry(name, entry, place))
    .sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  for (const [i, { name, offset }] of tensors.entries()) {
    const before = tensors[i - 1];
    if (!before || before.offset + before.byteLength <= offset) continue;
    const found = `'${before.name}' and '${name}' share bytes`;
    throw new AppError("bad_file", `${place.label}: expected tensors that do not overlap, got: ${found}`);
  }
  return tensors;
}

function parseEntry(name: string, entry: unknown, { path, label, dataStart, fileBytes }: HeaderPlace): SafeTensor {
  const wrong = (expected: string, got: unknown): AppError =>
    new AppError("bad_file", `${label}: tensor '${name.slice(0, 200)}': expected ${expected}, got ${describe(got)}`);
  if (!isObject(entry)) throw wrong("an object", entry);
  const dtype = entry["dtype"];
  if (typeof dtype !== "string") throw wrong("a dtype", dtype);
  const shape = parseShape(entry, wrong);
  const offsets = entry["data_offsets"];
  const isPair = Array.isArray(offsets) && offsets.length === 2 && offsets.every(Number.isSafeInteger);
  if (!isPair) throw wrong("data_offsets of a start and an end", offsets);
  const [start, end] = offsets as [number, number]; // checked above
  if (start < 0 || end < start || end > fileBytes - dataStart) {
    throw wrong(`data_offsets within the ${fileBytes - dataStart} bytes of data`, offsets);
  }
  const size = Object.hasOwn(DTYPE_BYTES, dtype) ? DTYPE_BYTES[dtype] : undefined;
  const bytes = size === undefined ? end - start : shape.reduce((product, length) => product * length, size);
  if (bytes !== end - start) throw wrong(`${bytes} bytes for (${shape.join(", ")}) of ${dtype}`, end - start);
  return { name, dtype, shape, path, offset: dataStart + start, byteLength: end - start };
}

function parseShape(entry: JsonObject, wrong: (expected: string, got: unknown) => AppError): number[] {
  const shape = entry["shape"];
  const isShape =
    Array.isArray(shape) && shape.length <= DIMS_MAX && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!isShape) throw wrong(`a shape of at most ${DIMS_MAX} sizes`, shape);
  return shape as number[]; // each was checked above
}

/** All tensors of a model: from the files in its index, else from every `*.safetensors` beside `config.json`. */
export async function readWeights(folder: ModelFolder, index: JsonObject | undefined): Promise<SafeTensor[]> {
  const placed = index && parseIndex(index, folder.label);
  const names = placed ? [...new Set(placed.values())].sort() : weightFiles(folder);
  const tensors = new Map<string, SafeTensor>();
  for (const name of names) {
    const path = folder.files.get(name);
    if (path === undefined) {
      throw new AppError("bad_file", `${folder.label}: expected '${name}', which its index names, got no such file`);
    }
    for (const tensor of await readSafetensors(path, `${folder.label}: '${name}'`)) {
      if (tensors.has(tensor.name)) {
        throw new AppError("bad_file", `${folder.label}: tensor '${tensor.name}' is in two files, one is '${name}'`);
      }
      if (!placed || placed.get(tensor.name) === name) tensors.set(tensor.name, tensor);
    }
  }
  const missing = placed && [...placed.keys()].find((name) => !tensors.has(name));
  if (missing !== undefined) {
    throw new AppError(
      "bad_file",
      `${folder.label}: tensor '${missing}': expected in '${placed?.get(missing)}', where the index has it, got none`,
    );
  }
  return [...tensors.values()];
}

function parseIndex(index: JsonObject, label: string): Map<string, string> {
  const map = index["weight_map"];
  if (!isObject(map) || !Object.values(map).every((file) => typeof file === "string")) {
    throw new AppError("bad_file", `${label}: 'weight_map' of the index: expected file names by tensor`);
  }
  return new Map(Object.entries(map) as [string, string][]); // each was checked above
}

/** `model.safetensors` alone, or all parts `model-00001-of-00002.safetensors` …; a missing part is an error. */
function weightFiles({ label, files }: ModelFolder): string[] {
  const all = [...files.keys()].filter((name) => /^[^/]+\.safetensors$/i.test(name));
  const ours = all.filter((name) => !/^(consolidated|adapter_model)/i.test(name));
  const model = ours.filter((name) => /^model/i.test(name));
  const names = (model.length > 0 ? model : ours.length > 0 ? ours : all).sort();
  if (names.length === 0) throw new AppError("bad_file", `${label}: expected a file '*.safetensors', got none`);
  const parts = names.map((name) => /-(\d+)-of-(\d+)\.safetensors$/i.exec(name));
  const count = parts.every((part) => part) ? Number(parts[0]?.[2]) : names.length;
  if (names.length !== count) {
    throw new AppError("bad_file", `${label}: expected all ${count} parts of the weights, got ${names.join(", ")}`);
  }
  return names;
}
