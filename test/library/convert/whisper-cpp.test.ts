/** Files of whisper.cpp: the weights and the vocabulary of the authors' folder, and files that are hostile. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppError } from "../../../src/base/errors.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { f16 } from "../../../src/engine/formats/quant/f16.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { q5_0 } from "../../../src/engine/formats/quant/q5_0.ts";
import { bytesOfCharacters } from "../../../src/engine/text/tokenizer/byte-alphabet.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { WHISPER_CPP } from "../../../src/library/convert/folder.ts";
import { blobsIn, fields, makeWorkplace, statusesOf } from "../creating.ts";
import { byteTokenizer, encodeSafetensors, pack, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { readOriginals } from "./originals.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-whisper-cpp-"))));
const opened: ReturnType<typeof openGguf>[] = [];
afterAll(async () => {
  for (const gguf of opened) gguf.close();
  await rm(root, { recursive: true });
});

function open(path: string): ReturnType<typeof openGguf> {
  const gguf = openGguf(path);
  opened.push(gguf);
  return gguf;
}

const [DIM, VOCAB, BINS] = [32, 320, 80];
const SIZES = { vocab: VOCAB, sound: 1500, dim: DIM, heads: 2, encoder: 2, text: 448, decoderHeads: 4, decoder: 3 };

/** Names in transformers, and in the files that whisper.cpp's own converter writes. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^model\./, ""],
  [/\.layers\./, ".blocks."],
  [/encoder_attn\.(\w)/, "cross_attn.$1"],
  [/self_attn\.(\w)/, "attn.$1"],
  [/\.q_proj/, ".query"],
  [/\.k_proj/, ".key"],
  [/\.v_proj/, ".value"],
  [/\.out_proj/, ".out"],
  [/encoder_attn_layer_norm/, "cross_attn_ln"],
  [/self_attn_layer_norm/, "attn_ln"],
  [/final_layer_norm/, "mlp_ln"],
  [/\.fc1/, ".mlp.0"],
  [/\.fc2/, ".mlp.2"],
  [/encoder\.layer_norm/, "encoder.ln_post"],
  [/decoder\.layer_norm/, "decoder.ln"],
  [/embed_positions\.weight/, "positional_embedding"],
  [/embed_tokens/, "token_embedding"],
];

interface FileTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: number;
  readonly data: Uint8Array;
}

const i32 = (...values: readonly number[]): Uint8Array => new Uint8Array(Int32Array.from(values).buffer);

interface FileParts {
  readonly sizes?: Partial<typeof SIZES>;
  readonly tokens?: readonly Uint8Array[];
  readonly tensors: readonly FileTensor[];
  readonly type?: number;
  readonly rows?: number;
}

function encode({ sizes: own, tokens = BYTES, tensors, type = 1, rows = BINS }: FileParts): Uint8Array {
  const { vocab, sound, dim, heads, encoder, text, decoderHeads, decoder } = { ...SIZES, ...own };
  const header = i32(0x67_67_6d_6c, vocab, sound, dim, heads, encoder, text, dim, decoderHeads, decoder, BINS, type);
  const filters = [i32(rows, 3), new Uint8Array(rows * 3 * 4)];
  const words = tokens.flatMap((token) => [i32(token.length), token]);
  const weights = tensors.flatMap(({ name, shape, type: of, data }) => {
    const text = new TextEncoder().encode(name);
    return [i32(shape.length, text.length, of), i32(...shape.toReversed()), text, data];
  });
  return Buffer.concat([header, ...filters, i32(tokens.length), ...words, ...weights]);
}

/** The bytes, in the order of their characters in GPT-2's alphabet. */
const BYTES = [...bytesOfCharacters().values()].map((byte) => Uint8Array.of(byte));

async function plainTensors(): Promise<Record<string, PlainTensor>> {
  const { tensors } = (await readOriginals())["Whisper"]!;
  const made = Object.entries(tensors).map(([name, [given]], i): [string, PlainTensor] => {
    const shape = given.map((length) => (length === 64 || length === 48 ? 4 * DIM : length));
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, j) => Math.sin(i + j * j));
    const isMatrix = shape.length > 1 && !name.includes("embed_positions");
    return [name, { dtype: isMatrix ? "F16" : "F32", shape, data: pack(values, isMatrix ? f16 : f32) }];
  });
  return Object.fromEntries(made);
}

