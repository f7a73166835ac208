/** `GET /api/catalogue`: the list, with the facts of this machine and its store. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { reader } from "../../src/base/schema.ts";
import { CatalogueReply } from "../../src/server/routes/catalogue.ts";
import { putModel } from "../library/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness({ apiKeys: ["ann:secret-of-ann"], gpuMemory: 500e9 })));
afterAll(() => harness.close());

const KEY = { authorization: "Bearer secret-of-ann" };
const ask = async (): Promise<any> => (await harness.call("GET", "/api/catalogue", undefined, KEY)).json();

test("the catalogue requires a key if the server has keys", async () => {
  expect((await harness.call("GET", "/api/catalogue")).status).toBe(401);
});

test("the catalogue matches its schema, with the machine's memory and the store's free disk space", async () => {
  const found = reader(CatalogueReply).parse(await ask());
  expect(found.memory.available).toBeWithin(1, found.memory.total + 1);
  expect(found.disk.free).toBeGreaterThan(0);
  expect(found.suggested.every((name) => found.models.some((model) => model.name === name))).toBe(true);
});

test("the memory of the configured GPU counts for what fits", async () => {
  const { models } = await ask();
  expect(models.filter(({ reason = "" }: { reason?: string }) => reason.includes("of memory"))).toEqual([]);
});

test("the catalogue marks the installed models", async () => {
  const isInstalled = async (): Promise<boolean> =>
    (await ask()).models.find(({ name }: { name: string }) => name === "qwen3:0.6b").installed;
  expect(await isInstalled()).toBe(false);
  await putModel(harness.root, "qwen3:0.6b");
  expect(await isInstalled()).toBe(true);
});
