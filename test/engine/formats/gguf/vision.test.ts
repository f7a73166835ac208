/** Image encoders in the files of text models: projector files written in those layouts, and read back. */
import { describe, expect, test } from "bun:test";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteTensor, type WriteValue } from "../../../../src/engine/formats/files/write.ts";
import type { Gguf } from "../../../../src/engine/formats/gguf/gguf.ts";
import { projectorGguf, projectorHeader } from "../../../../src/engine/formats/gguf/repair/index.ts";
import { quants, unreadableQuant } from "../../../../src/engine/formats/quant/index.ts";
import { projectorKind } from "../../../../src/engine/vision/clip.ts";
import { makeProjector, makeVisionText } from "../../vision/vision-model.ts";
import { golden, hasGolden } from "../../../golden.ts";
import { failure, withFolder } from "./fixture.ts";

interface Layout {
  /** File of the reference data. */
  readonly projector: string;
  readonly arch: string;
  /** From the names of a projector file to the layout's. */
  readonly names: readonly (readonly [RegExp, string])[];
  readonly keys?: Readonly<Record<string, WriteValue>>;
  /** Keys that the layout does not have. */
  readonly without?: readonly string[];
  readonly tensors?: (file: Gguf) => WriteTensor[];
}

const u32 = (value: number): WriteValue => ({ u32: value });
const FRAMES = [
  [/^v\.patch_embd\.weight\.1$/, "v.patch_embd_1.weight"],
  [/^v\.patch_embd\./, "v.patch_embd_0."],
] as const;
const GONE = "gone";

const LAYOUTS: readonly Layout[] = [
  {
    projector: "gemma4v",
    arch: "gemma4",
    names: [[/.*\.(in|out)put_(min|max)$/, GONE]],
    tensors: (file) => [packedLimits(file)],
    without: ["image_size", "image_mean", "image_std"],
  },
  {
    projector: "qwen3vl_merger",
    arch: "qwen3vl",
    names: [
      [/^v\.patch_embd\.weight.*/, GONE],
      [/^v\.patch_embd\./, "v.patch_embed."],
      [/^v\.position_embd\./, "v.pos_embed."],
      [/^v\.post_ln\./, "v.merger.norm."],
      [/^mm\.0\./, "v.merger.linear_fc1."],
      [/^mm\.2\./, "v.merger.linear_fc2."],
      [/^v\.deepstack\.(\d)\.(fc)?/, "v.deepstack_merger.$1.$2"],
      [/merger\.2\.(fc)?/, "merger.1.$1"],
      [/merger\.3\.(fc)?/, "merger.2.$1"],
      [/^(v\.deepstack_merger\.\d\.)fc/, "$1linear_fc"],
      [/\.ffn_up\./, ".mlp.linear_fc1."],
      [/\.ffn_down\./, ".mlp.linear_fc2."],
      [/\.ln([12])\./, ".norm$1."],
    ],
    keys: { "qwen3vl.vision.deepstack_visual_indexes": Int32Array.of(0, 2, 3) },
    tensors: (file) => [joinedFrames(file)],
    without: ["feed_forward_length", "image_size"],
  },
  {
    projector: "qwen2.5vl_merger",
    arch: "qwen25vl",
    names: [...FRAMES, [/^v\.post_ln\./, "v.merger.ln_q."], [/^mm\.([02])\./, "v.merger.mlp.$1."]],
    keys: { "qwen25vl.vision.fullatt_block_indexes": Int32Array.of(1, 3) },
    without: ["feed_forward_length", "image_size", "n_wa_pattern", "image_mean", "image_std"],
  },
  {
    projector: "glm4v",
    arch: "glmocr",
    names: FRAMES,
    keys: {
      "glmocr.vision.intermediate_size": u32(112),
      "glmocr.vision.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
    },
    without: ["feed_forward_length", "attention.layer_norm_epsilon"],
  },
  {
    projector: "pixtral",
    arch: "mistral3",
    names: [
      [/^v\.token_embd\.img_break$/, GONE],
      [/^v\.blk\.\d+\.attn_[qk]\.weight$/, GONE],
      [/^v\.patch_embd\./, "v.patch_conv."],
      [/^v\.pre_ln\./, "v.encoder_norm."],
      [/\.attn_out\./, ".attn_output."],
      [/\.ln1\./, ".attn_norm."],
      [/\.ln2\./, ".ffn_norm."],
      [/^mm\.([12])\./, "mm.linear_$1."],
      [/^mm\.patch_merger\./, "mm.patch_merger.merging_layer."],
      [/^mm\.input_norm\./, "mm.norm."],
    ],
    keys: { "mistral3.spatial_merge_size": u32(2), "mistral3.embedding_length": u32(64) },
    tensors: (file) => [...halves(file), tokensWith(file)],
    without: ["spatial_merge_size", "attention.layer_norm_epsilon"],
  },
];

