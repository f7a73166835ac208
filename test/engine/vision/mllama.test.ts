/**
 * The image encoder of Llama 3.2 Vision in files of other converters, and in damaged ones. Its rows are compared with
 * the original's in test/library/convert/originals.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { writeImage, writeImageLogits } from "../../../src/cli/diagnostics/image-diagnostics.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { Gguf, MetadataValue, TensorInfo } from "../../../src/engine/formats/gguf/gguf.ts";
import { projectorGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import { openImageEncoder, type ImageEncoder } from "../../../src/engine/vision/index.ts";
import { convertOriginal, readOriginals } from "../../library/convert/originals.ts";
import { picture } from "./vision-model.ts";
import { seenBy } from "../../library/convert/pictures.ts";

const original = (await readOriginals())["Mllama-images"]!;
let folder = "";
let gguf: Gguf;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-mllama-"));
  gguf = openGguf(await convertOriginal(folder, { name: "model", original }));
});
afterAll(async () => {
  gguf.close();
  await rm(folder, { recursive: true });
});

/** The same file with other names of tensors. */
function renamed(name: (own: string) => string): Gguf {
  const own = new Map([...gguf.tensors.keys()].map((each) => [name(each), each]));
  return {
    ...gguf,
    tensors: new Map([...own].map(([to, from]) => [to, { ...gguf.tensors.get(from)!, name: to }])),
    read: (each) => gguf.read(own.get(each)!),
    readRange: (each, ...range) => gguf.readRange(own.get(each)!, ...range),
  };
}

const withTensors = (change: (tensors: Map<string, TensorInfo>) => void): Gguf => {
  const tensors = new Map(gguf.tensors);
  change(tensors);
  return { ...gguf, tensors };
};

const open = (file: Gguf): Promise<ImageEncoder> =>
  openImageEncoder(projectorGguf(file)!, { backend: cpuBackend, text: undefined, threads: 1 });

const failure = (file: Gguf): Promise<string> =>
  open(file).then(
    (encoder) => (encoder.close(), "opened"),
    (error: Error) => error.message,
  );

test("Ollama's earlier files, with other names and swapped MLP matrices, give the reference's rows", async () => {
  const OTHER = { attn_norm: "ln1", ffn_norm: "ln2", attn_output: "attn_out", ffn_up: "ffn_down", ffn_down: "ffn_up" };
  const file = renamed((name) => {
    if (!name.startsWith("v.")) return name;
    return name.replace(/[a-z_]+(?=\.(weight|bias)$)/, (part) => OTHER[part as keyof typeof OTHER] ?? part);
  });
  expect(file.tensors.has("v.global.blk.1.ln2.bias")).toBe(true);
  const pictures = original.pictures!.slice(-1);
  const [seen] = await seenBy(cpuBackend, { gguf: file, program: loadProgram(gguf), pictures });
  expect(seen!.error).toBeLessThan(1e-11);
});

const cases: readonly (readonly [key: string, value: MetadataValue | undefined, expected: string])[] = [
  ["max_num_tiles", 0, "'clip.vision.max_num_tiles': expected a whole number of 1 … 64, got 0"],
  ["max_num_tiles", 4_000_000_000, "expected a whole number of 1 … 64, got 4000000000"],
  ["max_num_tiles", 64, "tensor 'v.pre_tile_position_embd.weight': expected (2048, 281), got (128, 9)"],
  ["max_num_tiles", 2, "tensor 'v.pre_tile_position_embd.weight': expected (64, 4), got (128, 9)"],
  ["image_size", 29, "expected a multiple of 'clip.vision.patch_size', 7, got 29"],
  ["image_size", 2800, "expected tiles of 160008 rows, together at most 25728, got 4 tiles"],
  ["num_channels", 4, "'clip.vision.num_channels': expected a whole number of 3 … 3, got 4"],
  ["intermediate_layers_indices", undefined, "expected ascending numbers of some of 4 layers, got undefined"],
  ["intermediate_layers_indices", Int32Array.of(1, 4), "numbers of some of 4 layers, got [1, 4]"],
  ["intermediate_layers_indices", Int32Array.of(3, 1), "numbers of some of 4 layers, got [3, 1]"],
  ["intermediate_layers_indices", Int32Array.of(-1, 1), "numbers of some of 4 layers, got [-1, 1]"],
  ["intermediate_layers_indices", Int32Array.of(1), "tensor 'mm.0.weight': expected (64, 64), got (96, 64)"],
  ["global.block_count", 3, "tensor 'v.global.blk.2.ln1.weight': expected (32), got none"],
  ["global.block_count", 1, "tensor 'v.global.blk.1.attn_gate': 'mllama' has no such weight"],
  ["global.block_count", 257, "'clip.vision.global.block_count': expected a whole number of 0 … 256, got 257"],
];
test.each(cases)("an encoder with %s = %p is refused before allocation", async (name, value, expected) => {
  const metadata = new Map(gguf.metadata);
  if (value === undefined) metadata.delete(`mllama.vision.${name}`);
  else metadata.set(`mllama.vision.${name}`, value);
  expect(await failure({ ...gguf, metadata })).toContain(expected);
});

test("an encoder without a tensor, or with a misshapen one, is refused by the tensor's name", async () => {
  const NAMES: readonly (readonly [RegExp, string])[] = [
    [/\.attn_output\./, ".attn_out."],
    [/\.attn_norm\./, ".ln1."],
    [/\.ffn_norm\./, ".ln2."],
  ];
  const own = [...gguf.tensors].filter(([name]) => /^(v|mm)\./.test(name));
  expect(own.length).toBeGreaterThan(90);
  for (const [name, info] of own) {
    const shown = NAMES.reduce((text, [from, to]) => text.replace(from, to), name);
    const isOptional = name.endsWith(".bias");
    const without = await failure(withTensors((tensors) => tensors.delete(name)));
    if (!isOptional) expect(without, `without ${name}`).toContain(`tensor '${shown}'`);
    const shape = [...info.shape.slice(0, -1), info.shape.at(-1)! + 1];
    const wrong = await failure(withTensors((tensors) => tensors.set(name, { ...info, shape })));
    expect(wrong, `${name} of (${shape.join(", ")})`).toMatch(/tensor '.*': expected/);
  }
});

test.each([
  [{ width: 4000, height: 1 }, [112, 28]],
  [{ width: 1, height: 4000 }, [28, 112]],
  [{ width: 1, height: 1 }, [28, 28]],
] as const)("an image of %j is put on a canvas of whole tiles", async (size, canvas) => {
  const encoder = await open(gguf);
  const [pixels] = encoder.pixels({ ...size, data: new Uint8Array(size.width * size.height * 3).fill(255) });
  expect([pixels!.width, pixels!.height]).toEqual([...canvas]);
  expect(encoder.layout(size)).toEqual([{ kind: "rows", rows: 1, positions: 1 }]);
  encoder.close();
});

test("`hearth image` writes the rows of an image for cross attention, and `hearth logits` refuses such an image", async () => {
  const [image, embeddings] = [join(folder, "picture.png"), join(folder, "rows.f32")];
  await Bun.write(image, picture(1, 60, 25));
  const options = { projector: gguf.path, image, backend: "cpu", threads: 1 };
  expect(await writeImage({ ...options, embeddings })).toMatchObject({ pixels: [[3, 28, 84]], embeddings: [51, 64] });
  expect(Bun.file(embeddings).size).toBe(4 * 51 * 64);
  const asked = { ...options, model: gguf.path, text: "<__media__>", out: join(folder, "logits.f32"), precise: true };
  await expect(writeImageLogits(asked)).rejects.toThrow("got one that attends to them");
});
