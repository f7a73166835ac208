/**
 * Folders of ONNX as exporters lay them out, small and with random weights: a Llama with a cache of keys and values,
 * and an encoder that reads whole texts.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writeModel, type Graph, type Initializer, type Node } from "../../../kernels/onnx/proto.ts";
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { Metadata } from "../../../src/engine/formats/gguf/gguf.ts";
import { wpmMetadata } from "../../engine/text/tokenizer/fixtures.ts";
import { byteLevelJson, piecesOf, wordPieceJson } from "./tokenizer-files.ts";

export type FolderFiles = Readonly<Record<string, object>>;

const [DIM, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN] = [64, 2, 4, 2, 16, 48];
/** Number of positions with a known rotation. */
const CTX_LEN = 256;
const MICROSOFT = "com.microsoft";

type Values = Float32Array<ArrayBuffer>;

/** Nodes and weights of a graph under construction. */
function makeGraph(seed: number) {
  const rng = makeRng(seed);
  const nodes: Node[] = [];
  const initializers: Initializer[] = [];
  const constant = (name: string, shape: readonly number[], values: Values): string => {
    initializers.push({ name, type: "float", shape, data: new Uint8Array(values.buffer) });
    return name;
  };
  return {
    nodes,
    initializers,
    constant,
    integer(name: string, shape: readonly number[], values: readonly number[]): string {
      const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
      initializers.push({ name, type: "int64", shape, data });
      return name;
    },
    weight(name: string, shape: readonly number[]): string {
      const count = shape.reduce((product, size) => product * size, 1);
      return constant(
        name,
        shape,
        Float32Array.from({ length: count }, () => (rng.float() - 0.5) * 0.6),
      );
    },
    node(op: string, inputs: readonly string[], outputs: readonly string[] | string, more: Partial<Node> = {}): string {
      const all = [outputs].flat();
      nodes.push({ op, domain: "", inputs, outputs: all, attributes: {}, ...more });
      return all[0]!;
    },
  };
}

/** Weights in a separate file, as exporters do from 2 GB on. */
function external(graph: Graph, file: string): { graph: Graph; data: Uint8Array } {
  let offset = 0;
  const parts: Uint8Array[] = [];
  const initializers = graph.initializers.map((each) => {
    if (!(each.data instanceof Uint8Array) || each.shape.length < 2) return each;
    parts.push(each.data);
    const byteLength = each.data.length;
    offset += byteLength;
    return { ...each, data: { external: file, offset: offset - byteLength, byteLength } };
  });
  return { graph: { ...graph, initializers }, data: Buffer.concat(parts) };
}

function llamaGraph(vocabSize: number, seed: number): Graph {
  const graph = makeGraph(seed);
  const { node, weight, constant, integer } = graph;
  const angles = Array.from({ length: CTX_LEN * (HEAD_DIM / 2) }, (_, i) => {
    const [position, pair] = [Math.floor(i / (HEAD_DIM / 2)), i % (HEAD_DIM / 2)];
    return position * 10_000 ** (-pair / (HEAD_DIM / 2));
  });
  const [cos, sin] = (["cos", "sin"] as const).map((name) =>
    constant(name, [CTX_LEN, HEAD_DIM / 2], Float32Array.from(angles, Math[name])),
  );
  const norm = (x: string, name: string): string => {
    const ones = constant(`${name}.weight`, [DIM], new Float32Array(DIM).fill(1));
    const attributes = { axis: -1, epsilon: { float: 1e-6 } };
    return node("SimplifiedLayerNormalization", [x, ones], name, { attributes });
  };
  const linear = (x: string, name: string, [from, to]: readonly [number, number]): string =>
    node("MatMul", [x, weight(`${name}.weight`, [from, to])], name);
  const sum = node("ReduceSum", ["attention_mask", integer("axis1", [1], [1])], "sum", { attributes: { keepdims: 0 } });
  const last = node("Sub", [sum, integer("one", [], [1])], "last");
  const seqlens = node("Cast", [last], "seqlens", { attributes: { to: 6 } });
  const shape = node("Shape", ["attention_mask"], "shape");
  const total = node("Cast", [node("Gather", [shape, "one"], "length")], "total", { attributes: { to: 6 } });
  let x = node("Gather", [weight("embed", [vocabSize, DIM]), "input_ids"], "embedded");
  for (let i = 0; i < LAYERS; i++) {
    const own = (name: string): string => `${i}.${name}`;
    const n = norm(x, own("norm"));
    const q = linear(n, own("q"), [DIM, HEADS * HEAD_DIM]);
    const [k, v] = [own("k"), own("v")].map((name) => linear(n, name, [DIM, KV_HEADS * HEAD_DIM]));
    const past = [`past_key_values.${i}.key`, `past_key_values.${i}.value`];
    const attended = node(
      "GroupQueryAttention",
      [q, k!, v!, ...past, seqlens, total, cos!, sin!],
      [own("attended"), `present.${i}.key`, `present.${i}.value`],
      { domain: MICROSOFT, attributes: { num_heads: HEADS, kv_num_heads: KV_HEADS, do_rotary: 1 } },
    );
    x = node("Add", [x, linear(attended, own("o"), [DIM, DIM])], own("x"));
    const m = norm(x, own("norm2"));
    const gate = linear(m, own("gate"), [DIM, FFN]);
    const silu = node("Mul", [gate, node("Sigmoid", [gate], own("sigmoid"))], own("silu"));
    const inner = node("Mul", [silu, linear(m, own("up"), [DIM, FFN])], own("inner"));
    x = node("Add", [x, linear(inner, own("down"), [FFN, DIM])], own("y"));
  }
  linear(norm(x, "norm"), "logits", [DIM, vocabSize]);
  const cache = (prefix: string, length: string) =>
    Array.from({ length: 2 * LAYERS }, (_, i) => ({
      name: `${prefix}.${i >> 1}.${i % 2 === 0 ? "key" : "value"}`,
      type: "float" as const,
      shape: ["batch_size", KV_HEADS, length, HEAD_DIM],
    }));
  return {
    ...graph,
    inputs: [
      { name: "input_ids", type: "int64", shape: ["batch_size", "sequence_length"] },
      { name: "attention_mask", type: "int64", shape: ["batch_size", "total_sequence_length"] },
      ...cache("past_key_values", "past_sequence_length"),
    ],
    outputs: [
      { name: "logits", type: "float", shape: ["batch_size", "sequence_length", vocabSize] },
      ...cache("present", "total_sequence_length"),
    ],
  };
}

