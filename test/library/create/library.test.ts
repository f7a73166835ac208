import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "../../../src/base/log.ts";
import { blobPath, findBlob } from "../../../src/library/store/blobs.ts";
import { makeLibrary, type Library } from "../../../src/library/create/library.ts";
import { makeStoreLock } from "../../../src/library/store/lock.ts";
import { readManifest } from "../../../src/library/store/manifest.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { digestsOf } from "../../../src/library/store/references.ts";
import { manifestPath, openStore } from "../../../src/library/store/store.ts";
import { silent } from "../creating.ts";
import { putModel, tempFolder } from "../fixture.ts";

let folder: string;
let root: string;
let library: Library;
let warnings: unknown[];
beforeEach(async () => {
  folder = await tempFolder();
  root = join(folder, "models");
  warnings = [];
  const log: Logger = { ...silent, warn: (_, fields) => void warnings.push(fields) };
  library = makeLibrary({ root, importDirs: [], noPrune: false, log });
  await putModel(root, "a", {
    texts: [
      ["system", "A"],
      ["license", "MIT"],
    ],
  });
  await putModel(root, "b", {
    texts: [
      ["system", "B"],
      ["license", "MIT"],
    ],
  });
});
afterEach(() => rm(folder, { recursive: true }));

const pathOf = (name: string) => manifestPath(root, parseName(name));
const copy = (from: string, to: string) => library.copy({ from: parseName(from), to: parseName(to) });
const remove = (name: string) => library.remove(parseName(name));
const names = async () => (await (await openStore(root)).list()).map((model) => model.displayName).sort();
const blobCount = async () => (await readdir(join(root, "blobs"))).length;

test("held blobs stay when their model is deleted, and are swept when they are released", async () => {
  const digests = digestsOf(await readManifest(pathOf("a")));
  const before = await blobCount();
  const release = library.hold(new Set(digests));
  await remove("a");
  expect(await blobCount()).toBe(before);
  release();
  await library.sweep(digests);
  expect(await blobCount()).toBe(before - 1); // A; the other model needs the rest
});

describe("copying", () => {
  test("adds a name with the same bytes that shares all blobs", async () => {
    const before = await blobCount();
    expect(await copy("a", "user/c:1")).toBe(true);
    expect(await readFile(pathOf("user/c:1"))).toEqual(await readFile(pathOf("a")));
    expect([await names(), await blobCount()]).toEqual([["a:latest", "b:latest", "user/c:1"], before]);
  });

  test("replaces a model of that name, and removes the blobs that only that model had", async () => {
    await copy("a", "B");
    expect(await names()).toEqual(["a:latest", "b:latest"]); // under the existing spelling
    expect((await (await openStore(root)).load("b")).system).toBe("A");
    expect(await blobCount()).toBe(4); // weights, licence, A, configuration
  });

  test("onto itself changes nothing, in any case", async () => {
    const before = await readFile(pathOf("a"));
    const { ino } = await stat(pathOf("a"));
    expect([await copy("a", "a"), await copy("A", "a")]).toEqual([true, true]);
    expect(await readFile(pathOf("a"))).toEqual(before);
    expect((await stat(pathOf("a"))).ino).toBe(ino); // the file is not rewritten
    expect(await blobCount()).toBe(5);
  });

  test("refuses a manifest that cannot be read", async () => {
    await writeFile(pathOf("a"), "{");
    await expect(copy("a", "c")).rejects.toMatchObject({ code: "bad_file" });
    expect(await names()).toEqual(["b:latest"]);
  });

  test("returns false if the source does not exist", async () => {
    expect(await copy("none", "c")).toBe(false);
    expect(await names()).toEqual(["a:latest", "b:latest"]);
  });
});

