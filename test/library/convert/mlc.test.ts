/** MLC folders as GGUFs that describe them, and invalid folders. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../../src/base/errors.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { listFolder } from "../../../src/library/convert/folder.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { mlcFolder } from "./mlc-folder.ts";
import { writeFiles, type FolderFiles } from "./onnx-folder.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-mlc-folder-"))));
afterAll(() => rm(root, { recursive: true }));

async function convert(files: FolderFiles): Promise<{ to: string; kept: string[] }> {
  const path = await writeFiles(join(root, crypto.randomUUID()), files);
  const to = `${path}.gguf`;
  const names = await listFolder(path);
  const folder = { label: "folder", files: new Map(names.map((name) => [name, join(path, name)])) };
  const { files: kept = [] } = await convertModel({ folder, to });
  return { to, kept: kept.map(({ name }) => name).sort() };
}

test("a folder is described by its configuration, and keeps every file that a page needs", async () => {
  const { to, kept } = await convert({ ...mlcFolder(), "README.md": {}, "params_shard_9.bin": new Uint8Array(3) });
  expect(kept).toEqual(Object.keys(mlcFolder()).sort()); // unnamed files are left out
  const { metadata, close } = openGguf(to);
  expect(metadata.get("general.architecture")).toBe("mlc");
  expect(metadata.get("mlc.model_type")).toBe("llama");
  expect(metadata.get("mlc.weights")).toBe("q4f32_1");
  expect(metadata.get("mlc.context_length")).toBe(4096);
  expect(Number(metadata.get("general.parameter_count"))).toBe(192);
  close();
});

const cache = (record: object): FolderFiles => ({ "ndarray-cache.json": { records: [record] } });

test.each<[string, FolderFiles, string]>([
  [
    "its library",
    { "made-up-q4f32_1-webgpu.wasm": [] },
    "folder: expected the model's library, one file '….wasm', got none",
  ],
  ["its tokenizer", { "tokenizer.json": [] }, "folder: expected 'tokenizer.json' or 'tokenizer.model', got neither"],
  [
    "a list of shards",
    { "ndarray-cache.json": [] },
    "folder: expected a file 'tensor-cache.json' or 'ndarray-cache.json', got neither",
  ],
  ["a shard", { "params_shard_1.bin": [] }, "folder: expected a file 'params_shard_1.bin', got none"],
])("a folder without %s is refused", async (_, missing, message) => {
  const files = Object.entries(mlcFolder()).filter(([name]) => !Object.hasOwn(missing, name));
  expect(await convert(Object.fromEntries(files)).catch(messageOf)).toBe(message);
});

test.each<[FolderFiles, string]>([
  [
    { "params_shard_0.bin": new Uint8Array(31) },
    "folder: 'params_shard_0.bin': expected 32 bytes, as 'ndarray-cache.json' says, got 31",
  ],
  [
    cache({ dataPath: "../../etc/passwd", nbytes: 1 }),
    `folder: 'ndarray-cache.json': expected names of files beside it, got "../../etc/passwd"`,
  ],
  [cache({ dataPath: 3 }), `folder: 'ndarray-cache.json': expected {dataPath, nbytes}, got {"dataPath":3}`],
  [{ "ndarray-cache.json": { records: {} } }, "folder: 'ndarray-cache.json': expected 'records', got none"],
  [{ "mlc-chat-config.json": {} }, "folder: 'mlc-chat-config.json': 'model_type': expected text, got nothing"],
  [
    { "second.wasm": new Uint8Array(8) },
    `folder: expected the model's library, one file '….wasm', got ["made-up-q4f32_1-webgpu.wasm","second.wasm"]`,
  ],
])("a folder with a contradicting or hostile file is refused: %j", async (change, message) => {
  expect(await convert({ ...mlcFolder(), ...change }).catch(messageOf)).toBe(message);
});
