import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { blobPath, findBlob, importBlob, writeBlob } from "../../../src/library/store/blobs.ts";
import { digestOf } from "../../../src/library/store/digest.ts";
import { writeDurably } from "../../../src/base/durable.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { manifestPath, openStore } from "../../../src/library/store/store.ts";
import { putModel, tempFolder, writeTinyGguf } from "../fixture.ts";

let folder: string;
let root: string;
beforeEach(async () => {
  folder = await tempFolder();
  root = join(folder, "models");
});
afterEach(() => rm(folder, { recursive: true }));

/** Every file and folder below, to check that nothing was written. */
const tree = async (path: string): Promise<string[]> => (await readdir(path, { recursive: true })).sort();

describe("opening", () => {
  test("a store that does not exist is empty and is not created", async () => {
    const store = await openStore(root);
    expect(await store.list()).toEqual([]);
    expect(await store.find("m")).toBeUndefined();
    expect(await tree(folder)).toEqual([]);
  });

  test("a store that is not a folder is one clear error", async () => {
    await writeFile(root, "");
    await expect(openStore(root)).rejects.toThrow(`model store: cannot read the folder '${root}'`);
    await rm(root);
    await mkdir(root);
    await writeFile(join(root, "manifests"), "");
    await expect(openStore(root)).rejects.toThrow(`model store: cannot read the folder '${join(root, "manifests")}'`);
  });
});

describe("a store of another server", () => {
  test("is listed, with the model changed last first, and reading writes nothing", async () => {
    await putModel(root, "old", { modifiedAt: new Date(1000) });
    await putModel(root, "hf.co/user/new:q8", { modifiedAt: new Date(2000) });
    const before = await tree(root);
    const store = await openStore(root);
    const models = await store.list();
    expect(models.map((model) => model.displayName)).toEqual(["hf.co/user/new:q8", "old:latest"]);
    const bytes = await Bun.file(manifestPath(root, parseName("old"))).bytes();
    expect(models[1]?.digest).toBe(digestOf(bytes).slice("sha256:".length));
    const { config, layers } = JSON.parse(new TextDecoder().decode(bytes));
    expect(models[1]?.sizeBytes).toBe(config.size + layers[0].size);
    await store.load("old");
    expect(await tree(root)).toEqual(before);
  });

  test("is listed with current changes: replaced, rewritten, repaired, deleted and new models", async () => {
    const store = await openStore(root);
    const types = async (): Promise<object> =>
      Object.fromEntries((await store.list()).map(({ displayName, config }) => [displayName, config.model_type]));
    const put = (name: string, type: string) => putModel(root, name, { config: { model_type: type } });
    await put("a", "1");
    await put("b", "1");
    expect(await types()).toEqual({ "a:latest": "1", "b:latest": "1" });
    await put("a", "2");
    await put("c", "1");
    await writeFile(manifestPath(root, parseName("b")), "{");
    expect(await types()).toEqual({ "a:latest": "2", "c:latest": "1" });
    await put("b", "3");
    await rm(manifestPath(root, parseName("c")));
    expect(await types()).toEqual({ "a:latest": "2", "b:latest": "3" });
  });

  test("is listed without broken manifests, which are reported", async () => {
    await putModel(root, "good");
    await mkdir(join(root, "manifests/registry.ollama.ai/library/bad"), { recursive: true });
    const bad = join(root, "manifests/registry.ollama.ai/library/bad/latest");
    await writeFile(bad, "{");
    await mkdir(join(root, "manifests/registry.ollama.ai/library/-odd"), { recursive: true });
    await writeFile(join(root, "manifests/registry.ollama.ai/library/-odd/latest"), "{}");
    await writeFile(join(root, "manifests/.DS_Store"), "");
    const left: string[] = [];
    const models = await (await openStore(root)).list((path, reason) => left.push(`${path}: ${reason}`));
    expect(models.map((model) => model.displayName)).toEqual(["good:latest"]);
    expect(left.sort()).toEqual([
      expect.stringContaining("-odd/latest: invalid model name"),
      `${bad}: ${bad}: not JSON`,
    ]);
  });

  test("finds names in any case", async () => {
    await putModel(root, "User/Model:Q4", { config: { model_type: "a" } });
    const store = await openStore(root);
    expect((await store.find("user/MODEL:q4"))?.displayName).toBe("User/Model:Q4");
    expect((await store.resolve("USER/model:q4"))?.displayName).toBe("User/Model:Q4");
    expect(await store.find("user/model:q5")).toBeUndefined();
    await expect(store.find("..")).rejects.toThrow("invalid model name");
  });

  // other systems have one file for both
  test.skipIf(process.platform !== "linux")("finds an exact match first", async () => {
    await putModel(root, "User/Model:Q4", { config: { model_type: "a" } });
    const store = await openStore(root);
    await putModel(root, "user/model:q4", { config: { model_type: "b" } });
    expect((await store.find("user/model:q4"))?.config.model_type).toBe("b");
    expect((await store.find("User/Model:Q4"))?.config.model_type).toBe("a");
  });
});