const floats = (file: Gguf, name: string): Float32Array => {
  const { quant, shape } = file.tensors.get(name)!;
  const out = new Float32Array(shape.reduce((product, size) => product * size, 1));
  quant.dequantize(file.read(name), out);
  return out;
};
const tensor = (name: string, shape: readonly number[], values: Float32Array): WriteTensor => ({
  name,
  shape,
  quant: quants.f32,
  data: new Uint8Array(values.buffer),
});

function packedLimits(file: Gguf): WriteTensor {
  const linears = ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"];
  const names = [0, 1, 2].flatMap((layer) => linears.map((name) => `v.blk.${layer}.${name}`));
  const limits = names.flatMap((name) =>
    ["input_min", "input_max", "output_min", "output_max"].map((limit) => floats(file, `${name}.${limit}`)[0]!),
  );
  return tensor("v.clamp_data", [limits.length], Float32Array.from(limits));
}

/** (side, side, frame, colour of each output) */
function joinedFrames(file: Gguf): WriteTensor {
  const [side = 0, , colours = 0, dim = 0] = file.tensors.get("v.patch_embd.weight")!.shape;
  const frames = ["v.patch_embd.weight", "v.patch_embd.weight.1"].map((name) => floats(file, name));
  const size = side * side;
  const joined = new Float32Array(2 * size * colours * dim);
  for (let kernel = 0; kernel < colours * dim; kernel++) {
    for (const [frame, values] of frames.entries()) {
      joined.set(values.subarray(kernel * size, (kernel + 1) * size), (2 * kernel + frame) * size);
    }
  }
  return tensor("v.patch_embed.weight", [side, side, 2, colours * dim], joined);
}

/** Queries and keys with the rows of a head that turn together half a head apart. */
function halves(file: Gguf): WriteTensor[] {
  const names = [...file.tensors.keys()].filter((name) => /\.attn_[qk]\.weight$/.test(name));
  return names.map((name) => {
    const [columns = 0, rows = 0] = file.tensors.get(name)!.shape;
    const values = floats(file, name);
    const out = new Float32Array(values.length);
    const headDim = rows / 3;
    for (let row = 0; row < rows; row++) {
      const at = row % headDim;
      const to = row - at + (at % 2) * (headDim / 2) + Math.floor(at / 2);
      out.set(values.subarray(row * columns, (row + 1) * columns), to * columns);
    }
    return tensor(name, [columns, rows], out);
  });
}

/** A text model's embedding, in which the thirteenth token marks the end of a row. */
function tokensWith(file: Gguf): WriteTensor {
  const row = floats(file, "v.token_embd.img_break");
  const values = new Float32Array(row.length * 20);
  values.set(row, 12 * row.length);
  return tensor("token_embd.weight", [row.length, 20], values);
}

