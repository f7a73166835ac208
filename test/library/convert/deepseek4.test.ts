/** Weights of DeepSeek V4 in the types of its published files, and what is refused. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../../src/base/index.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { byteTokenizer, encodeSafetensors, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { readOriginals, tensorsOf } from "./originals.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-deepseek4-"));
afterAll(() => rmSync(folder, { recursive: true }));
const original = (await readOriginals())["DeepseekV4"]!;
const tokenizer = byteTokenizer(makeModel("llama").metadata);
let folders = 0;

/** Converts the model with some tensors, and keys of its configuration, replaced. */
async function convert(tensors: Record<string, PlainTensor>, config: Record<string, unknown> = {}): Promise<string> {
  const name = `model ${folders++}`;
  const source = await writeFolder(join(folder, name), {
    "config.json": { ...original.config, ...config },
    "tokenizer.json": tokenizer,
    "model.safetensors": encodeSafetensors({ ...tensorsOf(original), ...tensors }),
  });
  const to = join(folder, `${name}.gguf`);
  await convertModel({ folder: source, to });
  return to;
}

const refusal = (...given: Parameters<typeof convert>): Promise<string> =>
  convert(...given).then(() => "converted", messageOf);

/** The weights of a tensor, and its type. */
function read(path: string, name: string): { values: Float32Array; quant: string; shape: readonly number[] } {
  const gguf = openGguf(path);
  const { quant, shape } = gguf.tensors.get(name)!;
  const values = new Float32Array(shape.reduce((all, size) => all * size, 1));
  quant.dequantize(gguf.read(name), values);
  gguf.close();
  return { values, quant: quant.name, shape };
}

/** Some bytes of E4M3, as PyTorch reads them. */
const E4M3: readonly (readonly [byte: number, value: number])[] = [
  [0x38, 1],
  [0xb8, -1],
  [0x3c, 1.5],
  [0x7e, 448],
  [0x01, 2 ** -9],
  [0x08, 2 ** -6],
  [0x80, 0],
];

const [ROWS, COLUMNS] = [130, 300];
const scaleAt = (row: number, column: number): number => 2 ** ((row >> 7) * 3 + (column >> 7) - 2);
const inEightBits: PlainTensor = {
  dtype: "F8_E4M3",
  shape: [ROWS, COLUMNS],
  data: Uint8Array.from({ length: ROWS * COLUMNS }, (_, i) => E4M3[i % 7]![0]),
};
/** (2, 3) blocks. */
const exponents = Uint8Array.from([-2, -1, 0, 1, 2, 3], (exponent) => exponent + 127);
const expected = Float32Array.from({ length: ROWS * COLUMNS }, (_, i) => {
  return E4M3[i % 7]![1] * scaleAt(Math.floor(i / COLUMNS), i % COLUMNS);
});

test("weights in 8 bits become BF16, scaled by block, with scales as powers of two or floats", async () => {
  const asPowers = await convert({
    "layers.0.attn.wq_a.weight": inEightBits,
    "layers.0.attn.wq_a.scale": { dtype: "F8_E8M0", shape: [2, 3], data: exponents },
  });
  const asFloats = await convert({
    "layers.0.attn.wq_a.weight": inEightBits,
    "layers.0.attn.wq_a.weight_scale_inv": {
      dtype: "F32",
      shape: [2, 3],
      data: new Uint8Array(Float32Array.from(exponents, (exponent) => 2 ** (exponent - 127)).buffer),
    },
  });
  for (const path of [asPowers, asFloats]) {
    expect(read(path, "blk.0.attn_q_a.weight")).toEqual({ values: expected, quant: "bf16", shape: [COLUMNS, ROWS] });
  }
});

