/** The layer that drafts of a Qwen 3.5 file in another layout than llama.cpp's. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel, type WriteTensor } from "../../../../src/engine/formats/files/write.ts";
import { repairGguf, withDraftBlock } from "../../../../src/engine/formats/gguf/repair/index.ts";
import type { Gguf } from "../../../../src/engine/formats/gguf/gguf.ts";
import { makeDraftModel } from "../../architectures/draft-layers.ts";

const NORMS = /nextn\.(shared_head_norm|enorm|hnorm)\.weight$/;
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^blk\.4\.nextn\.eh_proj\./, "mtp.fc."],
  [/^blk\.4\.nextn\.shared_head_norm\./, "mtp.norm."],
  [/^blk\.4\.nextn\.enorm\./, "mtp.pre_fc_norm_embedding."],
  [/^blk\.4\.nextn\.hnorm\./, "mtp.pre_fc_norm_hidden."],
  [/^blk\.4\./, "mtp.layers.0."],
];

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-draft-block-"))));
afterAll(() => rm(folder, { recursive: true }));

const floats = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer);

/** The model with its fifth layer beside the others; its norms lack the one that they stand above. */
function moved({ metadata, tensors }: WriteModel): WriteModel {
  const { "qwen35.nextn_predict_layers": _, ...others } = metadata;
  const rename = (tensor: WriteTensor): WriteTensor => {
    const name = NAMES.reduce((found, [from, to]) => found.replace(from, to), tensor.name);
    if (!NORMS.test(tensor.name)) return { ...tensor, name };
    const data = new Uint8Array(floats(tensor.data as Uint8Array).map((value) => value - 1).buffer); // as it is made
    return { ...tensor, name, data };
  };
  const keys = { "qwen35.block_count": { u32: 4 }, "qwen35.ssm.v_head_reordered": true };
  return { metadata: { ...others, ...keys }, tensors: tensors.map(rename) };
}

async function opened(name: string, model: WriteModel): Promise<Gguf> {
  const file = join(folder, `${name}.gguf`);
  await writeGguf(file, model);
  return openGguf(file);
}

test("the draft layer becomes the last block, with 1 added to its norms", async () => {
  const usual = makeDraftModel("qwen35");
  const expected = await opened("usual", usual);
  const got = withDraftBlock(await opened("moved", moved(usual)));
  expect([...got.tensors.keys()].toSorted()).toEqual([...expected.tensors.keys()].toSorted());
  for (const key of ["qwen35.block_count", "qwen35.nextn_predict_layers"])
    expect(got.metadata.get(key)).toBe(expected.metadata.get(key)!);
  for (const [name, { byteLength }] of expected.tensors) {
    const bytes = got.read(name);
    if (NORMS.test(name)) {
      for (const [i, value] of floats(expected.read(name)).entries()) expect(floats(bytes)[i]!).toBeCloseTo(value, 6);
    } else {
      expect(Buffer.compare(bytes, expected.read(name))).toBe(0);
    }
    expect(Buffer.compare(got.readRange(name, 4, byteLength - 4), bytes.subarray(4))).toBe(0);
  }
});

test("the model itself loads without the draft layer", async () => {
  const got = repairGguf(await opened("hidden", moved(makeDraftModel("qwen35"))));
  expect([...got.tensors.keys()].filter((name) => /^mtp|nextn|^blk\.4/.test(name))).toEqual([]);
  expect(got.metadata.get("qwen35.block_count")).toBe(4);
});

test.each(["mtp.norm.weight", "mtp.fc.weight", "another"])(
  "a draft layer with a missing or extra tensor is left out: %s",
  async (part) => {
    const { metadata, tensors } = moved(makeDraftModel("qwen35"));
    const another = tensors.filter(({ name }) => name === "mtp.layers.0.attn_norm.weight");
    const more = part === "another" ? another.map((each) => ({ ...each, name: "mtp.layers.1.attn_norm.weight" })) : [];
    const kept = [...tensors.filter(({ name }) => name !== part), ...more];
    const got = withDraftBlock(await opened("odd", { metadata, tensors: kept }));
    expect([...got.tensors.keys()].filter((name) => /^mtp|nextn|^blk\.4/.test(name))).toEqual([]);
  },
);