describe.skipIf(!hasGolden)("a projector in the layout of", () => {
  test.each(LAYOUTS.map((layout) => [layout.arch, layout] as const))(
    "%s is read as the original projector",
    (_, layout) =>
      withFolder(async (path) => {
        const { projector, arch, names, keys = {}, tensors = () => [], without = [] } = layout;
        const original = openGguf(golden(`vision/${projector}.mmproj.gguf`));
        const metadata: Record<string, WriteValue> = { "general.architecture": arch };
        for (const [key, value] of original.metadata) {
          const name = /^clip\.vision\.(.*)$/.exec(key)?.[1];
          if (name === undefined || without.includes(name)) continue;
          metadata[`${arch}.vision.${name}`] =
            typeof value === "number" ? (Number.isInteger(value) ? u32(value) : { f32: value }) : (value as WriteValue);
        }
        const named = (name: string): string => names.reduce((to, [from, other]) => to.replace(from, other), name);
        const kept = [...original.tensors.values()].flatMap(({ name, shape }): WriteTensor[] => {
          const to = named(name);
          return to.includes(GONE) ? [] : [tensor(to, shape, floats(original, name))];
        });
        await writeGguf(path("m.gguf"), {
          metadata: { ...metadata, ...keys },
          tensors: [...kept, ...tensors(original), tensor("output.weight", [4], new Float32Array(4))],
        });
        const file = openGguf(path("m.gguf"));
        const read = projectorGguf(file)!;
        expect(projectorKind(read.metadata)).toBe(projector);
        for (const [key, value] of original.metadata) {
          const isRead = /^clip\.(use_|vision\.(block|embedding|feed|patch|spatial|projector\.|attention|n_wa))/.test(
            key,
          );
          const got = read.metadata.get(key);
          if (isRead && value !== false)
            expect([key, got]).toEqual([key, typeof value === "number" ? expect.closeTo(value, 8) : value]);
        }
        expect([...read.tensors.keys()].toSorted()).toEqual([...original.tensors.keys()].toSorted());
        for (const name of original.tensors.keys()) {
          expect([name, floats(read, name)]).toEqual([name, floats(original, name)]);
          const { byteLength } = read.tensors.get(name)!;
          expect(read.readRange(name, byteLength - 4, 4)).toEqual(read.read(name).subarray(byteLength - 4));
        }
        for (const each of [file, original]) each.close();
      }),
  );
});

test("a file without an encoder has no projector, and a projector file without a type is LLaVA's", () =>
  withFolder(async (path) => {
    await writeGguf(path("text.gguf"), makeVisionText());
    await writeGguf(path("p.gguf"), makeProjector({ "clip.projector_type": "" }));
    const [text, projector] = [openGguf(path("text.gguf")), openGguf(path("p.gguf"))];
    expect(projectorGguf(text)).toBeUndefined();
    const unnamed = new Map(projector.metadata);
    unnamed.delete("clip.projector_type");
    expect(projectorKind(projectorHeader({ ...projector, metadata: unnamed })!.metadata)).toBe("mlp");
    expect(projectorKind(projectorGguf(projector)!.metadata)).toBe("");
    for (const each of [text, projector]) each.close();
  }));

test("a missing row of a tensor is an error that names the tensor", () =>
  withFolder(async (path) => {
    const vision = { "mistral3.vision.block_count": u32(0), "mistral3.vision.attention.head_count": u32(2) };
    await writeGguf(path("m.gguf"), {
      metadata: { "general.architecture": "mistral3", ...vision },
      tensors: [
        tensor("v.patch_conv.weight", [4], new Float32Array(4)),
        tensor("token_embd.weight", [4, 3], new Float32Array(12)),
      ],
    });
    const file = openGguf(path("m.gguf"));
    expect(failure(() => projectorGguf(file))).toContain("tensor 'token_embd.weight': expected (4) from 48 on in it");
    file.close();
  }));

const OF_NO_SIZE = { quant: unreadableQuant(99), data: new Uint8Array(0) }; // its shape is not checked

test.each([
  [
    "gemma4",
    { name: "v.clamp_data", shape: [2 ** 50] },
    /at most 256 layers, and limits of their linears and the projection, got 256 and 1125899906842624 values$/,
  ],
  ["gemma4", { name: "v.clamp_data", shape: [28] }, /tensor 'v\.clamp_data': .*99/],
  [
    "mistral3",
    { name: "v.blk.0.attn_q.weight", shape: [1, 2 ** 30] },
    /expected at most 65536 rows, in halves of 2 heads, got 1073741824$/,
  ],
  ["mistral3", { name: "v.blk.0.attn_q.weight", shape: [1, 8] }, /tensor 'v\.blk\.0\.attn_q\.weight': .*99/],
])("tensors of an unknown type in %s are refused before they are split", (arch, each, message) =>
  withFolder(async (path) => {
    const vision = { [`${arch}.vision.block_count`]: u32(256), [`${arch}.vision.attention.head_count`]: u32(2) };
    const model = { metadata: { "general.architecture": arch, ...vision }, tensors: [{ ...each, ...OF_NO_SIZE }] };
    await writeGguf(path("m.gguf"), model);
    const file = openGguf(path("m.gguf"));
    expect(failure(() => projectorHeader(file))).toMatch(message);
    file.close();
  }),
);