const fileTensors = (tensors: Readonly<Record<string, PlainTensor>>): FileTensor[] =>
  Object.entries(tensors).map(([given, { dtype, shape, data }]) => {
    const name = NAMES.reduce((text, [from, to]) => text.replace(from, to), given);
    const isConvolution = /conv\d\.bias$/.test(name); // whisper.cpp adds them to rows of a value
    return { name, shape: isConvolution ? [...shape, 1] : shape, type: dtype === "F16" ? 1 : 0, data };
  });

async function convert(bytes: Uint8Array, name: string = crypto.randomUUID()) {
  const from = join(root, `${name}.bin`);
  const to = join(root, `${name}.gguf`);
  await Bun.write(from, bytes);
  await convertModel({ folder: { label: "ggml-tiny.bin", files: new Map([[WHISPER_CPP, from]]) }, to });
  return open(to);
}

const contents = (gguf: ReturnType<typeof openGguf>) =>
  [...gguf.tensors.values()]
    .map(({ name, shape, quant }) => [name, shape, quant.name, Bun.hash(gguf.read(name))])
    .sort();

test("a whisper.cpp file has the tensors and sizes of the GGUF made from the authors' folder", async () => {
  const tensors = await plainTensors();
  const { config } = (await readOriginals())["Whisper"]!;
  const folder = await writeFolder(join(root, "folder"), {
    "config.json": { ...config, encoder_ffn_dim: 4 * DIM, decoder_ffn_dim: 4 * DIM },
    "tokenizer.json": byteTokenizer(makeModel("llama").metadata),
    "model.safetensors": encodeSafetensors(tensors),
  });
  const to = join(root, "folder.gguf");
  await convertModel({ folder, to });
  const whole = open(to);
  const own = await convert(encode({ tensors: fileTensors(tensors) }));
  expect(contents(own)).toEqual(contents(whole));
  const sizesOf = ({ metadata }: typeof whole): unknown[] =>
    [...metadata].filter(([key]) => key.startsWith("whisper.") && !key.includes("suppress"));
  expect(sizesOf(own)).toEqual(sizesOf(whole));
  expect(own.metadata.get("general.name")).toBe("ggml-tiny");
});

test("quantized weights keep their bytes", async () => {
  const tensors = fileTensors(await plainTensors());
  const at = tensors.findIndex(({ name }) => name === "decoder.blocks.1.mlp.2.weight");
  const data = crypto.getRandomValues(new Uint8Array(((4 * DIM * DIM) / q5_0.blockLen) * q5_0.blockBytes));
  tensors[at] = { ...tensors[at]!, type: q5_0.ggmlType, data };
  const gguf = await convert(encode({ tensors, type: 2008 }));
  expect(gguf.tensors.get("blk.1.ffn_down.weight")!.quant.name).toBe("q5_0");
  expect(gguf.read("blk.1.ffn_down.weight")).toEqual(data);
  expect(gguf.metadata.get("general.file_type")).toBe(8);
});

describe("the vocabulary", () => {
  const text = (token: string): Uint8Array => new TextEncoder().encode(token);
  const tokens = [...BYTES, ...[" t", "he", " the", " -", "--", "♪", "♪♪"].map(text)];

  const converted = async (vocab: number) => {
    const tensors = fileTensors(await plainTensors()).map((tensor) =>
      tensor.name === "decoder.token_embedding.weight"
        ? { ...tensor, shape: [vocab, DIM], data: new Uint8Array(vocab * DIM * 2) }
        : tensor,
    );
    const gguf = await convert(encode({ sizes: { vocab }, tokens, tensors }));
    return gguf.metadata;
  };

  test("has merges by rank, and suppresses marks that are not spoken", async () => {
    const metadata = await converted(51_865);
    expect(metadata.get("tokenizer.ggml.merges")).toEqual(["Ġ t", "h e", "Ġt he", "Ġ -", "- -"]);
    const suppressed = [...(metadata.get("whisper.suppress_tokens") as Int32Array)];
    const pieces = metadata.get("tokenizer.ggml.tokens") as string[];
    expect(suppressed.map((id) => pieces[id])).toEqual(expect.arrayContaining(["#", "(", "Ġ-", "--"]));
    expect(suppressed.map((id) => pieces[id])).not.toContain("-");
    expect([...(metadata.get("whisper.begin_suppress_tokens") as Int32Array)].map((id) => pieces[id])).toEqual([
      "Ġ",
      "<|endoftext|>",
    ]);
  });

  test.each([
    [51_864, { "<|endoftext|>": 50_256, "<|en|>": 50_258, "<|su|>": 50_356, "<|notimestamps|>": 50_362 }],
    [51_865, { "<|endoftext|>": 50_257, "<|en|>": 50_259, "<|su|>": 50_357, "<|notimestamps|>": 50_363 }],
    [51_866, { "<|endoftext|>": 50_257, "<|yue|>": 50_358, "<|translate|>": 50_359, "<|notimestamps|>": 50_364 }],
  ])("of %d tokens has the control tokens of its size", async (vocab, expected) => {
    const metadata = await converted(vocab);
    const pieces = metadata.get("tokenizer.ggml.tokens") as string[];
    expect(pieces).toHaveLength(vocab);
    expect(Object.fromEntries(Object.keys(expected).map((piece) => [piece, pieces.indexOf(piece)]))).toEqual(expected);
    expect(metadata.get("tokenizer.ggml.eos_token_id")).toBe(expected["<|endoftext|>"]);
  });
});

