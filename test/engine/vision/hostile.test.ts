/** Damaged or malicious projector files: one clear error each, before any size is used. */
import { afterAll, describe, expect, test } from "bun:test";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteValue } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import type { Gguf, MetadataValue, TensorInfo } from "../../../src/engine/formats/gguf/gguf.ts";
import { openImageEncoder } from "../../../src/engine/vision/index.ts";
import { withFolder } from "../formats/gguf/fixture.ts";
import { goldenTest, hasGolden } from "../../golden.ts";
import { goldenPath, readProjector } from "./golden.ts";
import { makeProjector } from "./vision-model.ts";

const options = { backend: cpuBackend, text: undefined, threads: 1, signal: undefined };

/** The error of opening; undefined if it opens. */
async function failure(gguf: Gguf): Promise<{ code: string; message: string } | undefined> {
  try {
    (await openImageEncoder(gguf, options)).close();
    return undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error) return { code: String(error.code), message: error.message };
    throw error; // an unexpected failure
  }
}

describe("keys", () => {
  const u32 = (value: number): WriteValue => ({ u32: value });
  const cases: readonly (readonly [key: string, value: WriteValue, expected: string])[] = [
    ["general.architecture", "llama", "general.architecture: expected a projector, 'clip', got 'llama'"],
    ["clip.has_vision_encoder", false, "'clip.has_vision_encoder': expected an encoder of images, got none"],
    ["clip.projector_type", "telepathy", "'clip.projector_type': expected one of"],
    ["clip.use_silu", true, "'clip.use_gelu': expected no 'clip.use_silu' together with it"],
    ["clip.vision.block_count", u32(4_000_000_000), "expected a whole number of 0 … 256, got 4000000000"],
    ["clip.vision.block_count", u32(3), "tensor 'v.blk.2.ln1.weight': expected (32), got none"],
    ["clip.vision.block_count", u32(1), "tensor 'v.blk.1.ln1.weight': 'gemma3' has no such weight"],
    ["clip.vision.embedding_length", u32(0), "'clip.vision.embedding_length': expected a whole number of 1"],
    ["clip.vision.embedding_length", u32(48), "expected (48), got (32)"],
    ["clip.vision.attention.head_count", u32(0), "expected heads that divide 32 dimensions, got 0"],
    ["clip.vision.attention.head_count", u32(3), "expected heads that divide 32 dimensions, got 3"],
    ["clip.vision.attention.head_count_kv", u32(7), "expected a whole number of 0 … 2, got 7"],
    ["clip.vision.attention.layer_norm_epsilon", { f32: NaN }, "expected a number, got NaN"],
    ["clip.vision.attention.layer_norm_epsilon", { f32: -1 }, "expected 0 or more, got -1"],
    ["clip.vision.image_size", u32(1_000_000), "'clip.vision.image_size': expected a whole number of 1"],
    ["clip.vision.image_size", u32(33), "expected a multiple of 'clip.vision.patch_size', 8, got 33"],
    ["clip.vision.image_size", u32(6144), "tensor 'v.position_embd.weight': expected (32, 589824), got (32, 16)"],
    ["clip.vision.patch_size", u32(0), "'clip.vision.patch_size': expected a whole number of 1 … 64, got 0"],
    ["clip.vision.projector.scale_factor", u32(0), "expected a whole number of 1 … 16, got 0"],
    ["clip.vision.projector.scale_factor", u32(5), "expected at most 4 patches to a side, got 5"],
    ["clip.vision.image_std", Float32Array.of(1, 0, 1), "expected three numbers other than 0, got [1, 0, 1]"],
    ["clip.vision.image_mean", Float32Array.of(1, 1), "expected three numbers, got [1, 1]"],
  ];
  test.each(cases)("%s = %p", (key, value, expected) =>
    withFolder(async (pathOf) => {
      const path = pathOf("projector.gguf");
      await writeGguf(path, makeProjector({ [key]: value }));
      const gguf = openGguf(path);
      try {
        expect((await failure(gguf))?.message).toContain(expected);
      } finally {
        gguf.close();
      }
    }),
  );
});

test("a factor of a whole matrix, which encoders do not apply, is refused by name", () =>
  withFolder(async (pathOf) => {
    const path = pathOf("projector.gguf");
    const made = makeProjector({});
    const factor = { quant: quants.f32, shape: [1], data: new Uint8Array(new Float32Array([2]).buffer) };
    await writeGguf(path, { ...made, tensors: [...made.tensors, { ...factor, name: "v.blk.0.attn_q.scale" }] });
    const gguf = openGguf(path);
    expect((await failure(gguf))?.message).toContain("tensor 'v.blk.0.attn_q.scale': 'gemma3' has no such weight");
    gguf.close();
  }));

goldenTest("a projector of another width than the text model's is refused", async () => {
  const [clip, text] = ["qwen3vl_merger.mmproj.gguf", "gemma3.text.gguf"].map((name) => openGguf(goldenPath(name)));
  try {
    const opened = openImageEncoder(clip!, { ...options, text: loadProgram(text!) });
    await expect(opened).rejects.toThrow("reads rows of 64, got a projector to 256");
  } finally {
    clip!.close();
    text!.close();
  }
});

const names = [
  "gemma3",
  "gemma4uv",
  "gemma4v",
  "glm4v_ocr",
  "idefics3",
  "mlp",
  "pixtral",
  "qwen2.5vl_merger",
  "qwen3vl_merger",
];

describe.each(hasGolden ? names : [])("%s", (name) => {
  const open: Gguf[] = [];
  afterAll(() => {
    for (const file of open) file.close();
  });
  const read = (): Gguf => {
    const file = openGguf(goldenPath(readProjector(name).mmproj));
    open.push(file);
    return file;
  };

  goldenTest(
    "an encoder without a tensor loads or is refused, and one with a misshapen tensor is refused",
    async () => {
      const gguf = read();
      for (const [tensor, info] of gguf.tensors) {
        const rest = new Map(gguf.tensors);
        rest.delete(tensor);
        const problem = await failure({ ...gguf, tensors: rest });
        if (problem) expect(problem.message, `without ${tensor}`).toContain("'");
        if (/_(min|max)$/.test(tensor) && !tensor.includes("blk.0")) continue;
        const other: TensorInfo = { ...info, shape: info.shape.map((size) => size + 1) };
        const misshapen = await failure({ ...gguf, tensors: new Map([...gguf.tensors, [tensor, other]]) });
        expect(misshapen?.message, `${tensor} of (${other.shape.join(", ")})`).toMatch(/expected/);
      }
    },
  );

  goldenTest("an encoder with absurd numbers in its keys loads or is refused", async () => {
    const gguf = read();
    for (const [key, value] of gguf.metadata) {
      if (typeof value !== "number") continue;
      for (const absurd of [0, -1, 1, 7, 2 ** 31, 2 ** 53, NaN, Infinity, 0.5, "x"] satisfies MetadataValue[]) {
        const problem = await failure({ ...gguf, metadata: new Map([...gguf.metadata, [key, absurd]]) });
        if (problem)
          expect(["bad_file", "unsupported"], `${key} = ${absurd}: ${problem.message}`).toContain(problem.code);
      }
    }
  });
});
