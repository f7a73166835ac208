import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeModel, type Graph } from "../../../../kernels/onnx/proto.ts";
import { AppError } from "../../../../src/base/errors.ts";
import { readOnnxHeader, type OnnxHeader } from "../../../../src/engine/formats/files/onnx.ts";
import { failure } from "../gguf/fixture.ts";

let path = "";
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-onnx-file-"));
  path = join(folder, "model.onnx");
});
afterAll(() => rmSync(folder, { recursive: true }));

const GRAPH: Graph = {
  nodes: [{ op: "Add", domain: "", inputs: ["x", "w"], outputs: ["y"], attributes: {} }],
  inputs: [{ name: "x", type: "float", shape: ["batch_size", 4] }],
  outputs: [{ name: "y", type: "float", shape: ["batch_size", 4] }],
  initializers: [
    { name: "w", type: "float", shape: [3, 4], data: { external: "a.onnx_data", offset: 0, byteLength: 48 } },
    { name: "packed", type: "uint8", shape: [2, 1, 16], data: new Uint8Array(32) },
    { name: "bias", type: "float", shape: [4], data: new Uint8Array(16) },
  ],
};

const read = (bytes: Uint8Array): OnnxHeader => {
  writeFileSync(path, bytes);
  return readOnnxHeader(path);
};
const said = (bytes: Uint8Array): string => failure(() => read(bytes)).replace(path, "F");

/** A field of bytes, as protobuf writes it. */
const field = (number: number, content: Uint8Array): Uint8Array => {
  const size = content.length;
  return Buffer.concat([
    Uint8Array.of((number << 3) | 2, (size & 127) | 128, ((size >> 7) & 127) | 128, size >> 14),
    content,
  ]);
};

test("a header has inputs, outputs, files of weights, parameter count and type", () => {
  expect(read(writeModel(GRAPH))).toMatchObject({
    inputs: ["x"],
    outputs: ["y"],
    external: new Set(["a.onnx_data"]),
    parameterCount: 12 + 2 * 32, // vectors are not counted, packed types have two values in a byte
    dataType: "F32",
  });
});

test("files of weights are found in graphs inside nodes and in sparse tensors", () => {
  const location = (name: string): Uint8Array =>
    field(13, Buffer.concat([field(1, Buffer.from("location")), field(2, Buffer.from(name))]));
  const inNode = (tensor: Uint8Array): Uint8Array => field(1, field(5, field(6, field(1, field(5, field(5, tensor))))));
  const graph = field(7, Buffer.concat([inNode(location("deep")), field(15, field(1, location("sparse")))]));
  const whole = Buffer.concat([writeModel(GRAPH), graph]);
  expect(read(whole).external).toEqual(new Set(["a.onnx_data", "deep", "sparse"]));
});

describe("a bad ONNX file", () => {
  const whole = writeModel(GRAPH);

  test("truncated, changed or random gives a value or an AppError", () => {
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.nat(whole.length - 1).map((end) => whole.slice(0, end)),
      fc.tuple(fc.nat(whole.length - 1), fc.nat(255)).map(([at, value]) => whole.slice().fill(value, at, at + 1)),
    );
    fc.assert(
      fc.property(hostile, (bytes) => {
        try {
          read(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
        }
      }),
      { numRuns: 400 },
    );
  });

  test("gives an error with the expectation and the offset", () => {
    expect(said(Buffer.from("GGUF and more"))).toStartWith("bad_file: F: offset");
    expect(said(new Uint8Array(0))).toBe("bad_file: F: expected a graph with outputs, got none: no ONNX model");
    expect(said(whole.slice(0, -40))).toMatch(/^bad_file: F: offset \d+: a field of \d+ bytes, where \d+ are left$/);
    let deep: Uint8Array = new Uint8Array(0);
    for (let i = 0; i < 20; i++) deep = field(1, field(5, field(6, deep)));
    expect(said(field(7, deep))).toBe("bad_file: F: expected at most 16 messages within each other, got more");
    const dims = Buffer.from([0x08, ...Array<number>(9).fill(0xff), 1]); // −1 elements
    const shape = field(7, field(5, Buffer.concat([dims, dims, Uint8Array.of(0x10, 1)])));
    expect(said(Buffer.concat([whole, shape]))).toBe("bad_file: F: a tensor of the shape (Infinity, Infinity)");
    const packed = field(1, Buffer.concat([new Uint8Array(33), Buffer.alloc(11, 0xff)])); // the rest is not read
    expect(said(field(7, field(5, packed)))).toBe("bad_file: F: a tensor of more than 32 dimensions");
  });

  test("beyond 2 GiB is refused before it is read", () => {
    writeFileSync(path, "");
    truncateSync(path, 2 ** 31 + 1); // sparse
    expect(failure(() => readOnnxHeader(path)).replace(path, "F")).toBe(
      "bad_file: F: expected at most 2147483648 bytes, got 2147483649",
    );
  });

  test("at a missing path or at a folder is refused", () => {
    expect(failure(() => readOnnxHeader(join(folder, "none")))).toContain("not_found: ");
    expect(failure(() => readOnnxHeader(folder))).toContain("expected a regular file");
  });
});
