/** A Whisper as a folder of ONNX, laid out as exporters do: an encoder, and a decoder with caches. */
import { writeModel, type Graph, type Initializer, type Node, type ValueInfo } from "../../kernels/onnx/proto.ts";

export interface WhisperSizes {
  readonly dim: number;
  readonly heads: number;
  readonly layers: number;
  readonly ffn: number;
  readonly vocab: number;
  readonly bins: number;
  /** Tokens of a text. */
  readonly positions: number;
}

/** A weight by CTranslate2's name: (rows, columns), a row for each output. */
export type WeightOf = (name: string, shape: readonly number[]) => Float32Array;

const MICROSOFT = "com.microsoft";
const SOUND_POSITIONS = 1500;

interface Builder {
  readonly nodes: Node[];
  readonly initializers: Initializer[];
  node(op: string, inputs: readonly string[], output: string | readonly string[], more?: Partial<Node>): string;
  floats(name: string, shape: readonly number[], values: Float32Array): string;
  ints(name: string, shape: readonly number[], values: readonly number[]): string;
}

function makeBuilder(): Builder {
  const nodes: Node[] = [];
  const initializers: Initializer[] = [];
  return {
    nodes,
    initializers,
    node(op, inputs, output, more = {}) {
      const outputs = [output].flat();
      nodes.push({ op, domain: "", inputs, outputs, attributes: {}, ...more });
      return outputs[0]!;
    },
    floats(name, shape, values) {
      const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
      initializers.push({ name, type: "float", shape, data });
      return name;
    },
    ints(name, shape, values) {
      const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
      initializers.push({ name, type: "int64", shape, data });
      return name;
    },
  };
}

/** Parts that the encoder's and the decoder's layers share. */
function partsOf(builder: Builder, weight: WeightOf, dim: number) {
  const { node, floats } = builder;
  return {
    norm(x: string, name: string): string {
      const [gamma, beta] = ["gamma", "beta"].map((each) =>
        floats(`${name}/${each}`, [dim], weight(`${name}/${each}`, [dim])),
      );
      return node("LayerNormalization", [x, gamma!, beta!], `${name}/out`, { attributes: { axis: -1 } });
    },
    /** @param part index of the rows' part, if the weight holds several matrices, and the number of parts */
    linear(x: string, name: string, size: { from: number; to: number; part?: number; of?: number }): string {
      const { from, to, part = 0, of = 1 } = size;
      const own = `${name}/${part}`;
      const rows = weight(`${name}/weight`, [of * to, from]).subarray(part * to * from, (part + 1) * to * from);
      const bias = weight(`${name}/bias`, [of * to]).slice(part * to, (part + 1) * to);
      const product = node("MatMul", [x, floats(`${own}/w`, [from, to], transposed(rows, to, from))], `${own}/product`);
      return node("Add", [product, floats(`${own}/b`, [to], bias)], `${own}/out`);
    },
  };
}

function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) out[column * rows + row] = values[row * columns + column]!;
  return out;
}

function encoderGraph(sizes: WhisperSizes, weight: WeightOf): Graph {
  const { dim, heads, layers, ffn, bins } = sizes;
  const builder = makeBuilder();
  const { node, floats, nodes, initializers } = builder;
  const { norm, linear } = partsOf(builder, weight, dim);
  let x = "input_features";
  for (const [i, from] of [bins, dim].entries()) {
    const name = `encoder/conv${i + 1}`;
    const w = floats(`${name}/w`, [dim, from, 3], weight(`${name}/weight`, [dim, from, 3]));
    const b = floats(`${name}/b`, [dim], weight(`${name}/bias`, [dim]));
    const attributes = { kernel_shape: [3], pads: [1, 1], strides: [i + 1] };
    x = node("Gelu", [node("Conv", [x, w, b], `${name}/out`, { attributes })], `${name}/gelu`);
  }
  const positionTable = "encoder/position_encodings/encodings";
  const shape = [SOUND_POSITIONS, dim];
  x = node("Transpose", [x], "rows", { attributes: { perm: [0, 2, 1] } });
  x = node("Add", [x, floats(positionTable, shape, weight(positionTable, shape))], "placed");
  for (let i = 0; i < layers; i++) {
    const own = `encoder/layer_${i}`;
    const n = norm(x, `${own}/self_attention/layer_norm`);
    const qkv = [0, 1, 2].map((part) =>
      linear(n, `${own}/self_attention/linear_0`, { from: dim, to: dim, part, of: 3 }),
    );
    const attention = { domain: MICROSOFT, attributes: { num_heads: heads } };
    const attended = node("MultiHeadAttention", qkv, `${own}/attended`, attention);
    x = node("Add", [x, linear(attended, `${own}/self_attention/linear_1`, { from: dim, to: dim })], `${own}/x`);
    x = feedForward(x, own, { node, norm, linear, dim, ffn });
  }
  const states = node("Identity", [norm(x, "encoder/layer_norm")], "last_hidden_state");
  const output: ValueInfo = { name: states, type: "float", shape: ["batch_size", SOUND_POSITIONS, dim] };
  const input: ValueInfo = { name: "input_features", type: "float", shape: ["batch_size", bins, 3000] };
  return { nodes, initializers, inputs: [input], outputs: [output] };
}

