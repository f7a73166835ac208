import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { blobPath } from "../../src/library/store/blobs.ts";
import { sizeLabel } from "../../src/library/store/details.ts";
import { hasEmbedded, installEmbedded } from "../../src/library/install.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath, openStore, type Store } from "../../src/library/store/store.ts";
import { putModel, tempFolder, writeShippedModel } from "./fixture.ts";

let folder: string;
let dir: string;
let store: Store;
beforeEach(async () => {
  folder = await tempFolder();
  dir = join(folder, "shipped");
  store = await openStore(join(folder, "models"));
  await writeShippedModel(
    dir,
    'FROM ./tiny.gguf\nSYSTEM Be kind.\nPARAMETER stop "<|end|>"\nLICENSE MIT\nMESSAGE user hi\n',
  );
});
afterEach(() => rm(folder, { recursive: true }));

const manifest = () => manifestPath(store.root, parseName("hearth"));

test("the shipped model is installed with every layer and a complete configuration", async () => {
  expect(hasEmbedded(store)).toBe(false);
  expect(await installEmbedded(store, { dir })).toBe("installed");
  expect(hasEmbedded(store)).toBe(true);
  const entry = await store.load("hearth");
  expect(entry).toMatchObject({
    displayName: "hearth:latest",
    system: "Be kind.",
    parameters: { stop: ["<|end|>"] },
    licenses: ["MIT"],
    messages: [{ role: "user", content: "hi" }],
    config: {
      model_format: "gguf",
      model_family: "llama",
      model_families: ["llama"],
      model_type: "128",
      file_type: "F32",
      context_length: 512,
      embedding_length: 64,
    },
  });
  expect(await Bun.file(entry.paths.model).bytes()).toEqual(await Bun.file(join(dir, "tiny.gguf")).bytes());
  const { config } = await Bun.file(manifest()).json();
  expect(await Bun.file(blobPath(store.root, config.digest)).json()).toMatchObject({
    os: "linux",
    rootfs: { type: "layers", diff_ids: entry.layers.map((layer) => layer.digest) },
  });
});

describe("a later start", () => {
  beforeEach(() => installEmbedded(store, { dir }));

  test("removes old temporary files of a killed process", async () => {
    const old = join(store.root, "blobs", ".tmp-old");
    const young = join(store.root, "blobs", ".tmp-young");
    for (const path of [old, young]) await writeFile(path, "half");
    await utimes(old, 1, 1);
    await writeFile(join(dir, "Modelfile"), "FROM ./tiny.gguf\nSYSTEM Be quick.\n");
    await installEmbedded(store, { dir });
    expect([await Bun.file(old).exists(), await Bun.file(young).exists()]).toEqual([false, true]);
  });

  test("changes nothing if the model is present", async () => {
    const { mtimeMs } = await stat(manifest());
    expect(await installEmbedded(store, { dir })).toBe("present");
    expect((await stat(manifest())).mtimeMs).toBe(mtimeMs);
  });

  test("installs again if the shipped model has changed", async () => {
    await writeFile(join(dir, "Modelfile"), "FROM ./tiny.gguf\nSYSTEM Be brief.\n");
    expect(await installEmbedded(store, { dir })).toBe("installed");
    expect((await store.load("hearth")).system).toBe("Be brief.");
  });

  test("repairs a store with a missing blob or a broken manifest", async () => {
    await rm((await store.load("hearth")).paths.model);
    expect(await installEmbedded(store, { dir })).toBe("installed");
    await writeFile(manifest(), "{");
    expect(await installEmbedded(store, { dir })).toBe("installed");
    expect(await installEmbedded(store, { dir })).toBe("present");
  });
});

test("a user's model of that name is kept", async () => {
  await putModel(store.root, "hearth", { texts: [["system", "Mine."]] });
  expect(await installEmbedded(store, { dir })).toBe("kept");
  expect((await store.load("hearth")).system).toBe("Mine.");
});

test("a missing file gives one clear error", async () => {
  await rm(join(dir, "tiny.gguf"));
  await expect(installEmbedded(store, { dir })).rejects.toThrow(
    `installing hearth:latest into '${store.root}': ENOENT`,
  );
});

test.each([
  [5_812_345, "5.8M"],
  [7_000_000_000, "7B"],
  [1_235_814_432, "1.2B"],
  [412_300, "412.3K"],
  [999, "999"],
])("%d weights are printed as %s", (count, label) => expect(sizeLabel(count)).toBe(label));