describe("a hostile file is refused:", () => {
  const refusal = async (bytes: Uint8Array): Promise<string> =>
    convert(bytes).then(
      () => "converted",
      ({ code, message }: AppError) => `${code}: ${message}`,
    );

  test("one that ends anywhere", async () => {
    const whole = encode({ tensors: fileTensors(await plainTensors()) });
    const header = whole.length - 200;
    for (const length of [
      0,
      3,
      4,
      40,
      52,
      60,
      1010,
      1016,
      1500,
      3000,
      Math.floor(header / 2),
      header,
      whole.length - 1,
    ])
      expect(await refusal(whole.subarray(0, length))).toStartWith("bad_file: ggml-tiny.bin: ");
  });

  test("sizes, types and names that no model has", async () => {
    const tensors = fileTensors(await plainTensors());
    const [first, ...rest] = tensors as [FileTensor, ...FileTensor[]];
    const found = await Promise.all(
      [
        encode({ tensors, sizes: { vocab: 2 ** 30 } }),
        encode({ tensors, sizes: { decoder: 0 } }),
        encode({ tensors, rows: 128 }),
        encode({ tensors, type: 1008 }),
        encode({ tensors, tokens: [...BYTES, new Uint8Array(600)] }),
        encode({ tensors: [{ ...first, type: 4 }, ...rest] }),
        encode({ tensors: [{ ...first, name: "encoder.blocks.0.other.weight" }, ...rest] }),
        encode({ tensors: [first, first, ...rest] }),
        encode({ tensors: rest }),
      ].map(refusal),
    );
    expect(found.map((text) => text.replace(/ggml-tiny\.bin: /, "").slice(0, 110))).toMatchInlineSnapshot(`
      [
        "bad_file: at byte 4: expected the size of the vocabulary, 1 … 262144, got 1073741824",
        "bad_file: at byte 36: expected a number of layers, 1 … 128, got 0",
        "bad_file: at byte 56: expected mel filters for 80 bins, got 128",
        "bad_file: at byte 48: expected quantized weights of version 2, got version 1",
        "bad_file: at byte 2304: expected token 256 of at most 512 bytes, got 600",
        "unsupported: tensor 'decoder.positional_embedding': block type q4_2 (4) is not supported; supported: f32, f16,",
        "unsupported: tensor 'encoder.blocks.0.other.weight': not a weight of Whisper",
        "bad_file: expected one 'decoder.positional_embedding', got two",
        "bad_file: expected a weight for 'position_embd.weight', got none",
      ]
    `);
  });
});

test("a model is created from the file, whatever its name", async () => {
  const { folder, root: store, library } = await makeWorkplace();
  try {
    const path = join(root, "speech.dat");
    await Bun.write(path, encode({ tensors: fileTensors(await plainTensors()) }));
    const source = { label: "speech.dat", path };
    const steps = await statusesOf(library.create(fields({ sources: [source] })));
    expect(steps).toContain("converting model");
    expect(steps.at(-1)).toBe("success");
    const blobs = await blobsIn(store);
    const two = statusesOf(library.create(fields({ sources: [source, source] })));
    await expect(two).rejects.toThrow("expected one model, got 'speech.dat' and 'speech.dat'");
    expect(await blobsIn(store)).toEqual(blobs);
  } finally {
    await rm(folder, { recursive: true });
  }
});
