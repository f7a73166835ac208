/**
 * Writes the part of ONNX's protobuf that a graph needs: ModelProto and everything below it. Field numbers:
 * onnx/onnx.proto (IR version 10). Wire format: protobuf encoding, varint and length-delimited fields only.
 */

/** `TensorProto.DataType`, onnx.proto. */
const DATA_TYPE = { float: 1, uint8: 2, int32: 6, int64: 7 } as const;
export type DataType = keyof typeof DATA_TYPE;

/** A dimension: a size, or a name for one that is only known when the graph runs. */
export type Dim = number | string;

/** A number is an integer attribute; a fraction must say `{ float }`, since 1.0 and 1 look alike here. */
export type Attribute = number | string | { readonly float: number } | readonly number[];

export interface Node {
  readonly op: string;
  /** "" for ai.onnx, or "com.microsoft". */
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface ValueInfo {
  readonly name: string;
  readonly type: DataType;
  readonly shape: readonly Dim[];
}

/** A constant. Its bytes are in the model, or at `offset` of the file `external` beside it. */
export interface Initializer {
  readonly name: string;
  readonly type: DataType;
  readonly shape: readonly number[];
  readonly data: Uint8Array | { readonly external: string; readonly offset: number; readonly byteLength: number };
}

export interface Graph {
  readonly nodes: readonly Node[];
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  readonly initializers: readonly Initializer[];
}

const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, ints: 7 }; // AttributeProto.AttributeType
const DATA_LOCATION_EXTERNAL = 1; // TensorProto.DataLocation

/** Serializes a whole model: ai.onnx opset 21 and com.microsoft 1. */
export function writeModel(graph: Graph): Uint8Array {
  const model = new Writer();
  model.int(1, 10); // ir_version
  model.text(2, "hearth"); // producer_name
  model.message(7, writeGraph(graph));
  model.message(8, opset("", 21));
  model.message(8, opset("com.microsoft", 1));
  return model.finish();
}

function opset(domain: string, version: number): Uint8Array {
  const out = new Writer();
  out.text(1, domain);
  out.int(2, version);
  return out.finish();
}

function writeGraph(graph: Graph): Uint8Array {
  const out = new Writer();
  for (const node of graph.nodes) out.message(1, writeNode(node));
  out.text(2, "hearth");
  for (const initializer of graph.initializers) out.message(5, writeInitializer(initializer));
  for (const input of graph.inputs) out.message(11, writeValueInfo(input));
  for (const output of graph.outputs) out.message(12, writeValueInfo(output));
  return out.finish();
}

function writeNode(node: Node): Uint8Array {
  const out = new Writer();
  for (const input of node.inputs) out.text(1, input);
  for (const output of node.outputs) out.text(2, output);
  out.text(3, node.outputs[0] ?? ""); // name: outputs are unique, so node names are too
  out.text(4, node.op);
  for (const [name, value] of Object.entries(node.attributes)) out.message(5, writeAttribute(name, value));
  out.text(7, node.domain);
  return out.finish();
}

function writeAttribute(name: string, value: Attribute): Uint8Array {
  const out = new Writer();
  out.text(1, name);
  if (typeof value === "number") {
    out.int(3, value);
    out.int(20, ATTRIBUTE_TYPE.int);
  } else if (typeof value === "string") {
    out.text(4, value);
    out.int(20, ATTRIBUTE_TYPE.string);
  } else if ("float" in value) {
    out.float(2, value.float);
    out.int(20, ATTRIBUTE_TYPE.float);
  } else {
    for (const each of value) out.int(8, each);
    out.int(20, ATTRIBUTE_TYPE.ints);
  }
  return out.finish();
}

function writeValueInfo(info: ValueInfo): Uint8Array {
  const shape = new Writer();
  for (const dim of info.shape) {
    const each = new Writer();
    if (typeof dim === "number") each.int(1, dim);
    else each.text(2, dim);
    shape.message(1, each.finish());
  }
  const tensor = new Writer();
  tensor.int(1, DATA_TYPE[info.type]);
  tensor.message(2, shape.finish());
  const type = new Writer();
  type.message(1, tensor.finish());
  const out = new Writer();
  out.text(1, info.name);
  out.message(2, type.finish());
  return out.finish();
}

function writeInitializer(initializer: Initializer): Uint8Array {
  const { data } = initializer;
  const out = new Writer();
  for (const dim of initializer.shape) out.int(1, dim);
  out.int(2, DATA_TYPE[initializer.type]);
  out.text(8, initializer.name);
  if (data instanceof Uint8Array) {
    out.message(9, data); // raw_data
    return out.finish();
  }
  const entries = { location: data.external, offset: String(data.offset), length: String(data.byteLength) };
  for (const [key, value] of Object.entries(entries)) {
    const entry = new Writer();
    entry.text(1, key);
    entry.text(2, value);
    out.message(13, entry.finish());
  }
  out.int(14, DATA_LOCATION_EXTERNAL);
  return out.finish();
}

const encoder = new TextEncoder();
const MESSAGE_BYTES_MAX = 2 ** 31 - 1; // protobuf's own limit; weights are external, so a graph stays far below it

/** Appends protobuf fields to a growing buffer. */
class Writer {
  #bytes = new Uint8Array(64);
  #length = 0;

  int(field: number, value: number): void {
    this.#varint(field * 8);
    this.#varint(value);
  }

  float(field: number, value: number): void {
    this.#varint(field * 8 + 5);
    this.#append(new Uint8Array(Float32Array.of(value).buffer));
  }

  text(field: number, value: string): void {
    this.message(field, encoder.encode(value));
  }

  message(field: number, value: Uint8Array): void {
    this.#varint(field * 8 + 2);
    this.#varint(value.length);
    this.#append(value);
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Two's complement in 64 bits, so negative integers take ten bytes. */
  #varint(value: number): void {
    let rest = value < 0 ? BigInt.asUintN(64, BigInt(value)) : BigInt(value);
    this.#reserve(10);
    while (rest >= 128n) {
      this.#bytes[this.#length++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.#bytes[this.#length++] = Number(rest);
  }

  #append(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  #reserve(extra: number): void {
    const needed = this.#length + extra;
    if (needed <= this.#bytes.length) return;
    if (needed > MESSAGE_BYTES_MAX)
      throw new RangeError(`ONNX graph of ${needed} bytes: protobuf ends at ${MESSAGE_BYTES_MAX}`);
    const grown = new Uint8Array(Math.min(MESSAGE_BYTES_MAX, Math.max(needed, this.#bytes.length * 2)));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
