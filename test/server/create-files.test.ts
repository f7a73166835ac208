/** The field `files` of `POST /api/create`: names, digests and how many. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { f32 } from "../../src/engine/formats/quant/f32.ts";
import { writeBlob } from "../../src/library/store/blobs.ts";
import { openStore } from "../../src/library/store/store.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

async function put(bytes: Uint8Array): Promise<string> {
  return (await writeBlob(harness.root, bytes)).digest;
}
const gguf = (fill = 1, metadata: Record<string, string> = {}) =>
  encodeGguf({
    metadata: { "general.architecture": "llama", ...metadata },
    tensors: [{ name: "t", shape: [8], quant: f32, data: new Uint8Array(32).fill(fill) }],
  });
const part = (no: number, count = 2) =>
  encodeGguf({
    metadata: {
      ...(no === 0 ? { "general.architecture": "llama", "split.tensors.count": { u32: count } } : {}),
      "split.no": { u16: no },
      "split.count": { u16: count },
    },
    tensors: [{ name: `t${no}`, shape: [8], quant: f32, data: new Uint8Array(32).fill(no + 1) }],
  });

async function answer(files: unknown, more: object = {}): Promise<[number, unknown]> {
  const response = await harness.post("/api/create", { model: "new", files, stream: false, ...more });
  return [response.status, await response.json()];
}
const SUCCESS: [number, unknown] = [200, { status: "success" }];
const MISSING = `sha256:${"a".repeat(64)}`;

test("one GGUF may have any clean relative path, and its digest any case and a dash", async () => {
  const digest = await put(gguf());
  for (const path of ["x.gguf", "a/b/x.GGUF", "model", "ünïcode .gguf", "a..b/..c.gguf"]) {
    expect([path, await answer({ [path]: digest })]).toEqual([path, SUCCESS]);
  }
  for (const form of [digest.replace(":", "-"), `sha256:${digest.slice(7).toUpperCase()}`]) {
    expect(await answer({ "x.gguf": form })).toEqual(SUCCESS);
  }
});

test("the parts of a split model may come in any order", async () => {
  const files = { "m-00002-of-00002.gguf": await put(part(1)), "m-00001-of-00002.gguf": await put(part(0)) };
  expect(await answer(files)).toEqual(SUCCESS);
  const { config, layers } = await (await openStore(harness.root)).load("new");
  expect([config.model_type, layers.length]).toEqual(["16", 1]);
});

describe("create from files refuses", () => {
  test("a split model with a missing or foreign part", async () => {
    const [first, second] = [await put(part(0)), await put(part(1))];
    const error = "expected all 2 parts of a split model, got 1";
    expect(await answer({ "m-00001-of-00002.gguf": first })).toEqual([400, { error }]);
    expect((await answer({ "m-00002-of-00002.gguf": second }))[0]).toBe(400);
    const other = await put(part(1, 3));
    expect(await answer({ "m-00001-of-00002.gguf": first, "m-00002-of-00002.gguf": other })).toEqual([
      400,
      { error: "m-00002-of-00002.gguf: expected part 2 of 2 of a split model, got part 2 of 3" },
    ]);
  });

  test("two models", async () => {
    const error = "expected one GGUF model to build upon, got 'a.gguf' and 'b.gguf'";
    expect(await answer({ "a.gguf": await put(gguf(1)), "b.gguf": await put(gguf(2)) })).toEqual([400, { error }]);
  });

  test("a projector without a model", async () => {
    const digest = await put(gguf(1, { "general.type": "mmproj" }));
    const error = "expected one GGUF model to build upon, got none";
    expect(await answer({ "p.gguf": digest })).toEqual([400, { error }]);
  });

  test("a digest without an upload, also beside an uploaded one", async () => {
    const error = `x.gguf: no such file: blob ${MISSING} was not uploaded`;
    expect(await answer({ "x.gguf": MISSING })).toEqual([500, { error }]);
    expect(await answer({ "a.gguf": await put(gguf()), "x.gguf": MISSING })).toEqual([500, { error }]);
    expect(await answer({ "x.gguf": MISSING }, { quantize: "q4_0" })).toEqual([500, { error }]);
  });

  test("a path that leaves its folder, before it looks up any blob", async () => {
    for (const path of [
      "../x.gguf",
      "a/../x.gguf",
      "/x.gguf",
      "./x.gguf",
      "a//x.gguf",
      "a\\..\\x",
      "C:/x",
      "x\0.gguf",
    ]) {
      expect([path, await answer({ [path]: MISSING })]).toEqual([path, [400, { error: "file path must be relative" }]]);
    }
  });

  test("a file without GGUF content, with an error that names it and its content", async () => {
    const digest = await put(new TextEncoder().encode("no model"));
    for (const [text, found] of [
      ["", "an empty file"],
      ["version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS: 'git lfs pull' fetches the file"],
      ["\n<!DOCTYPE html>", "a web page"],
    ] as const) {
      const other = await put(new TextEncoder().encode(text));
      expect(await answer({ "x.gguf": other })).toEqual([400, { error: `x.gguf: expected a GGUF file, got ${found}` }]);
    }
    expect(await answer({ "x.gguf": digest })).toEqual([400, { error: "supplied file was not in GGUF format" }]);
    expect(await answer({ "x.bin": digest })).toEqual([400, { error: "unknown type" }]);
  });
});
