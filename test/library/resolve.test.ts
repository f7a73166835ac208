import { readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "bun:test";
import { blobPath } from "../../src/library/store/blobs.ts";
import { parseName } from "../../src/library/store/name.ts";
import { layersOf } from "../../src/library/store/manifest.ts";
import { manifestPath, openStore, type ModelRef, type Store } from "../../src/library/store/store.ts";
import { putModel, tempFolder } from "./fixture.ts";

const folder = await tempFolder();
afterAll(() => rm(folder, { recursive: true }));

async function resolved(store: Store, name: string): Promise<ModelRef> {
  const model = await store.resolve(name);
  if (!model) throw new Error(`no model '${name}'`);
  return model;
}

const blobOf = (root: string, model: ModelRef, kind: "model" | "template" | "license"): string =>
  blobPath(root, layersOf(model.layers, kind)[0]!.digest);

test("a model is resolved once for all spellings of its name, without its licences", async () => {
  const root = join(folder, "once");
  await putModel(root, "m", {
    texts: [
      ["template", "a {{ .Prompt }}"],
      ["license", "long"],
    ],
  });
  const store = await openStore(root);
  const { paths } = await store.load("m");
  const probe = await resolved(await openStore(root), "m");
  await rm(blobOf(root, probe, "license"));
  const first = await resolved(store, "m");
  expect(first).toMatchObject({ displayName: "m:latest", template: "a {{ .Prompt }}", paths });
  expect(first).not.toHaveProperty("licenses");
  await rm(blobOf(root, first, "template")); // only the manifest's times are read again
  for (const name of ["m", "m:latest", "M"]) expect(await resolved(store, name)).toBe(first);
  expect(await store.resolve("other")).toBeUndefined();
  expect(store.load("m")).rejects.toThrow("template layer");
});

test("a changed manifest is read again, even if its length and time stay the same", async () => {
  const root = join(folder, "changed");
  await putModel(root, "m", { texts: [["template", "one {{ .Prompt }}"]] });
  const store = await openStore(root);
  const path = manifestPath(root, parseName("m"));
  const first = await resolved(store, "m");
  const before = await readFile(path);
  await putModel(root, "m", { texts: [["template", "two {{ .Prompt }}"]] });
  const second = await resolved(store, "m");
  expect([first.template, second.template]).toEqual(["one {{ .Prompt }}", "two {{ .Prompt }}"]);
  await writeFile(path, before);
  await utimes(path, second.modifiedAt, second.modifiedAt);
  expect((await resolved(store, "m")).digest).toBe(first.digest);
  await rm(path);
  expect(await store.resolve("m")).toBeUndefined();
});

test("the files of a resolved model are checked before a runner loads them", async () => {
  const root = join(folder, "checked");
  await putModel(root, "m");
  const store = await openStore(root);
  const model = await resolved(store, "m");
  expect(model.weightBytes).toBe(layersOf(model.layers, "model")[0]!.size);
  await store.check(model);
  await rm(blobOf(root, model, "model"));
  expect(await resolved(store, "m")).toBe(model);
  expect(store.check(model)).rejects.toThrow(
    /model 'm:latest': model layer: expected \d+ bytes in .*, found no such blob/,
  );
});
