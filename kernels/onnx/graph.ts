/**
 * Builds an ONNX graph node by node. Large constants go to a file beside the graph, because a protobuf ends at 2 GB and
 * a file can be mapped; small ones stay inside.
 */
import type { Attribute, DataType, Dim, Graph, Initializer, Node, ValueInfo } from "./proto.ts";

/** The file beside the graph. */
export interface WeightFile {
  readonly name: string;
  /** Reserves bytes, aligned for any element type; returns their offset. */
  reserve(byteLength: number): number;
  /** False while a graph is only planned: offsets are needed, contents are not. */
  readonly wanted: boolean;
  write(offset: number, bytes: Uint8Array): void;
}

/** The place of a tensor in the file. */
interface External {
  readonly name: string;
  readonly offset: number;
}

/** ai.onnx operators that are used here; all others are ONNX Runtime's own. */
const STANDARD = new Set(
  (
    "Add Clip Concat ConstantOfShape Div Elu Gather GatherElements Gelu LayerNormalization MatMul Mul NonZero ReduceSum Relu Reshape ScatterElements " +
    "ScatterND Shape Sigmoid SimplifiedLayerNormalization Slice Softmax Softplus Split Sub Tanh TopK Transpose"
  ).split(" "),
);

export interface GraphBuilder {
  readonly file: WeightFile;
  /** Adds a node with one output and returns its name. "" stands for an omitted input. */
  node(op: string, inputs: readonly string[], attributes?: Readonly<Record<string, Attribute>>): string;
  /** Adds a node with several outputs; "" for unwanted ones. */
  nodes(
    op: string,
    inputs: readonly string[],
    options: { outputs: readonly string[]; attributes?: Readonly<Record<string, Attribute>> },
  ): void;
  /** A unique name. */
  fresh(stem: string): string;
  input(name: string, type: DataType, shape: readonly Dim[]): string;
  output(name: string, type: DataType, shape: readonly Dim[]): void;
  /** Small constants; equal ones are shared. */
  ints(values: readonly number[], type?: "int64" | "int32", shape?: readonly number[]): string;
  floats(values: Float32Array, shape?: readonly number[]): string;
  /** A constant in the file, to be written through `file.write`. */
  external(type: DataType, shape: readonly number[]): External;
  finish(): Graph;
}

const ELEMENT_BYTES: Readonly<Record<DataType, number>> = { float: 4, uint8: 1, int32: 4, int64: 8 };

export function makeGraph(file: WeightFile): GraphBuilder {
  const nodes: Node[] = [];
  const inputs: ValueInfo[] = [];
  const outputs: ValueInfo[] = [];
  const initializers: Initializer[] = [];
  const shared = new Map<string, string>();
  let count = 0;
  const fresh = (stem: string): string => `${stem}.${count++}`;
  const constant = (type: DataType, shape: readonly number[], data: Uint8Array): string => {
    const key = `${type} ${shape.join(",")} ${data.length <= 64 ? data.toHex() : fresh("")}`;
    const known = shared.get(key);
    if (known) return known;
    const name = fresh("const");
    initializers.push({ name, type, shape, data });
    shared.set(key, name);
    return name;
  };
  const builder: GraphBuilder = {
    file,
    fresh,
    node(op, nodeInputs, attributes = {}) {
      const name = fresh(op);
      builder.nodes(op, nodeInputs, { outputs: [name], attributes });
      return name;
    },
    nodes(op, nodeInputs, { outputs: nodeOutputs, attributes = {} }) {
      const domain = STANDARD.has(op) ? "" : "com.microsoft";
      nodes.push({ op, domain, inputs: nodeInputs, outputs: nodeOutputs, attributes });
    },
    input(name, type, shape) {
      if (!inputs.some((each) => each.name === name)) inputs.push({ name, type, shape });
      return name;
    },
    output(name, type, shape) {
      outputs.push({ name, type, shape });
    },
    ints(values, type = "int64", shape = [values.length]) {
      const data = type === "int64" ? BigInt64Array.from(values, BigInt) : Int32Array.from(values);
      return constant(type, shape, new Uint8Array(data.buffer));
    },
    floats(values, shape = [values.length]) {
      return constant("float", shape, new Uint8Array(values.slice().buffer));
    },
    external(type, shape) {
      const byteLength = shape.reduce((product, dim) => product * dim, ELEMENT_BYTES[type]);
      const offset = file.reserve(byteLength);
      const name = fresh("weight");
      initializers.push({ name, type, shape, data: { external: file.name, offset, byteLength } });
      return { name, offset };
    },
    finish: () => ({ nodes, inputs, outputs, initializers }),
  };
  return builder;
}
