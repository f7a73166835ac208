/** The values of a good header, and the error of each kind of bad one. */
import { describe, expect, test } from "bun:test";
import { parseGguf } from "../../../../src/engine/formats/gguf/parse.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { encodeGguf, failure, patch, smallModel } from "./fixture.ts";

const small = encodeGguf(smallModel);
const fail = (bytes: Uint8Array): string => failure(() => parseGguf(bytes, "m.gguf"));
/** The same as readable lines. */
const lines = (bytes: Uint8Array): string => fail(bytes).replace(/: (?=expected)|, (?=got)|; (?=supported)/g, "\n");

test("a header gives version, metadata in file order and where each tensor lies", () => {
  const { version, metadata, tensors, dataOffset } = parseGguf(small, "m.gguf");
  expect(version).toBe(3);
  expect([...metadata]).toEqual([
    ["general.architecture", "llama"],
    ["llama.block_count", 2],
    ["llama.rope.freq_base", 10_000],
    ["tokenizer.ggml.add_bos_token", true],
    ["tokenizer.ggml.tokens", ["<s>", "▁a", "é"]],
    ["tokenizer.ggml.token_type", Int32Array.of(3, 1, 1)],
  ]);
  expect(dataOffset % 32).toBe(0);
  const common = { shard: 0 };
  expect([...tensors.values()]).toEqual([
    { ...common, name: "token_embd.weight", shape: [64, 3], quant: quants.q8_0, byteLength: 204, offset: dataOffset },
    {
      ...common,
      name: "output_norm.weight",
      shape: [64],
      quant: quants.f32,
      byteLength: 256,
      offset: dataOffset + 224,
    },
  ]);
});

test("version 2 is read like version 3", () => {
  expect(parseGguf(patch(small, { after: 4, u32: 2 }), "m.gguf").version).toBe(2);
});

test("64-bit numbers are numbers up to 2^53 and bigints beyond", () => {
  const metadata = {
    small: { u64: 7n },
    large: { u64: 2n ** 63n },
    negative: { i64: -(2n ** 60n) },
    minus: { i64: -1n },
  };
  const parsed = parseGguf(encodeGguf({ metadata, tensors: [] }), "m.gguf").metadata;
  expect([...parsed.values()]).toEqual([7, 2n ** 63n, -(2n ** 60n), -1]);
});

test("a string keeps its byte order mark, and invalid UTF-8 becomes U+FFFD", () => {
  const bytes = encodeGguf({ metadata: { "a.bom": "\uFEFFx", "a.bad": "12345", "a.list": ["\uFEFF"] }, tensors: [] });
  const bad = patch(bytes, { after: "a.bad", skip: 12, u32: 0x41ff41ff });
  expect([...parseGguf(bad, "m.gguf").metadata.values()]).toEqual(["\uFEFFx", "\uFFFDA\uFFFDA5", ["\uFEFF"]]);
});

