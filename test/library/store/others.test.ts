/** The store of another server, used in addition to our own: read, never changed. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, readdir, readFile, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { blobPath } from "../../../src/library/store/blobs.ts";
import { makeLibrary, type Library } from "../../../src/library/create/library.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { openOthers, withOthers } from "../../../src/library/store/others.ts";
import { manifestPath, openStore, type Store } from "../../../src/library/store/store.ts";
import { fields, silent } from "../creating.ts";
import { putModel, tempFolder } from "../fixture.ts";

let folder: string;
let own: string;
let theirs: string;
let store: Store;
let library: Library;
let before: Map<string, string>;

beforeEach(async () => {
  folder = await tempFolder();
  [own, theirs] = [join(folder, "own"), join(folder, "theirs")];
  await putModel(own, "both", { texts: [["system", "ours"]] });
  await putModel(theirs, "both", { texts: [["system", "theirs"]] });
  await putModel(theirs, "only", { texts: [["system", "theirs too"]] });
  const others = await openOthers([theirs], { own, log: silent });
  store = withOthers(await openStore(own), others);
  library = makeLibrary({
    root: own,
    others: others.map(({ root }) => root),
    importDirs: [],
    noPrune: false,
    log: silent,
  });
  before = await filesOf(theirs);
});
afterEach(async () => {
  expect(await filesOf(theirs)).toEqual(before); // whatever the operation
  await rm(folder, { recursive: true });
});

/** Every file of a store with its content. */
async function filesOf(root: string): Promise<Map<string, string>> {
  const names = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(await Promise.all(paths.sort().map(async (path) => [path, await readFile(path, "latin1")] as const)));
}

test("models of both stores are listed, the own one wins if both have a name, and each is read from its store", async () => {
  const models = await store.list();
  expect(models.map(({ displayName, root }) => [displayName, root]).sort()).toEqual([
    ["both:latest", own],
    ["only:latest", theirs],
  ]);
  expect((await store.load("both")).system).toBe("ours");
  expect((await store.load("ONLY")).system).toBe("theirs too");
  const ref = await store.resolve("only");
  expect(ref?.paths.model.startsWith(theirs)).toBe(true);
  await store.check(ref!);
  expect(await store.resolve("none")).toBeUndefined();
  await expect(store.load("none")).rejects.toMatchObject({ code: "not_found" });
});

test("a copy is in the own store, with its blobs", async () => {
  expect(await library.copy({ from: parseName("only"), to: parseName("mine") })).toBe(true);
  const mine = await store.load("mine");
  expect([mine.root, mine.system]).toEqual([own, "theirs too"]);
  for (const { digest, size } of mine.layers) expect((await stat(blobPath(own, digest))).size).toBe(size);
  expect(await library.remove(parseName("mine"))).toBe(true); // and is deleted again
  for (const { digest } of mine.layers) {
    const isShared = (await store.load("both")).layers.some((layer) => layer.digest === digest);
    expect(await Bun.file(blobPath(own, digest)).exists()).toBe(isShared);
  }
});

test("a model built upon a borrowed one is in the own store, and hides one of the same name until it is deleted", async () => {
  await Array.fromAsync(library.create(fields({ name: parseName("only"), base: "only", system: "built here" })));
  expect((await store.load("only")).system).toBe("built here");
  expect(await library.remove(parseName("only"))).toBe(true);
  expect((await store.load("only")).system).toBe("theirs too");
});

test("a failed create leaves no borrowed blob in the own store", async () => {
  const blobs = await readdir(join(own, "blobs"));
  const made = Array.fromAsync(library.create(fields({ base: "only", sources: [{ label: "x", path: "/nowhere" }] })));
  await expect(made).rejects.toMatchObject({ code: "bad_file" });
  expect(await readdir(join(own, "blobs"))).toEqual(blobs);
});

test("borrowed models are not deleted", async () => {
  await expect(library.remove(parseName("only"))).rejects.toMatchObject({
    code: "forbidden",
    message: "model 'only:latest' is in the store of another server, which Hearth only reads: delete it there",
  });
  expect(await library.remove(parseName("none"))).toBe(false);
});

describe("a borrowed store", () => {
  test("exists, has manifests, and is not the own store under another path", async () => {
    await symlink(own, join(folder, "alias"));
    await mkdir(join(folder, "empty"));
    const paths = [own, join(folder, "alias"), join(folder, "empty"), join(folder, "none"), theirs, theirs];
    expect((await openOthers(paths, { own, log: silent })).map(({ root }) => root)).toEqual([theirs]);
  });

  test("gives a warning if it cannot be read, and none if it does not exist", async () => {
    const warned: unknown[] = [];
    const log = { ...silent, warn: (_: string, fields?: object) => void warned.push(fields) };
    await symlink(join(folder, "loop"), join(folder, "loop"));
    await mkdir(join(folder, "closed"));
    await symlink(join(folder, "loop"), join(folder, "closed", "manifests"));
    const paths = [join(folder, "loop", "models"), join(folder, "closed"), join(folder, "none", "models"), theirs];
    expect((await openOthers(paths, { own, log })).map(({ root }) => root)).toEqual([theirs]);
    expect(warned).toEqual(
      paths.slice(0, 2).map((path) => ({ path, error: expect.stringContaining("too many symbolic links") })),
    );
  });
});

test("a safetensors model is left out of the list, with the tag to use instead", async () => {
  await putModel(own, "m:4b-mlx", { config: { model_format: "safetensors" } });
  expect((await store.list()).map(({ displayName }) => displayName)).not.toContain("m:4b-mlx");
  await expect(store.load("m:4b-mlx")).rejects.toMatchObject({
    code: "unsupported",
    message: "model 'm:4b-mlx' is made of safetensors for MLX, which cannot be run here: pull 'm:4b' instead",
  });
  expect(await Bun.file(manifestPath(own, parseName("m:4b-mlx"))).exists()).toBe(true);
});
