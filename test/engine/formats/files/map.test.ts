/** Mapped files: read on every system, and removed or replaced while they are mapped. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replaceFile } from "../../../../src/base/held-files.ts";
import { removeFile } from "../../../../src/base/system.ts";
import { mapFile } from "../../../../src/engine/formats/files/map.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-map-ö-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

function put(text: string): string {
  const path = join(folder, "file");
  writeFileSync(path, text);
  return path;
}

test("a file is mapped without a copy", () => {
  const file = mapFile(put("Hello, hearth"));
  expect(file.copies).toBe(false);
  expect([textOf(file.view(0, 5)), textOf(file.view(7, 6))]).toEqual(["Hello", "hearth"]);
  const view = file.view(0, 5);
  file.close();
  expect(view.byteLength).toBe(0);
});

test("a path of more than 260 characters is mapped", () => {
  const deep = join(folder, ...Array.from({ length: 8 }, () => "x".repeat(50)));
  mkdirSync(deep, { recursive: true });
  const path = join(deep, "file");
  writeFileSync(path, "Hello");
  const file = mapFile(path);
  expect([file.copies, textOf(file.view(0, 5))]).toEqual([false, "Hello"]);
  file.close();
});

test("both ends of a file larger than 4 GiB are read", () => {
  const path = join(folder, "large");
  const size = 5 * 2 ** 30;
  const handle = openSync(path, "w");
  ftruncateSync(handle, size); // sparse
  writeSync(handle, "GGUF", 0);
  writeSync(handle, "end", size - 3);
  closeSync(handle);
  const file = mapFile(path);
  expect(file.byteLength).toBe(size);
  expect([textOf(file.view(0, 4)), textOf(file.view(size - 3, 3))]).toEqual(["GGUF", "end"]);
  file.close();
});

test("a mapped file can be removed, and the mapping keeps its bytes", async () => {
  const path = put("Hello");
  const file = mapFile(path);
  await removeFile(path);
  expect(existsSync(path)).toBe(false);
  writeFileSync(path, "again");
  expect(textOf(file.view(0, 5))).toBe("Hello");
  file.close();
});

test("a mapped file can be replaced, and the mapping keeps its bytes", async () => {
  const path = put("Hello");
  const file = mapFile(path);
  writeFileSync(`${path}.new`, "World");
  await replaceFile({ from: `${path}.new`, to: path });
  expect([readFileSync(path, "utf8"), textOf(file.view(0, 5))]).toEqual(["World", "Hello"]);
  file.close();
});

const replaces = process.platform !== "win32"; // a mapped file keeps its name there
test.skipIf(!replaces)("a file is opened for direct reads unless its path leads to another file by then", async () => {
  const path = join(folder, "direct.bin");
  await Bun.write(path, "first");
  const source = mapFile(path);
  const fd = source.openDirect!();
  expect(fd).toBeNumber();
  closeSync(fd!);
  await Bun.write(`${path}.new`, "other");
  renameSync(`${path}.new`, path);
  expect(source.openDirect!()).toBeUndefined();
  source.close();
});
