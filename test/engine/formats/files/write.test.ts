/** Written values are read back unchanged, and a file appears complete or not at all. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { dirname } from "node:path";
import fc from "fast-check";
import type { MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { parseGguf } from "../../../../src/engine/formats/gguf/parse.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { encodeHeader, writeGguf, type WriteValue } from "../../../../src/engine/formats/files/write.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { encodeGguf, smallModel, withFolder, type MemoryModel } from "../gguf/fixture.ts";

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const numbers = fc.oneof(
  fc.uint8Array(),
  fc.int8Array(),
  fc.uint16Array(),
  fc.int16Array(),
  fc.uint32Array(),
  fc.int32Array(),
  fc.float32Array(),
  fc.float64Array(),
  fc.bigInt64Array(),
  fc.bigUint64Array(),
);
const scalar = fc.oneof(
  fc.record({ u8: fc.nat(255) }),
  fc.record({ i8: fc.integer({ min: -128, max: 127 }) }),
  fc.record({ u16: fc.nat(65_535) }),
  fc.record({ i16: fc.integer({ min: -32_768, max: 32_767 }) }),
  fc.record({ u32: fc.nat(2 ** 32 - 1) }),
  fc.record({ i32: fc.integer() }),
  fc.record({ f32: fc.float() }),
  fc.record({ u64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
  fc.record({ i64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
  fc.record({ f64: fc.double() }),
);
const list = fc.oneof(fc.array(text), fc.array(fc.boolean()), fc.array(numbers), fc.array(fc.array(text)));
const value: fc.Arbitrary<WriteValue> = fc.oneof(text, fc.boolean(), numbers, scalar, list);
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });

const tensor = fc
  .record({
    name,
    quant: fc.constantFrom(...Object.values(quants)),
    blocks: fc.integer({ min: 1, max: 3 }),
    rows: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
    fill: fc.nat(255),
  })
  .map(({ name, quant, blocks, rows, fill }) => ({
    name,
    quant,
    shape: [blocks * quant.blockLen, ...rows],
    data: new Uint8Array(blocks * rows.reduce((a, b) => a * b, 1) * quant.blockBytes).fill(fill),
  }));

const model: fc.Arbitrary<MemoryModel> = fc.record({
  metadata: fc
    .tuple(fc.dictionary(name, value, { noNullPrototype: true }), fc.constantFrom(1, 8, 32, 4096))
    .map(([metadata, u32]): MemoryModel["metadata"] => ({ ...metadata, "general.alignment": { u32 } })),
  tensors: fc.uniqueArray(tensor, { selector: (each) => each.name, maxLength: 6 }),
});

/** The value that is read back: a number with an explicit type loses it. */
function readAs(value: WriteValue): MetadataValue {
  if (typeof value !== "object" || Array.isArray(value) || ArrayBuffer.isView(value)) return value;
  const number = Object.values(value)[0] as number | bigint; // one key
  return typeof number === "bigint" && Number.isSafeInteger(Number(number)) ? Number(number) : number;
}

test("any metadata and tensors are read back as written", () => {
  fc.assert(
    fc.property(model, (written) => {
      const bytes = encodeGguf(written);
      const { metadata, tensors } = parseGguf(bytes, "m.gguf");
      expect([...metadata.keys()]).toEqual(Object.keys(written.metadata));
      for (const [key, each] of Object.entries(written.metadata)) expect(metadata.get(key)).toEqual(readAs(each));
      expect([...tensors.keys()]).toEqual(written.tensors.map((each) => each.name));
      for (const { name, shape, quant, data } of written.tensors) {
        const info = tensors.get(name)!;
        expect({ shape: info.shape, quant: info.quant }).toEqual({ shape, quant });
        expect(Buffer.compare(bytes.subarray(info.offset, info.offset + info.byteLength), data)).toBe(0);
      }
    }),
    { numRuns: 300, seed: 20_261_121 },
  );
});

test("tensor data may come in pieces, from a list or an async generator", () =>
  withFolder(async (path) => {
    const [embedding, norm] = smallModel.tensors;
    async function* later() {
      for (let i = 0; i < 204; i += 51) {
        await Bun.sleep(0);
        yield embedding!.data.subarray(i, i + 51);
      }
    }
    const pieces = [norm!.data.subarray(0, 100), norm!.data.subarray(100)];
    await writeGguf(path("m.gguf"), {
      ...smallModel,
      tensors: [
        { ...embedding!, data: later() },
        { ...norm!, data: pieces },
      ],
    });
    expect(Buffer.compare(await Bun.file(path("m.gguf")).bytes(), encodeGguf(smallModel))).toBe(0);
    expect(readdirSync(dirname(path("m.gguf")))).toEqual(["m.gguf"]);
  }));

test("a header larger than the first buffer is written whole", () => {
  const tokens = Array.from({ length: 20_000 }, (_, i) => `token ${i}`);
  const bytes = encodeGguf({ metadata: { tokens, scores: Float32Array.from(tokens, (_, i) => i) }, tensors: [] });
  const { metadata } = parseGguf(bytes, "m.gguf");
  expect(metadata.get("tokens")).toEqual(tokens);
  expect((metadata.get("scores") as Float32Array)[19_999]).toBe(19_999);
});

test("writing replaces a file only once complete, and leaves no file when it fails", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), smallModel);
    async function* broken() {
      yield new Uint8Array(100);
      throw new Error("disk on fire");
    }
    const tensors = [{ ...smallModel.tensors[0]!, data: broken() }];
    await expect(writeGguf(path("m.gguf"), { ...smallModel, tensors })).rejects.toThrow("disk on fire");
    const short = [{ ...smallModel.tensors[0]!, data: new Uint8Array(203) }];
    await expect(writeGguf(path("new.gguf"), { ...smallModel, tensors: short })).rejects.toThrow("data of 203 bytes");
    expect(existsSync(path("new.gguf"))).toBe(false);
    expect(readdirSync(dirname(path("m.gguf")))).toEqual(["m.gguf"]);
    const gguf = openGguf(path("m.gguf"));
    expect(gguf.tensors.size).toBe(2);
    gguf.close();
  }));

test("tensors and metadata that no reader accepts are refused", () => {
  const tensor = smallModel.tensors[0]!;
  const encode = (change: object) => () => encodeHeader({ metadata: {}, tensors: [{ ...tensor, ...change }] });
  expect(encode({ shape: [48] })).toThrow("not whole q8_0 blocks");
  expect(encode({ shape: [16, 2] })).toThrow("not whole q8_0 blocks");
  expect(encode({ shape: [64, 0] })).toThrow("not whole q8_0 blocks");
  expect(() => encodeHeader({ metadata: {}, tensors: [tensor, tensor] })).toThrow("two tensors of one name");
  expect(() => encodeHeader({ metadata: { mixed: ["a", true] as never }, tensors: [] })).toThrow("mixed types");
  expect(() => encodeHeader({ metadata: { "general.alignment": { u32: 33 } }, tensors: [] })).toThrow("power of two");
});
