/**
 * The commands `hearth gateway export`, `import` and `hearth migrate`: they work on the configured database, without a
 * server.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { AppError, makeStreamLogger, systemClock, VERSION } from "../../../base/index.ts";
import { configPath, type ConfigSources, hasSections, readConfig } from "../../../base/config/index.ts";
import { readSnapshot } from "../read.ts";
import { makeSnapshot, type GatewaySnapshot } from "../snapshot.ts";
import { DATABASE_FILE, openStorage, type Storage } from "../storage.ts";
import { exportStore } from "./export.ts";
import { importStore } from "./import.ts";
import type { Counts } from "./tables.ts";

/** Throws `conflict` while a gateway uses the database, `not_found` if there is no database. */
export async function exportGateway(sources: ConfigSources, path: string): Promise<Counts> {
  const absence = absenceOf(sources);
  if (absence !== undefined) throw new AppError("not_found", `${absence}: nothing to export`);
  return withStorage(sources, async (storage) => {
    await checkAlone(storage);
    const counts = await exportStore(storage.store, path, { version: VERSION });
    await checkAlone(storage); // no gateway started meanwhile
    return counts;
  });
}

/** Like `exportGateway`; throws `conflict` too if the database is not empty, and `bad_file`. */
export const importGateway = (sources: ConfigSources, path: string): Promise<Counts> =>
  withStorage(sources, async (storage) => {
    await checkAlone(storage);
    return importStore(storage.store, path);
  });

/** A killed node is noticed within this time; a running one stays registered. */
const GONE_MS = 2000;
const LOOK_MS = 50;

async function checkAlone({ store, peers }: Storage): Promise<void> {
  const until = performance.now() + GONE_MS;
  for (;;) {
    const all = (await store.read(() => peers.nodes())).map(({ name, number }) => `${name}#${number}`);
    const others = all.filter((name) => name !== peers.me);
    if (others.length === 0) return;
    if (performance.now() > until) {
      throw new AppError("conflict", `the database is in use by ${others.join(", ")}: stop them first`);
    }
    await Bun.sleep(LOOK_MS);
  }
}

/** Migrates the tables, also while gateways run. Returns the result as text. */
export async function migrateGateway(sources: ConfigSources): Promise<string> {
  const absence = absenceOf(sources);
  if (absence !== undefined) return `${absence}: nothing to migrate`;
  return `the gateway's tables in ${await migrateTables(sources)} are up to date`;
}

/** Returns the place of the tables. */
async function migrateTables(sources: ConfigSources): Promise<string> {
  const { url, schema } = settingsOf(sources).snapshot.database;
  if (url === undefined) return withStorage(sources, async ({ folder }) => `'${folder}'`);
  const { openPostgres } = await import("../../database/postgres/postgres-store.ts");
  const { postgresMigrations } = await import("../postgres-migrations.ts");
  await (await openPostgres({ url, schema, connections: 3, name: "hearth migrate" }, postgresMigrations)).close();
  return `schema '${schema}' of PostgreSQL`;
}

/** The reason why there is no database and none is configured; undefined: it exists, or the next start creates it. */
function absenceOf(sources: ConfigSources): string | undefined {
  const { home } = settingsOf(sources);
  if (hasSections(sources) || existsSync(join(home, DATABASE_FILE))) return undefined;
  return `no gateway is configured in '${configPath(sources).path}', and there is no ${DATABASE_FILE} in '${home}'`;
}

function settingsOf(sources: ConfigSources): { home: string; snapshot: GatewaySnapshot } {
  const config = readConfig(sources);
  const none = () => makeSnapshot(undefined, { folder: dirname(configPath(sources).path), apiKeys: config.apiKeys });
  return { home: config.home, snapshot: readSnapshot(sources, config)?.snapshot ?? none() };
}

async function withStorage<T>(sources: ConfigSources, work: (storage: Storage) => Promise<T>): Promise<T> {
  const { home, snapshot } = settingsOf(sources);
  const all = makeStreamLogger(process.stderr, { now: Date.now, debug: false });
  // hides a node's own messages: a long import delays this process's beats, and failures throw anyway
  const log = { ...all, info: () => {}, error: () => {} };
  const storage = await openStorage({ home, snapshot: () => snapshot, clock: systemClock, log });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}