describe("loading", () => {
  test("reads small layers and returns the paths of large ones", async () => {
    await putModel(root, "m", {
      texts: [
        ["template", "{{ .Prompt }}"],
        ["system", "Be brief."],
        ["params", '{"stop":["a","b"],"temperature":0.5,"numa":true,"odd":1}'],
        ["messages", '[{"role":"user","content":"hi"}]'],
        ["license", "one"],
        ["license", "two"],
        ["projector", "weights"],
        ["adapter", "lora"],
      ],
    });
    const entry = await (await openStore(root)).load("m");
    expect(entry).toMatchObject({
      displayName: "m:latest",
      template: "{{ .Prompt }}",
      system: "Be brief.",
      parameters: { stop: ["a", "b"], temperature: 0.5 },
      messages: [{ role: "user", content: "hi" }],
      licenses: ["one", "two"],
    });
    expect(await Bun.file(entry.paths.projectors[0]!).text()).toBe("weights");
    expect(await Bun.file(entry.paths.adapters[0]!).text()).toBe("lora");
    expect(entry.paths.model).toStartWith(join(root, "blobs", "sha256-"));
  });

  test("reports a missing model under the requested name", async () => {
    await expect((await openStore(root)).load("Nope")).rejects.toThrow("model 'Nope' not found");
  });

  test("ignores a folder in the place of a manifest", async () => {
    await mkdir(manifestPath(root, parseName("folder")), { recursive: true });
    const store = await openStore(root);
    expect(await store.find("folder")).toBeUndefined();
    await expect(store.load("folder")).rejects.toMatchObject({
      code: "not_found",
      message: "model 'folder' not found",
    });
  });

  test("names a missing or truncated blob", async () => {
    await putModel(root, "m", { texts: [["system", "Be brief."]] });
    const store = await openStore(root);
    const digest = digestOf(new TextEncoder().encode("Be brief."));
    await writeFile(blobPath(root, digest), "Be");
    await expect(store.load("m")).rejects.toThrow(
      `model 'm:latest': system layer: expected 9 bytes in ${digest}, found 2 bytes`,
    );
    await rm(blobPath(root, digest));
    await expect(store.load("m")).rejects.toThrow("found no such blob");
  });

  test.each([
    ["params", '{"temperature":"hot"}', 'params layer: option "temperature" must be of type float32'],
    ["params", "[]", "params layer: root: expected an object, got []"],
    ["messages", '[{"role":1}]', "messages layer: expected an array of {role, content}"],
    ["messages", "{", "messages layer: not JSON"],
  ] as const)("refuses a %s layer of %s", async (kind, text, message) => {
    await putModel(root, "m", { texts: [[kind, text]] });
    await expect((await openStore(root)).load("m")).rejects.toThrow(`model 'm:latest': ${message}`);
  });
});

describe("blobs", () => {
  test("are imported once, under the digest of the copied bytes, and leave no temporary file", async () => {
    const file = join(folder, "tiny.gguf");
    await writeTinyGguf(file);
    const blob = await importBlob(root, file);
    expect(blob).toEqual({ digest: digestOf(await Bun.file(file).bytes()), size: Bun.file(file).size });
    const { mtimeMs } = await Bun.file(blobPath(root, blob.digest)).stat();
    expect(await importBlob(root, file)).toEqual(blob);
    expect((await Bun.file(blobPath(root, blob.digest)).stat()).mtimeMs).toBe(mtimeMs);
    expect(await tree(root)).toEqual(["blobs", `blobs/${blob.digest.replace(":", "-")}`]);
  });

  test("do not exist before their rename", async () => {
    const bytes = new TextEncoder().encode("content");
    expect(await findBlob(root, digestOf(bytes))).toBeUndefined();
    await writeBlob(root, bytes);
    expect(await findBlob(root, digestOf(bytes))).toBe(7);
  });

  test("leave no temporary file if their content fails", async () => {
    const failing = writeDurably(join(root, "file"), async (temporary) => {
      await writeFile(temporary, "half");
      throw new Error("disk full");
    });
    await expect(failing).rejects.toThrow("disk full");
    expect(await tree(root)).toEqual([]);
  });

  test("leave nothing if they cannot be written", async () => {
    await mkdir(root);
    await writeFile(join(root, "blobs"), "in the way");
    await expect(writeBlob(root, new Uint8Array(3))).rejects.toThrow();
    await expect(importBlob(root, join(folder, "missing"))).rejects.toMatchObject({ code: "not_found" });
    expect(await tree(root)).toEqual(["blobs"]);
  });
});