/** Each row depends on itself, its kind, and earlier rows. */
function encoderGraph(vocabSize: number, seed: number): Graph {
  const graph = makeGraph(seed);
  const { node, weight, integer } = graph;
  const words = node("Gather", [weight("words", [vocabSize, DIM]), "input_ids"], "embedded");
  const kinds = node("Gather", [weight("kinds", [2, DIM]), "token_type_ids"], "kinds_of");
  const x = node("Add", [words, kinds], "x");
  const before = node("CumSum", [x, integer("axis", [], [1])], "before");
  const mixed = node("MatMul", [before, weight("mix", [DIM, DIM])], "mixed");
  node("Tanh", [node("Add", [mixed, x], "y")], "last_hidden_state");
  const ids = ["input_ids", "attention_mask", "token_type_ids"];
  return {
    ...graph,
    inputs: ids.map((name) => ({ name, type: "int64", shape: ["batch_size", "sequence_length"] })),
    outputs: [{ name: "last_hidden_state", type: "float", shape: ["batch_size", "sequence_length", DIM] }],
  };
}

interface FolderOptions {
  readonly seed?: number;
  /** True if the graph's weights are in a file beside it. */
  readonly isExternal?: boolean;
}

/** A Llama with the vocabulary and the template of a GGUF. */
export function llamaFolder(metadata: Metadata, { seed = 1, isExternal = false }: FolderOptions = {}): FolderFiles {
  const pieces = piecesOf(metadata);
  const at = (key: string): string => pieces[Number(metadata.get(`tokenizer.ggml.${key}_token_id`))]!;
  const graph = llamaGraph(pieces.length, seed);
  const apart = external(graph, "model.onnx_data");
  return {
    "config.json": {
      architectures: ["LlamaForCausalLM"],
      model_type: "llama",
      hidden_size: DIM,
      num_hidden_layers: LAYERS,
      num_attention_heads: HEADS,
      num_key_value_heads: KV_HEADS,
      head_dim: HEAD_DIM,
      intermediate_size: FFN,
      max_position_embeddings: CTX_LEN,
      vocab_size: pieces.length,
      eos_token_id: Number(metadata.get("tokenizer.ggml.eos_token_id")),
    },
    "generation_config.json": { eos_token_id: Number(metadata.get("tokenizer.ggml.eos_token_id")) },
    "tokenizer.json": { ...byteLevelJson(metadata, { pairs: true }), post_processor: { type: "ByteLevel" } },
    "tokenizer_config.json": {
      tokenizer_class: "PreTrainedTokenizerFast",
      bos_token: at("bos"),
      eos_token: at("eos"),
      add_bos_token: false,
      chat_template: String(metadata.get("tokenizer.chat_template")),
    },
    ...(isExternal
      ? { "onnx/model.onnx": writeModel(apart.graph), "onnx/model.onnx_data": apart.data }
      : { "onnx/model.onnx": writeModel(graph) }),
  };
}

/** An encoder of lower-case letters, pooled by the mean. */
export function encoderFolder(): FolderFiles {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const metadata = wpmMetadata([...letters].flatMap((letter) => [`▁${letter}`, letter]));
  const tokenizer = wordPieceJson(metadata) as { model: { vocab: Record<string, number> } };
  const special = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  const [cls, sep] = ["[CLS]", "[SEP]"].map((token) => ({
    id: token,
    ids: [tokenizer.model.vocab[token]],
    tokens: [token],
  }));
  const single = [special("[CLS]"), { Sequence: { id: "A", type_id: 0 } }, special("[SEP]")];
  return {
    "config.json": {
      architectures: ["BertModel"],
      model_type: "bert",
      hidden_size: DIM,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      intermediate_size: FFN,
      max_position_embeddings: 64,
      vocab_size: piecesOf(metadata).length,
    },
    "tokenizer.json": {
      ...tokenizer,
      decoder: { type: "WordPiece", prefix: "##", cleanup: true },
      post_processor: {
        type: "TemplateProcessing",
        single,
        pair: single,
        special_tokens: { "[CLS]": cls, "[SEP]": sep },
      },
    },
    "tokenizer_config.json": {
      tokenizer_class: "BertTokenizer",
      cls_token: "[CLS]",
      sep_token: "[SEP]",
      unk_token: "[UNK]",
      pad_token: "[PAD]",
    },
    "onnx/model.onnx": writeModel(encoderGraph(piecesOf(metadata).length, 7)),
  };
}

export const bytesOf = (content: object): Uint8Array =>
  content instanceof Uint8Array ? content : new TextEncoder().encode(JSON.stringify(content));

/** The folder on this machine's disk. */
export async function writeFiles(path: string, files: FolderFiles): Promise<string> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), bytesOf(content));
  }
  return path;
}
