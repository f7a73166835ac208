import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeBlob } from "../../src/library/store/blobs.ts";
import { mediaType, readManifest, writeManifest } from "../../src/library/store/manifest.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath, openStore } from "../../src/library/store/store.ts";
import { putModel } from "../library/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

const names = async () => {
  const { models } = (await (await harness.call("GET", "/api/tags")).json()) as { models: { name: string }[] };
  return models.map(({ name }) => name).sort();
};

describe("POST /api/copy", () => {
  const copy = (source: unknown, destination: unknown) => harness.post("/api/copy", { source, destination });

  test("is 200 without a body, and adds the copy", async () => {
    const response = await copy("m", "user/n:1");
    expect([response.status, await response.text()]).toEqual([200, ""]);
    expect(await names()).toEqual(["m:latest", "user/n:1"]);
    expect((await copy("m", "m")).status).toBe(200);
  });

  test.each([
    ["nope", "b", 404, 'model "nope" not found'],
    ["Nope:1", "b", 404, 'model "Nope:1" not found'],
    ["", "b", 400, 'source "" is invalid'],
    [undefined, "b", 400, 'source "" is invalid'],
    ["a b", "b", 400, 'source "a b" is invalid'],
    ["m", "", 400, 'destination "" is invalid'],
    ["m", undefined, 400, 'destination "" is invalid'],
    ["m", 'a"b', 400, 'destination "a\\"b" is invalid'],
    ["m", "../m", 400, 'destination "../m" is invalid'],
    ["m", "a/../../m", 400, 'destination "a/../../m" is invalid'],
    ["m", "..:..", 400, 'destination "..:.." is invalid'],
    ["m", "m:..", 400, 'destination "m:.." is invalid'],
    ["../../etc/passwd", "b", 400, 'source "../../etc/passwd" is invalid'],
    [7, "b", 400, "source: expected a string, got 7"],
  ])("%p to %p: %d %s", async (source, destination, status, error) => {
    const response = await copy(source, destination);
    expect([response.status, await response.json()]).toEqual([status, { error }]);
    expect(await names()).toEqual(["m:latest"]);
  });
});

describe("DELETE /api/delete", () => {
  const remove = (body: unknown) => harness.call("DELETE", "/api/delete", body);

  test.each([[{ model: "m" }], [{ name: "m:latest" }], [{ model: " M:LATEST:local " }], [{ model: "m", name: "n" }]])(
    "%j is 200 without a body, and deletes the model and its blobs",
    async (body) => {
      const response = await remove(body);
      expect([response.status, await response.text()]).toEqual([200, ""]);
      expect(await names()).toEqual([]);
      expect(await readdir(join(harness.root, "blobs"))).toEqual([]);
    },
  );

  test.each([
    [{}, 400, "model is required"],
    [{ model: "" }, 400, "model is required"],
    [{ model: "  " }, 400, "model is required"],
    [{ model: "a b" }, 400, 'name "a b" is invalid'],
    [{ model: "../m" }, 400, 'name "../m" is invalid'],
    [{ model: "m:../../x" }, 400, 'name "m:../../x" is invalid'],
    [{ model: "nope" }, 404, "model 'nope' not found"],
    [{ name: "u/Nope:1" }, 404, "model 'u/Nope:1' not found"],
    [undefined, 400, "missing request body"],
    [{ model: 7 }, 400, "model: expected a string, got 7"],
  ])("%j: %d %s", async (body, status, error) => {
    const response = await remove(body);
    expect([response.status, await response.json()]).toEqual([status, { error }]);
    expect(await names()).toEqual(["m:latest"]);
  });

  test("unloads the weights with the last model that refers to them", async () => {
    const { paths } = await (await openStore(harness.root)).load("m");
    await harness.post("/api/copy", { source: "m", destination: "n" });
    await remove({ model: "m" });
    expect(harness.runtime.unloaded).toEqual([]);
    await remove({ model: "n" });
    expect(harness.runtime.unloaded).toEqual([paths.model]);
  });

  test.each(["projector", "draft"] as const)(
    "unloads the weights if the remaining model has another %s",
    async (kind) => {
      const layer = { mediaType: mediaType(kind), ...(await writeBlob(harness.root, new Uint8Array([7]))) };
      const path = manifestPath(harness.root, parseName("m"));
      const { config, layers } = await readManifest(path);
      await writeManifest(manifestPath(harness.root, parseName("n")), { config, layers: [...layers, layer] });
      const { paths } = await (await openStore(harness.root)).load("m");
      await remove({ model: "m" });
      expect(harness.runtime.unloaded).toEqual([paths.model]);
    },
  );

  test("logs why it keeps blobs if a manifest cannot be read", async () => {
    await putModel(harness.root, "torn");
    const path = manifestPath(harness.root, parseName("torn"));
    await writeFile(path, "{");
    await remove({ model: "m" });
    expect(await readdir(join(harness.root, "blobs"))).not.toEqual([]);
    expect(harness.logs).toContainEqual(expect.objectContaining({ level: "warn", path }));
  });
});
