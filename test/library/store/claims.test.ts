/** A failed creation of a model leaves nothing of its own in the store, and everything that others have or rely on. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeModel } from "../../../kernels/onnx/proto.ts";
import { listFolder, type ModelFolder } from "../../../src/library/convert/folder.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { importBlob } from "../../../src/library/store/blobs.ts";
import type { CreateRequest } from "../../../src/library/create/creation.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { blobSource, type Source } from "../../../src/library/create/sources.ts";
import { DTYPES, encodeSafetensors, exactModel, plainFiles, plainTensors } from "../convert/hugging-face.ts";
import { encoderFolder, writeFiles, type FolderFiles } from "../convert/onnx-folder.ts";
import { blobsIn, fields, makeWorkplace, statusesOf, type Workplace } from "../creating.ts";

setDefaultTimeout(60_000); // each status costs a creation

let place: Workplace;
beforeEach(async () => void (place = await makeWorkplace()));
afterEach(() => rm(place.folder, { recursive: true }));

const MODEL = exactModel("llama", DTYPES.F16);

async function gguf(name = "m.gguf"): Promise<Source> {
  const path = join(place.allowed, name);
  await writeGguf(path, MODEL);
  return { label: name, path };
}

async function folderOf(files: FolderFiles): Promise<ModelFolder> {
  const path = await writeFiles(join(place.allowed, crypto.randomUUID()), files);
  const names = await listFolder(path);
  return { label: "folder", files: new Map(names.map((name) => [name, join(path, name)])) };
}

/** Reads until a status starts so. */
async function readUntil(start: string, request: CreateRequest) {
  const steps = place.library.create(request);
  for (;;) {
    const { value, done } = await steps.next();
    if (done) throw new Error(`expected a status '${start}…', got none`);
    if (value.status.startsWith(start)) return steps;
  }
}

/** Stops reading at every status in turn, up to the last but one. */
async function expectNothingLeft(request: CreateRequest): Promise<void> {
  const before = await blobsIn(place.root);
  for (let last = 0; ; last++) {
    let count = 0;
    for await (const { status } of place.library.create(request)) {
      if (status === "success") return;
      if (count++ === last) break;
    }
    expect(await blobsIn(place.root), `stopped at status ${last}`).toEqual(before);
  }
}

test("a create from a local file leaves nothing, wherever its reader stops", async () => {
  const source = await gguf();
  await expectNothingLeft(fields({ sources: [source], system: "S" }));
  expect((await place.store.load("new")).system).toBe("S");
  await place.library.remove(parseName("new"));
  await expectNothingLeft(fields({ sources: [source], quantize: "Q8_0" }));
});

test("a create from a folder with unused tensors leaves nothing, wherever its reader stops", async () => {
  const vision = { "vision_tower.a.weight": { dtype: "F16", shape: [2], data: new Uint8Array(4) } };
  const weights = encodeSafetensors({ ...plainTensors(MODEL, "F16"), ...vision });
  const folder = await folderOf({ ...plainFiles(MODEL, "F16"), "model.safetensors": weights });
  await expectNothingLeft(fields({ folder }));
});

test("a create from an ONNX folder leaves nothing, wherever its reader stops", async () => {
  await expectNothingLeft(fields({ folder: await folderOf(encoderFolder()) }));
});

test("a required file with an invalid name is refused, and the other files are removed", async () => {
  const data = { external: "a b.onnx_data", offset: 0, byteLength: 16 };
  const info = (name: string) => ({ name, type: "float" as const, shape: [1] });
  const graph = writeModel({
    nodes: [],
    inputs: [info("input_ids")],
    outputs: [info("last_hidden_state")],
    initializers: [{ name: "w", type: "float", shape: [2, 2], data }],
  });
  const weights = { "onnx/model.onnx": graph, "onnx/a b.onnx_data": new Uint8Array(16) };
  const made = statusesOf(place.library.create(fields({ folder: await folderOf({ ...encoderFolder(), ...weights }) })));
  await expect(made).rejects.toMatchObject({
    code: "bad_request",
    message: "folder: a file cannot be kept under the name 'onnx/a b.onnx_data'",
  });
  expect(await blobsIn(place.root)).toEqual([]);
});

test("files that a model does not require may have any name", async () => {
  const folder = await folderOf({ ...encoderFolder(), "training args.json": {}, ".cache.json": {} });
  expect((await statusesOf(place.library.create(fields({ folder })))).at(-1)).toBe("success");
  const { layers } = await place.store.load("new");
  const names = layers.flatMap(({ name }) => name ?? []);
  expect(names.sort()).toEqual(["config.json", "onnx/model.onnx", "tokenizer.json", "tokenizer_config.json"]);
});

test("an uploaded blob stays", async () => {
  const { path } = await gguf();
  const { digest } = await importBlob(place.root, path);
  const source = blobSource(place.root, { label: "x.gguf", digest });
  await (await readUntil("using existing layer", fields({ sources: [source] }))).return();
  await (await readUntil("writing manifest", fields({ sources: [{ label: path, path }] }))).return();
  expect(await blobsIn(place.root)).toEqual([digest.replace(":", "-")]);
});

test("a blob of another running create stays, and is removed with its model", async () => {
  const sources = [await gguf()];
  const first = await readUntil("creating new layer", fields({ sources }));
  const second = await readUntil("using existing layer", fields({ sources, name: parseName("second") }));
  await first.return();
  await Array.fromAsync(second);
  await place.store.check((await place.store.resolve("second"))!);
  await place.library.remove(parseName("second"));
  expect(await blobsIn(place.root)).toEqual([]);
});

test("the previous model's blob is removed if it is only an intermediate of the next", async () => {
  const folder = await folderOf(plainFiles(MODEL, "F16"));
  await statusesOf(place.library.create(fields({ folder })));
  await statusesOf(place.library.create(fields({ folder, quantize: "Q8_0" })));
  const { layers } = await place.store.load("new");
  expect((await blobsIn(place.root)).length).toBe(layers.length + 1); // and the configuration
});