type Parts = ReturnType<typeof partsOf> & Pick<Builder, "node"> & { readonly dim: number; readonly ffn: number };

function feedForward(x: string, own: string, { node, norm, linear, dim, ffn }: Parts): string {
  const wide = linear(norm(x, `${own}/ffn/layer_norm`), `${own}/ffn/linear_0`, { from: dim, to: ffn });
  const gelu = node("Gelu", [wide], `${own}/ffn/gelu`);
  return node("Add", [x, linear(gelu, `${own}/ffn/linear_1`, { from: ffn, to: dim })], `${own}/y`);
}

/** One layer of the decoder. @param sound the rows whose keys and values are not in the cache yet */
function decoderLayer(x: string, i: number, parts: Parts & { sound: string; split: string; heads: number }): string {
  const { node, norm, linear, dim, heads, sound, split } = parts;
  const own = `decoder/layer_${i}`;
  const [pastOf, presentOf] = ["past_key_values", "present"].map((name) => `${name}.${i}`);
  const n = norm(x, `${own}/self_attention/layer_norm`);
  const qkv = [0, 1, 2].map((part) => linear(n, `${own}/self_attention/linear_0`, { from: dim, to: dim, part, of: 3 }));
  const said = node(
    "MultiHeadAttention",
    [...qkv, "", "", "", `${pastOf}.decoder.key`, `${pastOf}.decoder.value`],
    [`${own}/said`, `${presentOf}.decoder.key`, `${presentOf}.decoder.value`],
    { domain: MICROSOFT, attributes: { num_heads: heads, unidirectional: 1 } },
  );
  let y = node("Add", [x, linear(said, `${own}/self_attention/linear_1`, { from: dim, to: dim })], `${own}/x`);
  const q = linear(norm(y, `${own}/attention/layer_norm`), `${own}/attention/linear_0`, { from: dim, to: dim });
  const [k, v] = ["key", "value"].map((kind, part) => {
    const rows = linear(sound, `${own}/attention/linear_1`, { from: dim, to: dim, part, of: 2 });
    const inHeads = node("Reshape", [rows, split], `${own}/${kind}/split`);
    const turned = node("Transpose", [inHeads], `${own}/${kind}/heads`, { attributes: { perm: [0, 2, 1, 3] } });
    const both = [`${pastOf}.encoder.${kind}`, turned];
    return node("Concat", both, `${presentOf}.encoder.${kind}`, { attributes: { axis: 2 } });
  });
  const attention = { domain: MICROSOFT, attributes: { num_heads: heads } };
  const crossAttended = node("MultiHeadAttention", [q, k!, v!], `${own}/heard`, attention);
  y = node("Add", [y, linear(crossAttended, `${own}/attention/linear_2`, { from: dim, to: dim })], `${own}/z`);
  return feedForward(y, own, parts);
}

/** Keys and values of the text and of the sound, for each layer. */
function cacheOf(prefix: "past_key_values" | "present", { heads, dim, layers }: WhisperSizes): ValueInfo[] {
  return Array.from({ length: 4 * layers }, (_, at) => {
    const side = at % 4 < 2 ? "decoder" : "encoder";
    const name = `${prefix}.${at >> 2}.${side}.${at % 2 === 0 ? "key" : "value"}`;
    const length = prefix === "present" ? `${side}_sequence_length_out` : `past_${side}_sequence_length`;
    return { name, type: "float", shape: ["batch_size", heads, length, dim / heads] };
  });
}

