/** Folders of files that ONNX Runtime may have mapped. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFolder, removeFolder } from "../../../../src/engine/backends/onnx/folders.ts";

let parent: string;
beforeEach(() => void (parent = mkdtempSync(join(tmpdir(), "hearth-folders-"))));
afterEach(() => rmSync(parent, { recursive: true }));

function put(name: string, ageMs: number): void {
  mkdirSync(join(parent, name));
  writeFileSync(join(parent, name, "weights.bin"), "w");
  const at = new Date(Date.now() - ageMs);
  utimesSync(join(parent, name), at, at);
}

test("Windows: a load removes old folders of earlier loads, but no young folder and no other program's", () => {
  put("hearth-onnx-old", 2 * 3600_000);
  put("hearth-onnx-young", 60_000);
  put("other", 2 * 3600_000);
  const made = makeFolder({ platform: "win32", parent });
  const left = readdirSync(parent).toSorted();
  expect(left.filter((name) => join(parent, name) !== made)).toEqual(["hearth-onnx-young", "other"]);
  expect(left).toHaveLength(3);
});

test("other systems remove a folder once its files are open, and leave the folders of earlier loads", () => {
  put("hearth-onnx-old", 2 * 3600_000);
  const made = makeFolder({ platform: "linux", parent });
  removeFolder(made, { platform: "linux" });
  expect(readdirSync(parent)).toEqual(["hearth-onnx-old"]);
});

test("a folder that cannot be removed is left on Windows and is an error on other systems", () => {
  const path = join(parent, "a\0b"); // no system accepts this path
  expect(() => removeFolder(path, { platform: "linux" })).toThrow();
  removeFolder(path, { platform: "win32" });
});
