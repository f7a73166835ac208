/** Damaged or malicious audio encoders: one clear error each, before any size is used. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppError } from "../../../src/base/errors.ts";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel, type WriteValue } from "../../../src/engine/formats/files/write.ts";
import type { Gguf, TensorInfo } from "../../../src/engine/formats/gguf/gguf.ts";
import { openAudioEncoder } from "../../../src/engine/hearing/index.ts";
import type { Program } from "../../../src/engine/program/backend.ts";
import { makeModel } from "../architectures/models.ts";
import { HEARD_DIM, KINDS, makeAudioEncoder, recordingOf } from "./audio-model.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-ears-"))));
afterAll(() => rm(folder, { recursive: true }));

async function withFile<T>(model: WriteModel, use: (gguf: Gguf) => Promise<T>): Promise<T> {
  const path = join(folder, "model.gguf");
  await writeGguf(path, model);
  const gguf = openGguf(path);
  try {
    return await use(gguf);
  } finally {
    gguf.close();
  }
}

/** The message of the error of opening; undefined if it opens. */
async function failure(gguf: Gguf, text?: Program): Promise<string | undefined> {
  try {
    (await openAudioEncoder(gguf, { backend: simdBackend, text, threads: 1, signal: undefined })).close();
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error; // an unexpected failure
  }
}

const u32 = (value: number): WriteValue => ({ u32: value });

test.each<[kind: (typeof KINDS)[number], key: string, value: WriteValue, expected: string]>([
  ["qwen2a", "clip.has_audio_encoder", false, "'clip.has_audio_encoder': expected an encoder of recordings, got none"],
  ["qwen2a", "clip.projector_type", "telepathy", "'clip.audio.projector_type': expected one of gemma4a, gemma4ua"],
  [
    "qwen2a",
    "clip.audio.num_mel_bins",
    u32(0),
    "'clip.audio.num_mel_bins': expected a whole number of 1 … 1024, got 0",
  ],
  ["qwen2a", "clip.audio.num_mel_bins", u32(81), "tensor 'a.conv1d.1.weight': expected (3, 81, 32), got (3, 80, 32)"],
  ["qwen2a", "clip.audio.block_count", u32(3), "tensor 'a.blk.2.ln1.weight': expected (32), got none"],
  ["qwen2a", "clip.audio.block_count", u32(1), "tensor 'a.blk.1.ln1.weight': 'qwen2a' has no such weight"],
  [
    "qwen2a",
    "clip.audio.attention.head_count",
    u32(3),
    "'clip.audio.attention.head_count': expected heads that divide",
  ],
  [
    "gemma4a",
    "clip.audio.attention.head_count",
    u32(0),
    "'clip.audio.attention.head_count': expected heads that divide",
  ],
  ["voxtral", "clip.audio.projector.stack_factor", u32(0), "expected a whole number of 1 … 64, got 0"],
  ["voxtral", "clip.audio.projector.stack_factor", u32(5), "tensor 'mm.a.mlp.1.weight': expected (160, 48)"],
  ["qwen3a", "clip.audio.num_mel_bins", u32(1024), "tensor 'a.conv_out.weight': expected (768, 32), got (96, 32)"],
])("%s with %s = %p", (kind, key, value, expected) => {
  const { metadata, tensors } = makeAudioEncoder(kind);
  const model = { metadata: { ...metadata, [key]: value }, tensors };
  return withFile(model, async (gguf) => expect(await failure(gguf)).toContain(expected));
});

test("an encoder without a tensor loads or is refused, and one with a misshapen tensor is refused by its name", async () => {
  for (const kind of KINDS)
    await withFile(makeAudioEncoder(kind), async (gguf) => {
      expect(await failure(gguf)).toBeUndefined();
      for (const [tensor, info] of gguf.tensors) {
        if (/blk\.1\./.test(tensor)) continue; // like the first layer's
        const rest = new Map(gguf.tensors);
        rest.delete(tensor);
        const without = await failure({ ...gguf, tensors: rest });
        if (without !== undefined) expect(without, `${kind} without ${tensor}`).toContain("'");
        const other: TensorInfo = { ...info, shape: info.shape.map((size) => size + 1) };
        const misshapen = await failure({ ...gguf, tensors: new Map([...gguf.tensors, [tensor, other]]) });
        expect(misshapen, `${kind} with another ${tensor}`).toContain("tensor '");
      }
    });
});

describe("for a text model", () => {
  const textOf = (name: string): Promise<Program> => withFile(makeModel(name), async (gguf) => loadProgram(gguf));

  test("with rows of another width, an encoder is refused", async () => {
    const text = await textOf("gemma3");
    const refused = withFile(makeAudioEncoder("gemma4ua"), (gguf) => failure(gguf, text));
    expect(await refused).toContain(`reads rows of 64, got an encoder to ${HEARD_DIM}`);
  });

  test("with layers that add parts of image rows, a recording's rows have zeros there", async () => {
    const text = await textOf("gemma3");
    const [first] = text.steps;
    if (first?.op !== "embed") throw new Error("a text model begins with its embedding");
    const narrow = { ...first, out: { ...first.out, dim: HEARD_DIM } };
    const deep: Program = {
      ...text,
      shape: { ...text.shape, dim: HEARD_DIM },
      steps: [narrow, { op: "addGiven", x: narrow.out, at: HEARD_DIM }],
    };
    await withFile(makeAudioEncoder("gemma4ua"), async (gguf) => {
      const options = { backend: simdBackend, threads: 1, signal: undefined };
      const samples = recordingOf(0.1);
      const [plain, wide] = [
        await openAudioEncoder(gguf, { ...options, text: undefined }),
        await openAudioEncoder(gguf, { ...options, text: deep }),
      ];
      const rowsOf = async (encoder: typeof plain) => {
        const part = (await encoder.encode(samples)).find((each) => each.kind === "rows");
        return part?.kind === "rows" ? part : undefined;
      };
      const [narrowRows, wideRows] = [await rowsOf(plain), await rowsOf(wide)];
      expect([wide.dim, wideRows?.rows]).toEqual([2 * HEARD_DIM, narrowRows?.rows]);
      expect(wideRows?.vectors.subarray(0, HEARD_DIM)).toEqual(narrowRows?.vectors.subarray(0, HEARD_DIM));
      expect(wideRows?.vectors.subarray(HEARD_DIM, 2 * HEARD_DIM)).toEqual(new Float32Array(HEARD_DIM));
      for (const encoder of [plain, wide]) encoder.close();
    });
  });
});
