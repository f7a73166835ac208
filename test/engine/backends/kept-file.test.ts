/** Results of searches and tests that a machine keeps in one file. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keptFile } from "../../../src/engine/backends/host/kept-file.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-kept-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("each key keeps its last value, and the folder of the file is made", async () => {
  const path = join(folder, "cache", "results.json");
  expect(await keptFile(path).read("a")).toBeUndefined();
  for (const value of [1, 2]) await keptFile(path).write("a", value);
  await keptFile(path).write("b", { of: ["any", "shape"] });
  expect(await Promise.all(["a", "b", "c"].map((key) => keptFile(path).read(key)))).toEqual([
    2,
    { of: ["any", "shape"] },
    undefined,
  ]);
  expect(readdirSync(join(folder, "cache"))).toEqual(["results.json"]);
});

test("a damaged file counts as empty, and the next write replaces it", async () => {
  const path = join(folder, "results.json");
  for (const text of ['{"a": 1', "null", `{"a": "${"x".repeat(2 ** 20)}"}`]) {
    writeFileSync(path, text);
    expect(await keptFile(path).read("a")).toBeUndefined();
    await keptFile(path).write("b", 1);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ b: 1 });
  }
});

test("a file that is still mapped is replaced", async () => {
  const path = join(folder, "results.json");
  await keptFile(path).write("a", 1);
  const held = mapFile(path);
  await keptFile(path).write("a", 2);
  held.close();
  expect(await keptFile(path).read("a")).toBe(2);
});