test("experts in 4 bits stay MXFP4, and tables of experts stay whole numbers", async () => {
  const codes = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];
  const [rows, columns, experts] = [48, 64, 6];
  const codeAt = (expert: number, i: number): number => (i * 7 + expert * 3 + (i >> 5)) % 16;
  const packed = Array.from({ length: experts }, (_, expert) => {
    const at = `layers.0.ffn.experts.${expert}.w1`;
    const bytes = Uint8Array.from({ length: (rows * columns) / 2 }, (_, i) => {
      return codeAt(expert, 2 * i) | (codeAt(expert, 2 * i + 1) << 4);
    });
    const scales = Uint8Array.from({ length: (rows * columns) / 32 }, (_, block) => 127 + (block % 5) - expert);
    return {
      [`${at}.weight`]: { dtype: "I8", shape: [rows, columns / 2], data: bytes },
      [`${at}.scale`]: { dtype: "F8_E8M0", shape: [rows, columns / 32], data: scales },
    };
  });
  const path = await convert(Object.assign({}, ...packed));
  const { values, quant, shape } = read(path, "blk.0.ffn_gate_exps.weight");
  expect([quant, shape]).toEqual(["mxfp4", [columns, rows, experts]]);
  const wanted = Array.from({ length: experts * rows * columns }, (_, i) => {
    const [expert, inside] = [Math.floor(i / (rows * columns)), i % (rows * columns)];
    return codes[codeAt(expert, inside)]! * 2 ** ((Math.floor(inside / 32) % 5) - expert);
  });
  expect(values).toEqual(Float32Array.from(wanted, (value) => value || 0));
  const table = read(path, "blk.0.ffn_gate_tid2eid.weight");
  const source = tensorsOf(original)["layers.0.ffn.gate.tid2eid"]!;
  expect(table.quant).toBe("i32");
  expect(table.values).toEqual(Float32Array.from(new BigInt64Array(source.data.buffer as ArrayBuffer), Number));
});

test("weights in 8 bits without fitting scales, and unfit tables and configurations, are refused", async () => {
  const name = "layers.0.attn.wq_a";
  expect(await refusal({ [`${name}.weight`]: inEightBits })).toContain(
    `tensor '${name}.weight': expected a matrix, and (2, 3) scales of F8_E8M0 or F32 in ` +
      `'${name}.scale' or '${name}.weight_scale_inv', got none`,
  );
  const few = { dtype: "F8_E8M0", shape: [2, 2], data: exponents.slice(2) };
  expect(await refusal({ [`${name}.weight`]: inEightBits, [`${name}.scale`]: few })).toContain("got F8_E8M0 of (2, 2)");
  const large = new BigInt64Array(640).fill(2n ** 31n);
  const table = { dtype: "I64", shape: [320, 2], data: new Uint8Array(large.buffer) };
  expect(await refusal({ "layers.0.ffn.gate.tid2eid": table })).toContain(
    "'layers.0.ffn.gate.tid2eid': expected numbers of 32 bits, got 2147483648",
  );
  for (const [config, message] of [
    [{ scoring_func: "sigmoid" }, "'scoring_func'"],
    [{ compress_rates: { compressed_sparse_attention: 8 } }, "'compress_rates': expected 4 for compressed_sparse"],
    [{ layer_types: ["full_attention"] }, "'layer_types': expected a list of 3 of sliding_attention"],
    [{ mlp_layer_types: ["moe", "hash_moe", "moe"] }, "'mlp_layer_types': expected layers of hash_moe first"],
  ] as const) {
    expect(await refusal({}, config)).toContain(message);
  }
});

test("a list of compress_ratios gives the same metadata as a list of layer types", async () => {
  const published = { layer_types: null, mlp_layer_types: null, num_hash_layers: 1, compress_ratios: [0, 4, 8, 0] };
  const [one, other] = [await convert({}), await convert({}, published)].map((path) => openGguf(path));
  for (const key of ["attention.compress_ratios", "hash_layer_count"])
    expect(other!.metadata.get(`deepseek4.${key}`)).toEqual(one!.metadata.get(`deepseek4.${key}`));
});
