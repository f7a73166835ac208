/** The gateway's database, which belongs to one process: another would take up what this one is in the middle of. */
import { hostname } from "node:os";
import { join } from "node:path";
import { agentMigrations } from "../agent/tables.ts";
import { openDatabase } from "../base/database.ts";
import { takeLock } from "../base/process-lock.ts";
import { SqliteStore } from "../base/sqlite-store.ts";
import type { Store } from "../base/store.ts";
import { outboxMigrations } from "../channels/outbox/tables.ts";
import { deliveryMigrations } from "../hooks/deliveries/tables.ts";
import { mailMigrations } from "../hooks/mail/position.ts";
import type { DatabaseConfig } from "./database-config.ts";

export interface Storage {
  readonly store: Store;
  /** Of a database in files: their folder. */
  readonly folder: string | undefined;
  /** Resolves once all that was to be written is. */
  close(): Promise<void>;
}

/** Throws `conflict` where another process has it, or `storage`. */
export function openStorage(home: string, { url, ...options }: DatabaseConfig): Promise<Storage> {
  return url === undefined ? openFiles(home) : openServer({ ...options, url });
}

async function openFiles(home: string): Promise<Storage> {
  const lock = takeLock(join(home, "gateway.lock"), `the gateway in '${home}'`);
  try {
    const migrations = [...agentMigrations, ...outboxMigrations, ...deliveryMigrations, ...mailMigrations];
    const store = new SqliteStore(openDatabase(join(home, "gateway.db"), migrations));
    return {
      store,
      folder: home,
      async close() {
        await store.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Nothing of it is loaded before it is asked for. */
async function openServer(options: Omit<DatabaseConfig, "url"> & { readonly url: string }): Promise<Storage> {
  const { openPostgres } = await import("../base/postgres/postgres-store.ts");
  const { postgresMigrations } = await import("./postgres-migrations.ts");
  const store = await openPostgres({ ...options, name: `hearth/${hostname()}`, isAlone: true }, postgresMigrations);
  return { store, folder: undefined, close: () => store.close() };
}
