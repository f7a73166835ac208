/**
 * Reads facts from an ONNX file: the names of its inputs and outputs, its weights, and the external files that hold
 * them. Weights are skipped, and nested graphs are visited. Field numbers: onnx/onnx.proto. Blocks the caller: for
 * threads and separate processes.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { AppError } from "../../../base/index.ts";
import { notRegular, readingSync } from "../../../base/system.ts";

export interface OnnxHeader {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Names of files with weights, as in the file: relative to its own folder. */
  readonly external: ReadonlySet<string>;
  /** Weights of the graph; 4-bit weights count by `MatMulNBits`, which packs two per byte. */
  readonly parameterCount: number;
  /** The element type with the most bytes, as in `F32`. */
  readonly dataType: string;
}

/** The task of a graph. Throws `unsupported` if it is neither. */
export function taskOf(
  { inputs, outputs }: Pick<OnnxHeader, "inputs" | "outputs">,
  what: string,
): "completion" | "embedding" {
  const states = inputs.filter((name) => name.startsWith("past"));
  const other = states.find((name) => !/^past_key_values\.\d+\.(key|value)$/.test(name));
  if (other !== undefined) {
    throw new AppError("unsupported", `${what}: expected a cache of only keys and values, got an input '${other}'`);
  }
  if (outputs.includes("logits") && states.length > 0) return "completion";
  if (outputs.includes("last_hidden_state") || outputs.includes("token_embeddings")) return "embedding";
  const expected = "an output 'logits' and inputs 'past_key_values.…', or an output 'last_hidden_state'";
  throw new AppError(
    "unsupported",
    `${what}: expected ${expected}, got outputs ${JSON.stringify(outputs.slice(0, 8)).slice(0, 60)}`,
  );
}

/** A protobuf message is at most 2 GiB. */
const FILE_BYTES_MAX = 2 ** 31;
/** Maximum nesting of graphs within nodes: exporters write one or two levels. */
const DEPTH_MAX = 16;
/** Fields of all visited messages; the largest known graphs have some 100,000 nodes. */
const FIELDS_MAX = 20_000_000;
const NAMES_MAX = 65_536;
const TEXT_BYTES_MAX = 4096;
const DIMS_MAX = 32;
const WINDOW_BYTES = 64 * 1024;

/** `TensorProto.DataType`: our name, and its bytes. */
const DATA_TYPES: Readonly<Record<number, readonly [string, number]>> = {
  1: ["F32", 4],
  2: ["U8", 1],
  3: ["I8", 1],
  10: ["F16", 2],
  16: ["BF16", 2],
  21: ["U4", 0.5],
  22: ["I4", 0.5],
};

