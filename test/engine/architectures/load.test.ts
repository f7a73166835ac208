/** From a GGUF to a program: checks before any size is used, and the errors of bad files. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Step } from "../../../src/engine/program/step.ts";
import { AppError } from "../../../src/base/errors.ts";
import type { Gguf, MetadataValue, TensorInfo } from "../../../src/engine/formats/gguf/gguf.ts";
import type { WriteModel } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { makeModel } from "./models.ts";

/** Made once, because random numbers take time. */
const made = new Map<string, WriteModel>();

/** A model of models.ts as if opened from a file, after changes. */
function open(
  name: string,
  changes: { keys?: Record<string, MetadataValue | undefined>; tensors?: TensorChanges } = {},
) {
  const model = made.get(name) ?? makeModel(name);
  made.set(name, model);
  const metadata = new Map<string, MetadataValue>();
  for (const [key, value] of Object.entries(model.metadata)) {
    const plain = typeof value === "object" && !ArrayBuffer.isView(value) && !Array.isArray(value);
    metadata.set(key, plain ? Number(Object.values(value)[0]) : value);
  }
  for (const [key, value] of Object.entries(changes.keys ?? {})) {
    if (value === undefined) metadata.delete(key);
    else metadata.set(key, value);
  }
  // models.ts makes no streams
  const data = new Map(model.tensors.map((tensor) => [tensor.name, tensor.data as Uint8Array]));
  const tensors = new Map<string, TensorInfo>();
  for (const { name, shape, quant, data } of model.tensors) {
    tensors.set(name, { name, shape, quant, byteLength: (data as Uint8Array).length, shard: 0, offset: 0 });
  }
  for (const [name, change] of Object.entries(changes.tensors ?? {})) {
    if (change === undefined) tensors.delete(name);
    else tensors.set(name, { name, quant: quants.f32, byteLength: 0, shard: 0, offset: 0, shape: [], ...change });
  }
  const read = (name: string): Uint8Array => data.get(name)!;
  const readRange: Gguf["readRange"] = (name, start, length) => read(name).subarray(start, start + length);
  const gguf: Gguf = { path: "m.gguf", version: 3, metadata, tensors, fileBytes: 0, read, readRange, close: () => {} };
  return gguf;
}
type TensorChanges = Record<string, Partial<TensorInfo> | undefined>;