describe("a file of another format", () => {
  test("is an error that names its magic", () => {
    expect(lines(Buffer.from("PK\x03\x04 and so on"))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: magic at byte 0
      expected 'GGUF' (bytes 47475546)
      got bytes 504b0304"
    `);
    expect(lines(new Uint8Array(2))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: magic at byte 0
      expected 'GGUF' (bytes 47475546)
      got a file of 2 bytes"
    `);
  });

  test("is an error that names its version, also for version 1 and big-endian files", () => {
    expect(lines(patch(small, { after: 4, u32: 1 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: version at byte 4
      expected 2 or 3, little-endian
      got 1, a format of 2023 that must be converted again"
    `);
    expect(lines(patch(small, { after: 4, u32: 4 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: version at byte 4
      expected 2 or 3, little-endian
      got 4"
    `);
    expect(lines(patch(small, { after: 4, u32: 3 << 24 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: version at byte 4
      expected 2 or 3, little-endian
      got 3 in big-endian order, which is not supported"
    `);
  });

  test("is an error that names the truncated field, at every length", () => {
    expect(lines(small.subarray(0, 20))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata count at byte 16
      expected 8 bytes
      got 4 before the end at byte 20"
    `);
    expect(lines(small.subarray(0, 120))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata key 2 at byte 110
      expected 20 bytes
      got 10 before the end at byte 120"
    `);
    expect(lines(small.subarray(0, -32))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'output_norm.weight' at byte 375
      expected its 256 bytes inside the file's 896
      got an end at 928: truncated or damaged"
    `);
    const { dataOffset } = parseGguf(small, "m.gguf");
    for (let length = 0; length < dataOffset; length++)
      expect(fail(small.subarray(0, length))).toStartWith("bad_file: m.gguf: ");
  });
});

describe("invalid metadata", () => {
  test("with counts over the limits is refused before allocation", () => {
    expect(lines(patch(small, { after: 8, u64: 2n ** 40n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor count at byte 8
      expected at most 65536
      got 1099511627776"
    `);
    expect(lines(patch(small, { after: 16, u64: 2n ** 64n - 1n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata count at byte 16
      expected at most 65536
      got 18446744073709551615"
    `);
    expect(lines(patch(small, { after: 24, u64: 2n ** 33n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: length of metadata key 0 at byte 24
      expected at most 65535
      got 8589934592"
    `);
    expect(lines(patch(small, { after: "general.architecture", skip: 4, u64: 2n ** 24n + 1n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: length of metadata 'general.architecture' at byte 56
      expected at most 16777216
      got 16777217"
    `);
    expect(lines(patch(small, { after: "ggml.tokens", skip: 8, u64: 2n ** 53n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'tokenizer.ggml.tokens' at byte 216
      expected at most 9007199254740991
      got 9007199254740992"
    `);
    expect(lines(patch(small, { after: "ggml.tokens", skip: 8, u64: 2_000n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'tokenizer.ggml.tokens' at byte 216
      expected at most the 88 items that fit the rest of the file
      got 2000"
    `);
    expect(lines(patch(small, { after: "ggml.tokens", skip: 16, u64: 2n ** 32n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: length of metadata 'tokenizer.ggml.tokens', item 0 at byte 224
      expected at most 16777216
      got 4294967296"
    `);
    expect(lines(patch(small, { after: "ggml.token_type", skip: 8, u64: 200n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'tokenizer.ggml.token_type' at byte 298
      expected at most the 155 items that fit the rest of the file
      got 200"
    `);
  });

  test("with a string over 16 MiB is refused, also in a list and even if the file holds it", () => {
    const long = "x".repeat(2 ** 24 + 1);
    for (const value of [long, [long]]) {
      expect(fail(encodeGguf({ metadata: { long: value }, tensors: [] }))).toEndWith("at most 16777216, got 16777217");
    }
  });

  test("with more than 4,194,304 strings is refused, even if the file holds them", () => {
    const many = 4 * 2 ** 20 + 1;
    const head = encodeGguf({ metadata: { list: [""] }, tensors: [] }).subarray(0, 24 + 8 + 4 + 4 + 4);
    const bytes = Buffer.concat([head, new Uint8Array(8 + many * 8)]);
    bytes.writeBigUInt64LE(BigInt(many), head.length);
    expect(lines(bytes)).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'list' at byte 44
      expected at most 4194304 strings and bools and 4096 nested arrays in all
      got 4194305 more"
    `);
  });

  test("with an unknown type, a bool other than 0 and 1, or too deep arrays is refused", () => {
    expect(lines(patch(small, { after: "llama.block_count", u32: 13 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'llama.block_count' at byte 94
      expected a value type from 0 to 12
      got 13"
    `);
    expect(lines(patch(small, { after: "ggml.tokens", skip: 4, u32: 77 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'tokenizer.ggml.tokens' at byte 212
      expected an item type from 0 to 12
      got 77"
    `);
    expect(lines(patch(small, { after: "add_bos_token", skip: 4, u32: 2 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'tokenizer.ggml.add_bos_token' at byte 178
      expected 0 or 1 for a bool
      got 2"
    `);
    expect(lines(encodeGguf({ metadata: { deep: [[[[Uint8Array.of(1)]]]] }, tensors: [] }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata 'deep' at byte 88
      expected arrays at most 4 deep
      got another level"
    `);
  });

  test("with a repeated or an empty key is refused", () => {
    const twice = encodeGguf({ metadata: { "a.key.1": true, "a.key.2": true }, tensors: [] });
    expect(lines(Buffer.from(twice.toString("latin1").replace("a.key.2", "a.key.1"), "latin1"))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata key 1 at byte 44
      expected a new name
      got 'a.key.1' again"
    `);
    expect(lines(encodeGguf({ metadata: { "": true }, tensors: [] }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: metadata key 0 at byte 24
      expected a new name
      got an empty one"
    `);
  });

  test("with an alignment that is no power of two is refused", () => {
    const aligned = encodeGguf({ ...smallModel, metadata: { "general.alignment": { u32: 64 } } });
    expect([...parseGguf(aligned, "m.gguf").tensors.values()].map(({ offset }) => offset % 64)).toEqual([0, 0]);
    for (const u32 of [0, 3, 48, 2 ** 31]) {
      expect(fail(patch(aligned, { after: "general.alignment", skip: 4, u32 }))).toEndWith(`up to 2097152, got ${u32}`);
    }
    expect(fail(patch(aligned, { after: "general.alignment", u32: 6 }))).toEndWith("got 8.96831017167883e-44"); // f32
  });
});

describe("a tensor", () => {
  const weight = "token_embd.weight"; // then u32 dims, u64 64, u64 3, u32 type, u64 offset
  const norm = "output_norm.weight"; // then u32 dims, u64 64, u32 type, u64 offset

  test("must have 1 to 4 dimensions above 0", () => {
    expect(lines(patch(small, { after: weight, u32: 5 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'token_embd.weight' at byte 343
      expected 1 to 4 dimensions
      got 5"
    `);
    expect(lines(patch(small, { after: weight, u32: 0 }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'token_embd.weight' at byte 343
      expected 1 to 4 dimensions
      got 0"
    `);
    expect(lines(patch(small, { after: weight, skip: 12, u64: 0n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'token_embd.weight', dimension 1 at byte 355
      expected at least 1
      got 0"
    `);
    expect(lines(patch(small, { after: weight, skip: 12, u64: 2n ** 63n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'token_embd.weight', dimension 1 at byte 355
      expected at most 9007199254740991
      got 9223372036854775808"
    `);
  });

  test("must have rows of whole blocks", () => {
    expect(lines(patch(small, { after: weight, skip: 4, u64: 48n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'token_embd.weight' at byte 318
      expected rows of whole q8_0 blocks of 32
      got rows of 48"
    `);
  });

  test("with an unsupported block type is listed up to the next tensor's start, and reading it is an error", () => {
    for (const [type, name, reason] of [
      [9, "q8_1", "block type q8_1 (9) is not supported; supported: f32, "],
      [99, "99", "block type 99 is not known; supported: f32, "],
    ] as const) {
      const { tensors } = parseGguf(patch(small, { after: weight, skip: 20, u32: type }), "m.gguf");
      const [first, second] = [tensors.get("token_embd.weight")!, tensors.get("output_norm.weight")!];
      expect([first.quant.name, first.offset + first.byteLength]).toEqual([name, second.offset]);
      expect(first.quant.unreadable).toStartWith(reason);
      expect(() => first.quant.dequantize(new Uint8Array(1), new Float32Array(1))).toThrow(reason);
      expect(second.quant.unreadable).toBeUndefined();
    }
    const last = parseGguf(patch(small, { after: norm, skip: 12, u32: 99 }), "m.gguf").tensors.get(
      "output_norm.weight",
    )!;
    expect([last.quant.name, last.offset + last.byteLength]).toEqual(["99", small.length]);
  });

  test("must be aligned and inside the file", () => {
    expect(lines(patch(small, { after: norm, skip: 16, u64: 225n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'output_norm.weight' at byte 375
      expected an offset that is a multiple of 32
      got 225"
    `);
    expect(lines(patch(small, { after: norm, skip: 16, u64: 2n ** 50n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'output_norm.weight' at byte 375
      expected its 256 bytes inside the file's 928
      got an end at 1125899906843328: truncated or damaged"
    `);
    expect(lines(patch(small, { after: weight, skip: 12, u64: 2n ** 52n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'token_embd.weight' at byte 318
      expected its 306244774661193700 bytes inside the file's 928
      got an end at 306244774661194200: truncated or damaged"
    `);
    const whole = { fileBytes: small.length };
    expect(parseGguf(small.subarray(0, -400), "m.gguf", whole).tensors.size).toBe(2);
  });

  test("must not overlap another tensor or have its name", () => {
    expect(lines(patch(small, { after: norm, skip: 16, u64: 192n }))).toMatchInlineSnapshot(`
      "bad_file: m.gguf
      expected tensor 'output_norm.weight' after the end of 'token_embd.weight' at byte 652
      got byte 640: they overlap"
    `);
    const twins = smallModel.tensors.map((tensor, i) => ({ ...tensor, name: `tensor.${i}` }));
    const bytes = encodeGguf({ metadata: {}, tensors: twins });
    expect(lines(Buffer.from(bytes.toString("latin1").replace("tensor.1", "tensor.0"), "latin1")))
      .toMatchInlineSnapshot(`
      "bad_file: m.gguf: tensor 'tensor.0' at byte 72
      expected a new name for each tensor
      got it again"
    `);
  });
});