/** By kind of message: fields that hold other messages, and their kind. */
const NESTED = {
  model: { 7: "graph", 25: "function" },
  graph: { 1: "node", 5: "tensor", 11: "input", 12: "output", 15: "sparse" },
  function: { 7: "node" },
  node: { 5: "attribute" },
  attribute: { 5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse" },
  sparse: { 1: "tensor", 2: "tensor" },
  tensor: { 13: "entry" },
  input: {},
  output: {},
  entry: {},
} as const satisfies Record<string, Readonly<Record<number, string>>>;
type Kind = keyof typeof NESTED;

interface Tensor {
  readonly dims: number[];
  type: number;
}

interface Found {
  readonly inputs: string[];
  readonly outputs: string[];
  readonly external: Set<string>;
  readonly bytes: Map<string, number>;
  parameterCount: number;
  fields: number;
}

/** Throws `bad_file` if the file is not an ONNX model, is damaged, or exceeds the format's size limit. */
export function readOnnxHeader(path: string): OnnxHeader {
  const reader = openReader(path);
  try {
    const found: Found = {
      inputs: [],
      outputs: [],
      external: new Set(),
      bytes: new Map(),
      parameterCount: 0,
      fields: 0,
    };
    readMessage(reader, { kind: "model", end: reader.size, depth: 0, found });
    if (found.outputs.length === 0) throw wrong(path, "expected a graph with outputs, got none: no ONNX model");
    const [most] = [...found.bytes].sort(([, a], [, b]) => b - a);
    return { ...found, dataType: most?.[0] ?? "unknown" };
  } finally {
    reader.close();
  }
}

interface Message {
  readonly kind: Kind;
  /** Offset after it. */
  readonly end: number;
  readonly depth: number;
  readonly found: Found;
}

function readMessage(reader: Reader, message: Message): void {
  const { kind, end, depth, found } = message;
  if (depth > DEPTH_MAX) throw wrong(reader.path, `expected at most ${DEPTH_MAX} messages within each other, got more`);
  const nested: Readonly<Record<number, Kind>> = NESTED[kind];
  const tensor: Tensor = { dims: [], type: 0 };
  let [key, value] = ["", ""];
  while (reader.at < end) {
    if (++found.fields > FIELDS_MAX) throw wrong(reader.path, `expected at most ${FIELDS_MAX} fields, got more`);
    const { field, wire } = readTag(reader);
    if (wire !== 2) {
      const number = skipOrNumber(reader, { wire, end });
      if (kind === "tensor" && field === 1) addDim(reader, tensor, number);
      if (kind === "tensor" && field === 2) tensor.type = number;
      continue;
    }
    const length = reader.varint();
    const to = reader.at + length;
    if (to > end)
      throw wrong(reader.path, `offset ${reader.at}: a field of ${length} bytes, where ${end - reader.at} are left`);
    const inner = nested[field];
    if (inner) readMessage(reader, { kind: inner, end: to, depth: depth + 1, found });
    else if (kind === "tensor" && field === 1) readDims(reader, { tensor, to });
    else if (kind === "entry" && field === 1) key = reader.text(length);
    else if (kind === "entry" && field === 2) value = reader.text(length);
    else if ((kind === "input" || kind === "output") && field === 1 && depth === 2) {
      addName(kind === "input" ? found.inputs : found.outputs, reader.text(length), reader.path);
    } else reader.skip(length);
    if (reader.at !== to) throw wrong(reader.path, `offset ${to}: a message ends within a field`);
  }
  if (kind === "entry" && key === "location") addExternal(found, value, reader.path);
  if (kind === "tensor" && depth === 2) countTensor(found, tensor, reader.path);
}

function readDims(reader: Reader, { tensor, to }: { tensor: Tensor; to: number }): void {
  while (reader.at < to) addDim(reader, tensor, reader.varint());
}

function addDim(reader: Reader, { dims }: Tensor, dim: number): void {
  if (dims.push(dim) > DIMS_MAX) throw wrong(reader.path, `a tensor of more than ${DIMS_MAX} dimensions`);
}

function readTag(reader: Reader): { field: number; wire: number } {
  const tag = reader.varint();
  return { field: Math.floor(tag / 8), wire: tag % 8 };
}

/** The number in a field without a length. */
function skipOrNumber(reader: Reader, { wire, end }: { wire: number; end: number }): number {
  if (wire === 0) return reader.varint();
  const size = wire === 1 ? 8 : wire === 5 ? 4 : undefined;
  if (size === undefined || reader.at + size > end) {
    throw wrong(reader.path, `offset ${reader.at}: expected a field of protobuf, got wire type ${wire}: no ONNX model`);
  }
  reader.skip(size);
  return 0;
}

function addName(names: string[], name: string, path: string): void {
  if (names.length >= NAMES_MAX) throw wrong(path, `expected at most ${NAMES_MAX} inputs or outputs, got more`);
  names.push(name);
}

function addExternal(found: Found, name: string, path: string): void {
  found.external.add(name);
  if (found.external.size > NAMES_MAX) throw wrong(path, `expected at most ${NAMES_MAX} files of weights, got more`);
}

function countTensor(found: Found, { dims, type }: Tensor, path: string): void {
  const known = DATA_TYPES[type];
  if (!known || dims.length < 2) return; // skips norms, biases, and numbers of the graph
  const [name, bytes] = known;
  const count = dims.reduce((product, size) => product * size, 1);
  const isPacked = name === "U8" && dims.length === 3; // (rows, blocks, bytes of a block)
  found.parameterCount += isPacked ? 2 * count : count;
  if (!Number.isSafeInteger(found.parameterCount)) throw wrong(path, `a tensor of the shape (${dims.join(", ")})`);
  const label = isPacked ? "Q4" : name === "U8" || name === "I8" ? "Q8" : name;
  found.bytes.set(label, (found.bytes.get(label) ?? 0) + count * bytes);
}

interface Reader {
  readonly path: string;
  readonly size: number;
  /** Offset in the file. */
  readonly at: number;
  /**
   * An unsigned number; numbers above 2^53 (including negative ones) become Infinity, because no valid field is that
   * large.
   */
  varint(): number;
  text(length: number): string;
  skip(length: number): void;
  close(): void;
}

function openReader(path: string): Reader {
  if (!readingSync(path, () => statSync(path)).isFile()) throw notRegular(path);
  const fd = readingSync(path, () => openSync(path, "r"));
  const { size } = fstatSync(fd);
  if (size > FILE_BYTES_MAX) {
    closeSync(fd);
    throw wrong(path, `expected at most ${FILE_BYTES_MAX} bytes, got ${size}`);
  }
  const window = new Uint8Array(WINDOW_BYTES);
  let [start, length, at] = [0, 0, 0];
  const byte = (): number => {
    if (at < start || at >= start + length) {
      [start, length] = [at, readingSync(path, () => readSync(fd, window, 0, WINDOW_BYTES, at))];
      if (length === 0) throw wrong(path, `offset ${at}: the file ends within a field`);
    }
    return window[at++ - start]!;
  };
  return {
    path,
    size,
    get at() {
      return at;
    },
    varint() {
      let [value, factor] = [0, 1];
      for (let i = 0; i < 10; i++, factor *= 128) {
        const next = byte();
        value += (next & 127) * factor;
        if (next < 128) return value <= Number.MAX_SAFE_INTEGER ? value : Infinity;
      }
      throw wrong(path, `offset ${at}: a number of more than 10 bytes: no ONNX model`);
    },
    text(length) {
      if (length > TEXT_BYTES_MAX) throw wrong(path, `a name of ${length} bytes, expected at most ${TEXT_BYTES_MAX}`);
      return new TextDecoder().decode(Uint8Array.from({ length }, byte));
    },
    skip: (length) => void (at += length),
    close: () => closeSync(fd),
  };
}

const wrong = (path: string, problem: string): AppError => new AppError("bad_file", `${path}: ${problem}`);