const messageOf = (gguf: Gguf): string => {
  try {
    loadProgram(gguf);
  } catch (error) {
    if (error instanceof AppError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "no error";
};

describe("a program", () => {
  test("has the file's shape, and logits of the vocabulary's width", () => {
    const { shape, logits } = loadProgram(open("llama"));
    expect(shape).toEqual({ arch: "llama", dim: 64, nLayers: 2, vocabSize: 64 });
    expect(logits).toEqual({ name: "logits", dim: 64 });
  });

  test("uses the embedding as output matrix if the file has none", () => {
    const { steps } = loadProgram(open("llama-tied-factors"));
    const head = steps.at(-1) as Step & { op: "linear" };
    expect([head.op, head.w.name]).toEqual(["linear", "token_embd.weight"]);
  });

  test("takes the parts of a fused tensor by their first row", () => {
    const { steps } = loadProgram(open("phi3"));
    const parts = steps.filter((step) => step.op === "linear").slice(0, 3);
    expect(parts.map(({ w }) => [w.name, w.rowStart, w.outDim, w.tensorRows])).toEqual([
      ["blk.0.attn_qkv.weight", 0, 64, 128],
      ["blk.0.attn_qkv.weight", 64, 32, 128],
      ["blk.0.attn_qkv.weight", 96, 32, 128],
    ]);
  });

  test("has the windows of the file's flags for each layer, or of its period", () => {
    const windows = (pattern: MetadataValue): number[] =>
      loadProgram(open("gemma2", { keys: { "gemma2.attention.sliding_window_pattern": pattern } })).steps.flatMap(
        (step) => (step.op === "attention" ? [step.window] : []),
      );
    expect(windows([true, true, false, true])).toEqual([6, 6, 0, 6]);
    expect(windows(Uint32Array.of(0, 1, 1, 0))).toEqual([0, 6, 6, 0]);
    expect(windows(3)).toEqual([6, 6, 0, 6]);
  });

  test("reads Gemma 3's rope bases under both spellings of their keys", () => {
    const keys = {
      "gemma3.rope.freq_base": undefined,
      "gemma3.rope.global.freq_base": 5e5,
      "gemma3.rope.local.freq_base": 2e4,
    };
    const { steps } = loadProgram(open("gemma3", { keys }));
    const bases = new Set(steps.flatMap((step) => (step.op === "rope" ? [step.rope.base] : [])));
    expect([...bases]).toEqual([2e4, 5e5]);
  });

  test("ignores tensors of vision, and takes equal values per layer as one value", () => {
    const keys = { "gemma3.attention.head_count": Uint32Array.of(4, 4, 4, 4, 4, 4, 4) };
    expect(messageOf(open("gemma3", { keys, tensors: { "v.blk.0.attn_q.weight": { shape: [8, 8] } } }))).toBe(
      "no error",
    );
  });
});

describe("a bad file", () => {
  const keyCases: [string, Record<string, MetadataValue | undefined>, string][] = [
    [
      "no architecture",
      { "general.architecture": undefined },
      "unsupported: m.gguf: general.architecture: expected one of afmoe,",
    ],
    ["an architecture by the name of a method", { "general.architecture": "constructor" }, "got 'constructor'"],
    [
      "no layers",
      { "llama.block_count": 0 },
      "bad_file: m.gguf: 'llama.block_count': expected a whole number of 1 … 512, got 0",
    ],
    ["too many layers", { "llama.block_count": 4e9 }, "expected a whole number of 1 … 512, got 4000000000"],
    [
      "a missing dimension",
      { "llama.embedding_length": undefined },
      "'llama.embedding_length': expected a whole number of 1 … 65536, got nothing",
    ],
    ["half a head", { "llama.attention.head_count": 2.5 }, "'llama.attention.head_count': expected a whole number"],
    [
      "heads that differ by layer",
      { "llama.attention.head_count": Uint32Array.of(4, 2) },
      "'llama.attention.head_count': expected a whole number of 1 … 512, got a list",
    ],
    [
      "KV heads that do not divide the heads",
      { "llama.attention.head_count_kv": 3 },
      "'llama.attention.head_count_kv': expected a divisor of the 4 heads, got 3",
    ],
    [
      "values of another size than keys",
      { "llama.attention.value_length": 8 },
      "unsupported: m.gguf: 'llama.attention.value_length': expected attention.key_length, 16, got 8",
    ],
    [
      "a text for a number",
      { "llama.attention.layer_norm_rms_epsilon": "tiny" },
      "'llama.attention.layer_norm_rms_epsilon': expected a number, got 'tiny'",
    ],
    ["an eps that is no number", { "llama.attention.layer_norm_rms_epsilon": NaN }, "expected a number, got NaN"],
    [
      "a negative eps",
      { "llama.attention.layer_norm_rms_epsilon": -1 },
      "layer_norm_rms_epsilon': expected 0 or more, got -1",
    ],
    [
      "an unknown scaling",
      { "llama.rope.scaling.type": "dynamic" },
      "unsupported: m.gguf: 'llama.rope.scaling.type': expected one of none, linear, yarn, longrope, got 'dynamic'",
    ],
    [
      "more rotary dimensions than a head has",
      { "llama.rope.dimension_count": 32 },
      "'llama.rope.dimension_count': expected a whole number of 2 … 16, got 32",
    ],
    [
      "an odd number of rotary dimensions",
      { "llama.rope.dimension_count": 15 },
      "rotary embedding: expected an even number of dimensions, got 15",
    ],
    ["a base of 0", { "llama.rope.freq_base": 0 }, "rotary embedding: expected a base above 0, got 0"],
    ["a negative factor", { "llama.rope.scaling.factor": -4 }, "rotary embedding: expected a factor above 0, got -4"],
    [
      "another width of the MLP",
      { "llama.feed_forward_length": 128 },
      "tensor 'blk.0.ffn_gate.weight': expected (64, 128), got (64, 96)",
    ],
    [
      "more layers than there are tensors",
      { "llama.block_count": 3 },
      "tensor 'blk.2.attn_q.weight': expected (64, 64), got none",
    ],
    [
      "fewer layers than there are tensors",
      { "llama.block_count": 1 },
      "unsupported: m.gguf: tensor 'blk.1.attn_norm.weight': 'llama' has no such weight",
    ],
  ];
  for (const [name, keys, message] of keyCases) {
    test(`with ${name} is refused`, () => expect(messageOf(open("llama", { keys }))).toContain(message));
  }

  const tensorCases: [string, string, TensorChanges, string][] = [
    [
      "no embedding",
      "llama",
      { "token_embd.weight": undefined },
      "tensor 'token_embd.weight': expected two dimensions, got none",
    ],
    [
      "a missing tensor",
      "llama",
      { "blk.1.attn_q.weight": undefined },
      "bad_file: m.gguf: tensor 'blk.1.attn_q.weight': expected (64, 64), got none",
    ],
    [
      "a missing norm of queries",
      "qwen3",
      { "blk.1.attn_q_norm.weight": undefined },
      "bad_file: m.gguf: tensor 'blk.1.attn_q_norm.weight': expected (",
    ],
    [
      "a misshapen tensor",
      "llama",
      { "blk.1.attn_q.weight": { shape: [64, 16] } },
      "bad_file: m.gguf: tensor 'blk.1.attn_q.weight': expected (64, 64), got (64, 16)",
    ],
    [
      "a misshapen bias",
      "qwen2",
      { "blk.0.attn_k.bias": { shape: [64] } },
      "tensor 'blk.0.attn_k.bias': expected (32), got (64)",
    ],
    [
      "too few experts",
      "llama-experts",
      { "blk.0.ffn_up_exps.weight": { shape: [64, 96, 3] } },
      "expected (64, 96, 4), got (64, 96, 3)",
    ],
    [
      "rows that are no whole blocks",
      "llama",
      { "blk.0.attn_q.weight": { shape: [64, 64], quant: quants.q4_K } },
      "tensor 'blk.0.attn_q.weight': expected rows of whole q4_K blocks of 256, got rows of 64",
    ],
    [
      "a norm that would not be applied",
      "llama",
      { "blk.0.attn_q_norm.weight": { shape: [16] } },
      "unsupported: m.gguf: tensor 'blk.0.attn_q_norm.weight': 'llama' has no such weight",
    ],
    [
      "a bias of a fused tensor that is as long as another",
      "phi3",
      { "blk.0.attn_qkv.bias": { shape: [127] } },
      "tensor 'blk.0.attn_qkv.bias': expected (",
    ],
  ];
  for (const [name, model, tensors, message] of tensorCases) {
    test(`with ${name} is refused`, () => expect(messageOf(open(model, { tensors }))).toContain(message));
  }

  test("with a frequency factor of 0 is refused", () => {
    const gguf = open("llama-tied-factors");
    const read: Gguf["read"] = (name) => (name === "rope_freqs.weight" ? new Uint8Array(32) : gguf.read(name));
    expect(messageOf({ ...gguf, read })).toContain("rotary embedding: expected frequency factors other than 0, got 0");
  });

  test("with any values of metadata gives a program or an AppError", () => {
    const keys = [...open("gemma3").metadata.keys()].filter((key) => key.startsWith("gemma3."));
    const value = fc.oneof(
      fc.integer(),
      fc.double(),
      fc.string(),
      fc.boolean(),
      fc.bigInt(),
      fc.array(fc.boolean()),
      fc.uint32Array(),
    );
    const change = fc.dictionary(fc.constantFrom(...keys), value, { minKeys: 1, maxKeys: 4 });
    fc.assert(
      fc.property(change, (keys) => void messageOf(open("gemma3", { keys }))),
      { seed: 11, numRuns: 300 },
    );
  });
});

describe("layers that share keys and values", () => {
  const key = "gemma4.attention.shared_kv_layers";
  test("without an earlier layer of the same kind, the error names the file, the key and its value", () => {
    expect(messageOf(open("gemma4", { keys: { [key]: 3 } }))).toBe(
      `bad_file: m.gguf: '${key}' is 3: expected layer 1 (1 key heads of 32, no window) to share keys with an ` +
        "earlier layer of the same kind, got layer 0 (1 key heads of 16, a window of 6)",
    );
  });
  test.each([3, 15])("a rotation of %d dimensions in windows is refused", (width) => {
    expect(messageOf(open("gemma4", { keys: { "gemma4.rope.dimension_count_swa": width } }))).toBe(
      `bad_file: m.gguf: rotary embedding: expected an even number of dimensions, got ${width}`,
    );
  });
});
