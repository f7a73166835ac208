/** The models of a store, for agents: real files, and a source with scripted answers. */
import { afterEach, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { findModel } from "../../../src/gateway/agent/models.ts";
import { agentsSchema } from "../../../src/gateway/agent/config.ts";
import { AppError } from "../../../src/base/errors.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { storedModels } from "../../../src/server/models/stored-models.ts";
import { openStore, type Store } from "../../../src/library/store/store.ts";
import { putModel, tempFolder } from "../../library/fixture.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(() => Promise.all(cleanups.splice(0).map((cleanup) => cleanup())));

const log = makeLogger({ write: () => {}, now: () => 0, debug: false });
const agents = agentsSchema.parse({ defaults: { model: "text" } });

async function stored(more: Partial<Store> = {}) {
  const folder = await tempFolder();
  cleanups.push(() => rm(folder, { recursive: true }));
  const root = join(folder, "models");
  await putModel(root, "text");
  await putModel(root, "embed", { gguf: { "llama.pooling_type": { u32: 1 } } });
  return storedModels({ ...(await openStore(root)), ...more }, log);
}

test("a model for embeddings cannot chat, and a missing model may be able to", async () => {
  const models = await stored();
  expect((await models.modelNames()).toSorted()).toEqual(["embed:latest", "text:latest"]);
  expect(await Promise.all(["text:latest", "embed", "gone"].map((name) => models.canChat!(name)))).toEqual([
    true,
    false,
    true,
  ]);
});

test("a model that the source offers is found, and one that it does not offer is unknown", async () => {
  let asked = 0;
  const models = await stored({ isOffered: async ({ model }) => (asked++, model === "Offered") });
  const find = (reference: string) => findModel({ agents, reference }, models);
  expect(await find("Offered:8B")).toEqual({ model: "Offered:8B" });
  expect(await find("Offered:8B")).toEqual({ model: "Offered:8B" });
  expect(asked).toBe(1); // probes ask repeatedly
  expect(await find("text")).toEqual({ model: "text:latest" });
  expect(await find("other")).toMatchObject({ error: { code: "model_unknown", name: "other" } });
  expect(await find("../../etc")).toMatchObject({ error: { code: "model_unknown" } });
});

test("an unreachable source is an error that lets the turn be tried again", async () => {
  const models = await stored({ isOffered: () => Promise.reject(new AppError("registry", "cannot be reached")) });
  const failure: unknown = await findModel({ agents, reference: "other" }, models).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "registry", isUntried: true });
  expect(await findModel({ agents, reference: "text" }, models)).toEqual({ model: "text:latest" });
});
