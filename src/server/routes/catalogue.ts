/** `GET /api/catalogue`: popular models of the public library, and which of them fit this machine. */
import { statfs } from "node:fs/promises";
import { type StaticDecode, Type } from "@sinclair/typebox";
import { availableMemory, totalMemory } from "../../base/system.ts";
import { jsonSchemaOf, nullable, oneOfTexts, strictObject } from "../../base/schema.ts";
import { fitOf, type MachineFacts, readCatalogue, suggestionsOf, catalogueFields } from "../../library/index.ts";
import type { RouteDeps } from "./deps.ts";
import { get, type Route } from "./route.ts";

const bytes = Type.Integer({ minimum: 0 });

export const CatalogueReply = strictObject({
  updated: Type.String({ description: "Year and month of the list" }),
  memory: strictObject({ total: bytes, available: bytes }),
  disk: strictObject({ free: nullable(bytes) }, { description: "Of the model store" }),
  suggested: Type.Array(Type.String(), { description: "At most three names for a first model, most useful first" }),
  models: Type.Array(
    strictObject({
      ...catalogueFields,
      installed: Type.Boolean(),
      fits: oneOfTexts(["yes", "tight", "no"]),
      reason: Type.Optional(Type.String()),
    }),
  ),
});

export const catalogueRoutes = (): Route[] => [
  get("/api/catalogue", async (deps) => ({ kind: "json", body: await catalogueFor(deps) }), {
    api: "server",
    summary: "Models that can be pulled, and which of them fit this machine",
    answer: jsonSchemaOf(CatalogueReply),
  }),
];

async function catalogueFor(deps: RouteDeps): Promise<StaticDecode<typeof CatalogueReply>> {
  const [{ updated, models }, facts, stored] = await Promise.all([
    readCatalogue(),
    machineFacts(deps),
    deps.store.list(),
  ]);
  const names = new Set(stored.map(({ displayName }) => displayName.toLowerCase()));
  const found = models.map((model) => {
    const installed = names.has(model.name);
    return { ...model, installed, ...fitOf(model, facts, installed) };
  });
  return {
    updated,
    memory: facts.memory,
    disk: facts.disk,
    suggested: suggestionsOf(found),
    models: found.map(({ suggested: _suggested, ...model }) => model),
  };
}

async function machineFacts({ store, config }: RouteDeps): Promise<MachineFacts> {
  const disk = await statfs(store.root).catch(() => undefined);
  return {
    memory: { total: totalMemory(), available: availableMemory() },
    gpuMemory: typeof config.gpuMemory === "number" ? config.gpuMemory : undefined,
    disk: { free: disk ? disk.bavail * disk.bsize : null },
  };
}
