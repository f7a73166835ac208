/** ONNX folders as GGUFs that describe them, and invalid folders. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeModel, type Graph, type Initializer } from "../../../kernels/onnx/proto.ts";
import { messageOf } from "../../../src/base/errors.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { listFolder } from "../../../src/library/convert/folder.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { encoderFolder, writeFiles, type FolderFiles } from "./onnx-folder.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-onnx-folder-"))));
afterAll(() => rm(root, { recursive: true }));

async function convert(files: FolderFiles) {
  const path = await writeFiles(join(root, crypto.randomUUID()), files);
  const names = await listFolder(path);
  const to = `${path}.gguf`;
  const folder = { label: "folder", files: new Map(names.map((name) => [name, join(path, name)])) };
  const { files: kept = [] } = await convertModel({ folder, to });
  return { gguf: openGguf(to), kept: kept.map(({ name }) => name) };
}

const problem = async (files: FolderFiles): Promise<string> =>
  convert(files).then(
    ({ gguf }) => {
      gguf.close();
      return "none";
    },
    (error: unknown) => messageOf(error),
  );

const ENCODER = encoderFolder();
const CONFIG = ENCODER["config.json"] as Record<string, unknown>;
const { "onnx/model.onnx": MODEL, ...REST } = ENCODER;

/** A graph of these inputs and outputs, which nothing runs. */
function graph(
  inputs: readonly string[],
  outputs: readonly string[],
  weights: readonly Initializer[] = [],
): Uint8Array {
  const info = (name: string) => ({ name, type: "float" as const, shape: [1] });
  const made: Graph = { nodes: [], inputs: inputs.map(info), outputs: outputs.map(info), initializers: weights };
  return writeModel(made);
}

const beside = (external: string): Initializer => ({
  name: "w",
  type: "float",
  shape: [2, 2],
  data: { external, offset: 0, byteLength: 16 },
});

describe("an ONNX folder", () => {
  test("is described by its configuration and its graph, with its vocabulary", async () => {
    const { gguf, kept } = await convert({ ...ENCODER, "README.md": {}, "onnx/other.json": {} });
    const { metadata } = gguf;
    expect(gguf.tensors.size).toBe(0);
    expect(metadata.get("general.architecture")).toBe("onnx");
    expect(metadata.get("onnx.model_type")).toBe("bert");
    expect(metadata.get("onnx.pooling_type")).toBe(1);
    expect(metadata.get("onnx.embedding_length")).toBe(64);
    expect(metadata.get("tokenizer.ggml.tokens")).toHaveLength(Number(CONFIG["vocab_size"]));
    expect(kept).toEqual(["onnx/model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json"]);
    gguf.close();
  });

  test("gives its graph with the most bits, and its pooling follows its file", async () => {
    const pooling = { pooling_mode_cls_token: true, pooling_mode_mean_tokens: false };
    const several = { "onnx/model_q4.onnx": MODEL!, "onnx/model_fp16.onnx": MODEL!, "1_Pooling/config.json": pooling };
    const { gguf, kept } = await convert({ ...REST, ...several });
    expect(kept[0]).toBe("onnx/model_fp16.onnx");
    expect(kept).toContain("1_Pooling/config.json");
    expect(gguf.metadata.get("onnx.weights")).toBe("F16");
    expect(gguf.metadata.get("onnx.pooling_type")).toBe(2);
    gguf.close();
  });

  test("is refused if a required file is missing, by the name of the file", async () => {
    const { "config.json": _, ...noConfig } = ENCODER;
    expect(await problem(noConfig)).toBe("folder: expected a file 'config.json', got none");
    const { "tokenizer.json": __, ...noTokenizer } = ENCODER;
    expect(await problem(noTokenizer)).toBe("folder: expected 'tokenizer.json' or 'tokenizer.model', got neither");
    expect(await problem({ ...REST, "onnx/vision_encoder.onnx": MODEL! })).toBe(
      `folder: expected 'onnx/model.onnx', or with one of the endings _fp16, _quantized, _int8, _uint8, _q8, _q4, ` +
        `_bnb4, _q4f16, got ["onnx/vision_encoder.onnx"]`,
    );
    const data = graph(["input_ids"], ["last_hidden_state"], [beside("model.onnx_data")]);
    expect(await problem({ ...REST, "onnx/model.onnx": data })).toBe(
      "folder: expected a file 'onnx/model.onnx_data', got none",
    );
  });

  test.each(["../config.json", "/etc/passwd", "..\\x", "C:\\x", "a/../../b", "./x", ""])(
    "is refused if its weights are at '%s'",
    async (name) => {
      const hostile = graph(["input_ids"], ["last_hidden_state"], [beside(name)]);
      expect(await problem({ ...REST, "onnx/model.onnx": hostile })).toBe(
        `folder: 'onnx/model.onnx': expected names of files beside it, got ${JSON.stringify(name)}`,
      );
    },
  );

  test("is refused for an unsupported graph, by its inputs and outputs", async () => {
    const of = (inputs: string[], outputs: string[]) => problem({ ...REST, "onnx/model.onnx": graph(inputs, outputs) });
    const expected = "an output 'logits' and inputs 'past_key_values.…', or an output 'last_hidden_state'";
    expect(await of(["input_ids"], ["logits"])).toBe(
      `folder: 'onnx/model.onnx': expected ${expected}, got outputs ["logits"]`,
    );
    expect(await of(["input_ids", "past_conv.0"], ["logits"])).toBe(
      "folder: 'onnx/model.onnx': expected a cache of only keys and values, got an input 'past_conv.0'",
    );
    expect(await problem({ ...REST, "onnx/model.onnx": new TextEncoder().encode("<html>") })).toStartWith(
      "folder: 'onnx/model.onnx': offset",
    );
  });

  test.each([
    [{ vocab_size: 2 ** 30 }, "folder: embedding: expected at most 1048576 rows, got 1073741824"],
    [{ vocab_size: -1 }, "folder: 'config.json': 'vocab_size': expected a whole number of 1 … 2147483647, got -1"],
    [{ vocab_size: 3 }, "folder: tokenizer: expected at most 3 tokens, one for each row of the embedding, got 56"],
    [{ model_type: 7 }, "folder: 'config.json': 'model_type': expected text, got 7"],
  ])("is refused with %j in its configuration", async (change, message) => {
    expect(await problem({ ...ENCODER, "config.json": { ...CONFIG, ...change } })).toBe(message);
  });
});
