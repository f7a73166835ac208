import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { mergeShards } from "../../../../src/engine/formats/files/merge-shards.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { encodeGguf, withFolder, type MemoryModel } from "../gguf/fixture.ts";

const tensor = (name: string, length: number, seed: number): MemoryModel["tensors"][number] => ({
  name,
  shape: [length],
  quant: quants.f32,
  data: Uint8Array.from({ length: length * 4 }, (_, i) => (i * 31 + (i >> 8) * 7 + (i >> 16) + seed) & 0xff),
});

const metadata: MemoryModel["metadata"] = {
  "general.architecture": "llama",
  "split.no": { u16: 0 },
  "a.strings": ["x", "", "é"],
  "a.bools": [true, false],
  "a.nested": [new Int32Array([1, 2]), new Int32Array([3])],
  "split.count": { u16: 3 },
  "split.tensors.count": { i32: 3 },
  "a.number": { f64: 0.5 },
};
/** The first part has no tensors, as `--no-tensor-first-split` makes it. */
const parts = (extra: MemoryModel["metadata"] = {}): MemoryModel[] => [
  { metadata: { ...metadata, ...extra }, tensors: [] },
  {
    metadata: { "split.no": { u16: 1 }, "split.count": { u16: 3 } },
    tensors: [tensor("a", 7, 1), tensor("b", 400_000, 2)],
  },
  { metadata: { "split.no": { u16: 2 }, "split.count": { u16: 3 } }, tensors: [tensor("c", 3, 3)] },
];

async function merged(models: readonly MemoryModel[], path: (name: string) => string): Promise<string> {
  const paths = models.map((_, i) => path(`sha256-${i}`)); // names without meaning
  for (const [i, model] of models.entries()) await writeFile(paths[i]!, encodeGguf(model));
  const chunks: Uint8Array[] = [];
  for await (const chunk of mergeShards(paths)) chunks.push(chunk.slice());
  await writeFile(path("merged"), Buffer.concat(chunks));
  return path("merged");
}

test.each([[32], [64]])("parts become one file with all metadata and tensors, aligned to %d", (alignment) =>
  withFolder(async (path) => {
    const extra: MemoryModel["metadata"] = alignment === 32 ? {} : { "general.alignment": { u32: alignment } };
    const gguf = openGguf(await merged(parts(extra), path));
    expect(Object.fromEntries(gguf.metadata)).toEqual({
      "general.architecture": "llama",
      "split.no": 0,
      "a.strings": ["x", "", "é"],
      "a.bools": [true, false],
      "a.nested": [new Int32Array([1, 2]), new Int32Array([3])],
      "split.count": 0,
      "split.tensors.count": 3,
      "a.number": 0.5,
      ...(alignment === 32 ? {} : { "general.alignment": 64 }),
    });
    for (const part of parts()) {
      for (const { name, data, shape } of part.tensors) {
        expect(gguf.tensors.get(name)!.shape).toEqual(shape);
        expect(gguf.tensors.get(name)!.offset % alignment).toBe(0);
        expect(Buffer.compare(gguf.read(name), data)).toBe(0);
      }
    }
    gguf.close();
  }),
);

test("parts that do not belong together are refused", () =>
  withFolder(async (path) => {
    const [first, second, third] = parts() as [MemoryModel, MemoryModel, MemoryModel];
    await expect(merged([first, third, second], path)).rejects.toThrow("expected part 2 of 3, got part 3 of 3");
    await expect(merged([first, second], path)).rejects.toThrow("expected part 1 of 2, got part 1 of 3");
    const twice = { ...third, tensors: [tensor("a", 3, 3)] };
    await expect(merged([first, second, twice], path)).rejects.toThrow("tensor 'a' is also in an earlier part");
  }));