function decoderGraph(sizes: WhisperSizes, weight: WeightOf): Graph {
  const { dim, heads, layers, ffn, vocab, positions } = sizes;
  const builder = makeBuilder();
  const { node, floats, ints, nodes, initializers } = builder;
  const { norm, linear } = partsOf(builder, weight, dim);
  const [zero, one, two] = [0, 1, 2].map((value) => ints(`int${value}`, [1], [value]));
  const lengthOf = (cache: string, name: string): string =>
    node("Gather", [node("Shape", [cache], `${name}/shape`), two!], name);
  const past = lengthOf("past_key_values.0.decoder.key", "past");
  const now = node("Gather", [node("Shape", ["input_ids"], "ids/shape"), one!], "now");
  const words = floats("words", [vocab, dim], weight("decoder/embeddings/weight", [vocab, dim]));
  const positionTable = "decoder/position_encodings/encodings";
  const table = floats(positionTable, [positions, dim], weight(positionTable, [positions, dim]));
  const place = node("Slice", [table, past, node("Add", [past, now], "end"), zero!], "place");
  let x = node("Add", [node("Gather", [words, "input_ids"], "embedded"), place], "placed");
  // the first run computes the keys and values of the sound; later ones find them in the cache
  const isFirst = node(
    "Cast",
    [node("Equal", [lengthOf("past_key_values.0.encoder.key", "known"), zero!], "isFirst")],
    "first",
    { attributes: { to: 7 } },
  );
  const count = node("Mul", [isFirst, ints("all", [1], [SOUND_POSITIONS])], "count");
  const sound = node("Slice", ["encoder_hidden_states", zero!, count, one!], "sound");
  const split = ints("split", [4], [0, 0, heads, dim / heads]);
  const parts = { node, norm, linear, dim, ffn, heads, sound, split };
  for (let i = 0; i < layers; i++) x = decoderLayer(x, i, parts);
  const flat = node("Reshape", [norm(x, "decoder/layer_norm"), ints("flat", [2], [-1, dim])], "states");
  const product = node("Gemm", [flat, words], "product", { attributes: { transB: 1 } });
  node("Unsqueeze", [product, zero!], "logits");
  return {
    nodes,
    initializers,
    inputs: [
      { name: "input_ids", type: "int64", shape: ["batch_size", "decoder_sequence_length"] },
      { name: "encoder_hidden_states", type: "float", shape: ["batch_size", SOUND_POSITIONS, dim] },
      ...cacheOf("past_key_values", sizes),
    ],
    outputs: [
      { name: "logits", type: "float", shape: ["batch_size", "decoder_sequence_length", vocab] },
      ...cacheOf("present", sizes),
    ],
  };
}

/** `config.json` */
export function configOf(sizes: WhisperSizes, more: object): Uint8Array {
  const { dim, heads, layers, ffn, vocab, bins, positions } = sizes;
  const config = {
    architectures: ["WhisperForConditionalGeneration"],
    model_type: "whisper",
    is_encoder_decoder: true,
    d_model: dim,
    encoder_layers: layers,
    decoder_layers: layers,
    num_hidden_layers: layers,
    encoder_attention_heads: heads,
    decoder_attention_heads: heads,
    encoder_ffn_dim: ffn,
    decoder_ffn_dim: ffn,
    vocab_size: vocab,
    num_mel_bins: bins,
    max_source_positions: SOUND_POSITIONS,
    max_target_positions: positions,
    ...more,
  };
  return new TextEncoder().encode(JSON.stringify(config));
}

/** The files of the folder, without the tokenizer's. */
export function whisperFiles(sizes: WhisperSizes, weight: WeightOf, more: object = {}): Record<string, Uint8Array> {
  return {
    "config.json": configOf(sizes, more),
    "onnx/encoder_model.onnx": writeModel(encoderGraph(sizes, weight)),
    "onnx/decoder_model_merged.onnx": writeModel(decoderGraph(sizes, weight)),
  };
}
