import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import { parseHeader, readSafetensors, readWeights } from "../../../src/library/convert/safetensors.ts";
import { encodeSafetensors, writeFolder } from "./hugging-face.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-safetensors-"))));
afterAll(() => rm(root, { recursive: true }));

const tensor = (...shape: number[]) => ({
  dtype: "F16",
  shape,
  data: new Uint8Array(2 * shape.reduce((product, size) => product * size, 1)),
});
const place = { path: "p", label: "file", dataStart: 100, fileBytes: 200 };
const entry = (start: number, end: number, more: object = {}) => ({
  dtype: "U8",
  shape: [end - start],
  data_offsets: [start, end],
  ...more,
});

test("every tensor has its type, shape and offset", async () => {
  const path = join(root, "a.safetensors");
  await Bun.write(path, encodeSafetensors({ b: tensor(2, 3), a: tensor(), c: { ...tensor(2), dtype: "F16" } }));
  const found = await readSafetensors(path, "a");
  const dataStart = Bun.file(path).size - 12 - 2 - 4;
  expect(found).toEqual([
    { name: "b", dtype: "F16", shape: [2, 3], path, offset: dataStart, byteLength: 12 },
    { name: "a", dtype: "F16", shape: [], path, offset: dataStart + 12, byteLength: 2 },
    { name: "c", dtype: "F16", shape: [2], path, offset: dataStart + 14, byteLength: 4 },
  ]);
});

test.each([
  [new Uint8Array(7), "expected a header length of 8 bytes, got 7 bytes in all"],
  [
    Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 255, 1),
    "header length: expected 2 … 1 bytes, got 18446744073709551615",
  ],
  [Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 0, 1, 2), "header length: expected 2 … 2 bytes, got 3"],
  [Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 123, 123), "header: not JSON"],
  [Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 91, 93), "header: expected an object, got []"],
])("a damaged header is refused: %#", async (bytes, message) => {
  const path = join(root, `${crypto.randomUUID()}.safetensors`);
  await Bun.write(path, bytes);
  await expect(readSafetensors(path, "file")).rejects.toThrow(`file: ${message}`);
});

test.each([
  [{ a: 1 }, "tensor 'a': expected an object, got 1"],
  [{ a: entry(0, 4, { dtype: 5 }) }, "tensor 'a': expected a dtype, got 5"],
  [{ a: entry(0, 4, { shape: [-4] }) }, "tensor 'a': expected a shape of at most 8 sizes, got [-4]"],
  [{ a: entry(0, 4, { shape: Array(9).fill(1) }) }, "tensor 'a': expected a shape of at most 8 sizes, got [1,1"],
  [{ a: entry(0, 4, { data_offsets: [0] }) }, "tensor 'a': expected data_offsets of a start and an end, got [0]"],
  [{ a: entry(0, 101) }, "tensor 'a': expected data_offsets within the 100 bytes of data, got [0,101]"],
  [{ a: entry(5, 4, { shape: [1] }) }, "tensor 'a': expected data_offsets within the 100 bytes of data, got [5,4]"],
  [{ a: entry(0, 4, { dtype: "F32" }) }, "tensor 'a': expected 16 bytes for (4) of F32, got 4"],
  [{ a: entry(0, 4, { shape: [2 ** 40, 2 ** 40] }) }, "bytes for (1099511627776, 1099511627776) of U8, got 4"],
  [{ a: entry(0, 8), b: entry(7, 9) }, "expected tensors that do not overlap, got: 'a' and 'b' share bytes"],
])("an invalid entry is refused: %j", (header, message) => {
  expect(() => parseHeader(JSON.stringify(header), place)).toThrow(message);
});

test("any header gives tensors inside the data or an AppError", () => {
  const size = fc.oneof(fc.nat(12), fc.integer(), fc.constantFrom(2 ** 53, 1.5, "1", null));
  const entries = fc.dictionary(
    fc.string(),
    fc.oneof(
      fc.jsonValue(),
      fc.record({
        dtype: fc.constantFrom("U8", "F16", "F32", "F4", "x"),
        shape: fc.array(size, { maxLength: 3 }),
        data_offsets: fc.array(size, { maxLength: 3 }),
      }),
      fc.tuple(fc.nat(60), fc.nat(60)).map(([start, length]) => entry(start, start + length)),
    ),
    { maxKeys: 4 },
  );
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        entries.map((value) => JSON.stringify(value)),
        fc.string(),
      ),
      (text) => {
        try {
          const tensors = parseHeader(text, place);
          if (tensors.length > 0) accepted++;
          for (const { offset, byteLength } of tensors) {
            expect(offset >= 100 && byteLength >= 0 && offset + byteLength <= 200).toBe(true);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
          expect((error as AppError).code).toBe("bad_file");
        }
      },
    ),
    { numRuns: 2000 },
  );
  expect(accepted).toBeGreaterThan(10);
});

test("an index maps tensors to files, and its files and tensors must exist", async () => {
  const folder = await writeFolder(join(root, "sharded"), {
    "model-00001-of-00002.safetensors": encodeSafetensors({ a: tensor(1) }),
    "model-00002-of-00002.safetensors": encodeSafetensors({ b: tensor(2) }),
  });
  const source = { ...folder, label: "folder" };
  const [first, second] = [...folder.files.keys()];
  const names = async (index?: object) =>
    (await readWeights(source, index && { weight_map: index })).map(({ name }) => name);
  expect(await names({ a: first, b: second })).toEqual(["a", "b"]);
  expect(await names()).toEqual(["a", "b"]);
  await expect(names({ a: first, b: first })).rejects.toThrow(
    `tensor 'b': expected in '${first}', where the index has it`,
  );
  await expect(names({ a: "../../etc/passwd" })).rejects.toThrow("expected '../../etc/passwd', which its index names");
  await expect(names({ a: 1 })).rejects.toThrow("'weight_map' of the index: expected file names by tensor");
  const one = { label: "folder", files: new Map([...folder.files].slice(0, 1)) };
  await expect(readWeights(one, undefined)).rejects.toThrow(`expected all 2 parts of the weights, got ${first}`);
  await expect(readWeights({ label: "folder", files: new Map() }, undefined)).rejects.toThrow(
    "folder: expected a file '*.safetensors', got none",
  );
});
