/** Folders of gpt-oss as published: experts in MXFP4 blocks, with the rows of gate and up interleaved. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { byteTokenizer, encodeSafetensors, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { readOriginals, tensorsOf } from "./originals.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-gpt-oss-"));
afterAll(() => rmSync(folder, { recursive: true }));
const { GptOss: original } = await readOriginals();
const tokenizer = byteTokenizer(makeModel("llama").metadata);

const bytes = (count: number, value: (i: number) => number): Uint8Array =>
  Uint8Array.from({ length: count }, (_, i) => value(i));

/** Experts in blocks instead of floats. */
function packed(): Record<string, PlainTensor> {
  const tensors = tensorsOf(original!);
  for (const name of Object.keys(tensors).filter((each) => /experts\.(gate_up|down)_proj$/.test(each))) {
    const [experts = 0, inDim = 0, rows = 0] = tensors[name]!.shape;
    const blocks = (experts * rows * inDim) / 32;
    delete tensors[name];
    const shape = [experts, rows, inDim / 32];
    const nibbles = bytes(blocks * 16, (i) => (i * 37 + 11) % 251);
    tensors[`${name}_blocks`] = { dtype: "U8", shape: [...shape, 16], data: nibbles };
    tensors[`${name}_scales`] = { dtype: "U8", shape, data: bytes(blocks, (i) => 118 + (i % 5)) };
  }
  return tensors;
}

async function convert(name: string, tensors: Record<string, PlainTensor>): Promise<string> {
  const source = await writeFolder(join(folder, name), {
    "config.json": original!.config,
    "tokenizer.json": tokenizer,
    "model.safetensors": encodeSafetensors(tensors),
  });
  const to = join(folder, `${name}.gguf`);
  await convertModel({ folder: source, to });
  return to;
}

/** 1024 times row 5 of expert 3, by transformers' `convert_moe_packed_tensors`. */
const ROW_5 = [
  16, 0, 96, 16, -32, 32, 8, 96, 64, -8, -24, -24, 0, -64, -16, 0, -96, 16, 32, 48, -8, 96, -64, -8, 24, -32, 0, -64,
  16, 8, 96, 24, -64, 96, 16, 0, 128, -32, -48, -64, 0, -192, -32, 16, -192, 48, 64, 128, -16, 0, -128, -32, 48, -96, 0,
  -192, 32, 32, 192, 64, -64, 128, 16, -16,
];

test("packed experts become MXFP4 with the values of transformers, with gate and up separate", async () => {
  const gguf = openGguf(await convert("packed", packed()));
  loadProgram(gguf); // names and shapes are right
  const { quant, shape } = gguf.tensors.get("blk.0.ffn_up_exps.weight")!;
  expect([quant.name, ...shape]).toEqual(["mxfp4", 64, 64, 6]);
  const up = new Float32Array(64 * 64 * 6);
  quant.dequantize(gguf.read("blk.0.ffn_up_exps.weight"), up);
  const row = 3 * 64 + 2; // rows 1, 3, 5 … are of up
  expect(Array.from(up.subarray(row * 64, (row + 1) * 64), (value) => value * 1024 + 0)).toEqual(ROW_5);
  gguf.close();
});

test("packed experts without scales, or with scales of another shape, are refused", async () => {
  const { "model.layers.0.mlp.experts.down_proj_scales": scales, ...lacking } = packed();
  await expect(convert("lacking", lacking)).rejects.toThrow(
    "expected scales in 'model.layers.0.mlp.experts.down_proj_",
  );
  const short = { ...scales!, shape: [6, 32, 4] };
  const other = { ...lacking, "model.layers.0.mlp.experts.down_proj_scales": short };
  await expect(convert("other", other)).rejects.toThrow(
    "bytes of (experts, rows, blocks, 16) and a scale for each block",
  );
});