describe("deleting", () => {
  test("keeps every blob that another model refers to", async () => {
    const kept = digestsOf(await readManifest(pathOf("b")));
    expect(await remove("A")).toBe(true);
    expect(await names()).toEqual(["b:latest"]);
    for (const digest of kept) expect(await findBlob(root, digest)).toBeDefined();
    expect(await blobCount()).toBe(new Set(kept).size);
  });

  test("leaves no blob and no folder but the top one after the last model", async () => {
    await remove("a");
    await remove("b");
    expect(await readdir(join(root, "blobs"))).toEqual([]);
    expect(await readdir(join(root, "manifests"))).toEqual([]);
  });

  test("keeps the folders of other models", async () => {
    await copy("a", "a:other");
    await remove("a");
    expect(await names()).toEqual(["a:other", "b:latest"]);
  });

  test("returns false if the model does not exist", async () => {
    expect(await remove("none")).toBe(false);
  });

  test("removes no blob while some manifest cannot be read", async () => {
    await mkdir(dirname(pathOf("torn:1")), { recursive: true });
    await writeFile(pathOf("torn:1"), '{"config":');
    const before = await blobCount();
    expect(await remove("a")).toBe(true);
    expect([await names(), await blobCount()]).toEqual([["b:latest"], before]);
    expect(warnings).toEqual([{ path: pathOf("torn:1"), reason: expect.stringContaining("not JSON") }]);
  });

  test("removes only the manifest if the manifest cannot be read", async () => {
    await writeFile(pathOf("a"), "{");
    const before = await blobCount();
    expect(await remove("a")).toBe(true);
    expect([await names(), await blobCount()]).toEqual([["b:latest"], before]);
  });

  test("ignores files and folders that are not manifests", async () => {
    await mkdir(join(dirname(pathOf("a")), "folder"));
    await writeFile(join(root, "manifests", ".DS_Store"), "x");
    await remove("a");
    expect(await blobCount()).toBe(4);
  });
});

test("many simultaneous changes leave every remaining model whole", async () => {
  const work: Promise<boolean>[] = [];
  for (let i = 0; i < 20; i++) work.push(copy("a", `c${i % 5}`), remove(`c${(i * 3) % 5}`), copy("b", `c${i % 3}`));
  await Promise.all(work);
  const store = await openStore(root);
  for (const name of await names()) expect((await store.load(name)).licenses).toEqual(["MIT"]);
});

test("a model that is copied during its deletion is copied whole or not at all", async () => {
  for (let i = 0; i < 6; i++) {
    await putModel(root, "here", { texts: [["system", `only here ${i}`]] });
    const removed = i % 2 === 0 ? undefined : remove("here"); // begins before the copy, or after
    const [copied] = await Promise.all([copy("here", "there"), removed ?? remove("here")]);
    const store = await openStore(root);
    if (copied) expect((await store.load("there")).system).toBe(`only here ${i}`);
    else expect(await store.find("there")).toBeUndefined();
    await remove("there");
  }
});

test("with noPrune, blobs stay", async () => {
  const keeping = makeLibrary({ root, importDirs: [], noPrune: true, log: undefined as unknown as Logger });
  const [config] = digestsOf(await readManifest(pathOf("a")));
  await keeping.remove(parseName("a"));
  expect(await blobCount()).toBe(5);
  expect(await Bun.file(blobPath(root, config!)).exists()).toBe(true);
});

test("if the store cannot be locked, a young blob stays, since another process may be about to use it", async () => {
  await mkdir(join(root, "hearth.lock")); // makes a file of that name impossible
  const before = await blobCount();
  await remove("a");
  expect(await blobCount()).toBe(before);
  expect(await names()).toEqual(["b:latest"]);
  const { digest } = (await readManifest(pathOf("b"))).layers[0]!;
  const old = new Date(Date.now() - 2 * 3_600_000);
  await utimes(blobPath(root, digest), old, old);
  await remove("b"); // by its change time it is as recent as the others
  expect(await blobCount()).toBe(before);
});

test("changes are refused while another server holds the store, and allowed after it ends", async () => {
  const other = makeStoreLock(root);
  other.claim();
  const refused = expect.objectContaining({ code: "conflict" });
  await expect(remove("a")).rejects.toEqual(refused);
  await expect(copy("a", "c")).rejects.toEqual(refused);
  expect(() => library.claim()).toThrow("the model store is in use by process");
  other.release();
  expect(await remove("a")).toBe(true);
});
