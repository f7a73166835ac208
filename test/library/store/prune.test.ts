import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "../../../src/base/log.ts";
import { writeBlob } from "../../../src/library/store/blobs.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { pruneDaily, pruneLater, pruneStore } from "../../../src/library/store/prune.ts";
import { manifestPath, openStore } from "../../../src/library/store/store.ts";
import { makeLibrary } from "../../../src/library/create/library.ts";
import { eventually } from "../../e2e/hearth.ts";
import { putModel, tempFolder } from "../fixture.ts";

let folder: string;
let root: string;
let logged: string[];
beforeEach(async () => {
  folder = await tempFolder();
  root = join(folder, "models");
  logged = [];
  await putModel(root, "m", { texts: [["system", "S"]] });
  await writeBlob(root, new Uint8Array(3));
  await writeFile(join(root, "blobs", ".tmp-1"), "half");
  await writeFile(join(root, "blobs", "notes.txt"), "somebody's");
  await mkdir(join(root, "manifests", "host", "user", "gone"), { recursive: true });
  await writeFile(join(root, "manifests", "host", "user", ".tmp-2"), "half");
  await mkdir(join(root, "manifests", "empty"));
});
afterEach(() => rm(folder, { recursive: true }));

const log: Logger = {
  debug: (msg) => void logged.push(msg),
  info: (msg) => void logged.push(msg),
  warn: (msg) => void logged.push(msg),
  error: (msg) => void logged.push(msg),
};
const pruneIn = (minutes: number) => pruneStore(root, { now: () => Date.now() + minutes * 60_000, log });
const namesIn = async (folder: string) => (await readdir(join(root, folder))).sort();
const blobs = () => namesIn("blobs");

test("unreferenced blobs and empty folders are removed after an hour, and foreign files stay", async () => {
  const before = await blobs();
  await pruneIn(61);
  expect((await blobs()).length).toBe(before.length - 2);
  expect(await blobs()).toContain("notes.txt");
  expect(await namesIn("manifests")).toEqual(["registry.ollama.ai"]);
  expect((await (await openStore(root)).load("m")).system).toBe("S");
  expect(logged).toEqual(["removed blobs that no model refers to"]);
});

test("anything younger than an hour stays", async () => {
  const before = await blobs();
  await pruneIn(59);
  expect(await blobs()).toEqual(before);
  expect(await namesIn("manifests")).toEqual(["empty", "host", "registry.ollama.ai"]);
});

test("a partial download is removed with all its files a week after its last change", async () => {
  const partial = `sha256-${"0".repeat(64)}-partial`;
  const files = [partial, `${partial}-0`, `${partial}-1`];
  for (const name of files) await writeFile(join(root, "blobs", name), "{}");
  const weekMinutes = 7 * 24 * 60;
  await utimes(join(root, "blobs", partial), 1, 1);
  await pruneIn(weekMinutes - 1);
  expect(await blobs()).toEqual(expect.arrayContaining(files));
  await pruneIn(weekMinutes + 1);
  expect((await blobs()).filter((name) => name.includes("partial"))).toEqual([]);
  expect(logged.at(-1)).toBe("removed abandoned partial downloads");
});

test("an unreadable manifest keeps every blob", async () => {
  const path = manifestPath(root, parseName("torn"));
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, "{");
  const before = await blobs();
  await pruneIn(61);
  expect(await blobs()).toEqual(before.filter((name) => name !== ".tmp-1"));
  expect(logged).toEqual(["no blobs are removed: a manifest cannot be read"]);
});

test("a missing store is not created", async () => {
  await pruneStore(join(folder, "none"), { now: Date.now, log });
  expect(await readdir(folder)).toEqual(["models"]);
  expect(logged).toEqual([]);
});

test("a file that was too young at the start is removed an hour later, unless it is in use", async () => {
  const due: { ms: number; work: () => void }[] = [];
  let nowMs = Date.now();
  const clock = { now: () => nowMs, after: (ms: number, work: () => void) => (due.push({ ms, work }), () => {}) };
  await writeFile(join(root, "blobs", ".tmp-used"), "half");
  pruneLater(root, { clock, log });
  const [later] = due;
  expect(later!.ms).toBeGreaterThan(3600_000);
  nowMs += later!.ms;
  const used = new Date(nowMs - 3601_000); // old, but newer than the start
  await utimes(join(root, "blobs", ".tmp-used"), used, used);
  later!.work();
  expect(await eventually(async () => !(await blobs()).includes(".tmp-1"))).toBe(true);
  expect(await blobs()).toContain(".tmp-used");
  expect(logged).toEqual([]);
});

test("blobs that no model uses are removed by a running server a day after their upload", async () => {
  const due: (() => void)[] = [];
  let nowMs = Date.now();
  const clock = { now: () => nowMs, after: (_: number, work: () => void) => (due.push(work), () => {}) };
  const library = makeLibrary({ root, importDirs: [], noPrune: false, log });
  const { digest } = await writeBlob(root, new Uint8Array(5));
  const before = await blobs();
  const release = library.hold(new Set([digest]));
  const end = pruneDaily(root, { sweep: library.sweep, clock, log });
  const round = async (ms: number): Promise<void> => {
    nowMs += ms;
    const rounds = due.length;
    due.at(-1)!();
    expect(await eventually(() => due.length > rounds)).toBe(true);
  };
  await round(23 * 3600_000);
  expect(await blobs()).toEqual(before);
  await round(2 * 3600_000);
  expect((await blobs()).length).toBe(before.length - 1); // a creation uses the other one
  release();
  await round(0);
  expect((await blobs()).length).toBe(before.length - 2);
  expect((await (await openStore(root)).load("m")).system).toBe("S");
  end();
  await library.close();
});
