/**
 * The gateway's database, and the processes that use it: SQLite files belong to one process; any number share a
 * PostgreSQL server.
 */
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { callMigrations } from "../agent/calls/tables.ts";
import { agentMigrations } from "../agent/tables.ts";
import { AppError, type Clock, type Logger, VERSION } from "../../base/index.ts";
import { openDatabase, type Migration } from "../database/database.ts";
import { beginPause, endPause, isPaused, pauseMigrations } from "../database/pauses.ts";
import { alone, type Peers } from "../database/peers.ts";
import { takeLock } from "../../base/system.ts";
import { SqliteStore } from "../database/sqlite-store.ts";
import type { Store } from "../database/store.ts";
import { outboxMigrations } from "../channels/outbox/tables.ts";
import { deliveryMigrations } from "../hooks/queue/deliveries/tables.ts";
import { mailMigrations } from "../hooks/mail/position.ts";
import { newerMessage, newerMigrations } from "./newer.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** In the home folder. */
export const DATABASE_FILE = "gateway.db";

const sqliteMigrations: readonly Migration[] = [
  ...agentMigrations,
  ...outboxMigrations,
  ...deliveryMigrations,
  ...callMigrations,
  ...mailMigrations,
  ...pauseMigrations,
];

export interface Storage {
  readonly store: Store;
  readonly peers: Peers;
  /** The shared clock of all nodes. */
  readonly clock: Clock;
  /** Folder of a SQLite database. */
  readonly folder: string | undefined;
  /** Rejects with `storage` if the server is down, or cannot keep its guarantees; absent: SQLite. */
  readonly checkServer?: () => Promise<void>;
  /** Names of migrations by a newer version. Rejects with `storage`. */
  newerMigrations(): Promise<readonly string[]>;
  /** Resolves once all pending work is stored. */
  close(): Promise<void>;
}

export interface StorageParts {
  /** Folder of a SQLite database. */
  readonly home: string;
  readonly snapshot: () => GatewaySnapshot;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Throws `storage`, or `conflict` if another process has the files. Warns of tables of a newer version. */
export async function openStorage(parts: StorageParts): Promise<Storage> {
  const { url } = parts.snapshot().database;
  const storage = await (url === undefined ? openFiles(parts) : openServer(parts, url));
  const newer = await storage.newerMigrations().catch(() => []); // the first real use reports the error
  if (newer.length > 0) parts.log.warn(newerMessage(newer));
  return storage;
}

/** One line about an upgrade; a new database has none. */
const tellMigrated =
  (log: Logger) =>
  (steps: readonly string[]): void =>
    log.info("the gateway's tables were updated for this version", { version: VERSION, steps });

async function openFiles({ home, clock, log }: StorageParts): Promise<Storage> {
  const lock = takeLock(join(home, "gateway.lock"), `the gateway in '${home}'`);
  try {
    checkEmpty(join(home, DATABASE_FILE), log);
    const store = new SqliteStore(openDatabase(join(home, DATABASE_FILE), sqliteMigrations, tellMigrated(log)));
    return {
      store,
      peers: alone({
        isPaused: await store.read(isPaused),
        keep: (given) => store.write(() => (given ? beginPause(clock.now()) : endPause())),
      }),
      clock,
      folder: home,
      newerMigrations: () => store.read(() => newerMigrations(sqliteMigrations)),
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

/**
 * A used database file is never empty: it was truncated, or a process was killed while creating it. Throws `storage` if
 * the write-ahead log beside it shows that there was data.
 */
function checkEmpty(path: string, log: Logger): void {
  const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (sizeOf(path) > 0) return;
  const logBytes = sizeOf(`${path}-wal`);
  if (logBytes > 0) {
    const got = existsSync(path) ? "got a file of 0 bytes" : "got none";
    const what = `expected a database, ${got} beside its write-ahead log of ${logBytes} bytes`;
    const remedy = "restore both files from a backup, or remove both to start empty";
    throw new AppError("storage", `${path}: ${what}: ${remedy}`);
  }
  if (existsSync(path))
    log.warn("the database file was empty: started a new one; earlier deliveries are lost", { path });
}

/** Loads the PostgreSQL code only on use. */
async function openServer({ snapshot, clock, log }: StorageParts, url: string): Promise<Storage> {
  const { openPostgres } = await import("../database/postgres/postgres-store.ts");
  const { joinCluster } = await import("../database/postgres/cluster.ts");
  const { writerMigrations } = await import("../database/postgres/writer.ts");
  const { postgresMigrations } = await import("./postgres-migrations.ts");
  const name = hostname();
  const { schema, connections } = snapshot().database;
  const options = { url, schema, connections, name: `hearth/${name}` };
  const store = await openPostgres(options, postgresMigrations, tellMigrated(log));
  try {
    const facts = () => ({ name, version: VERSION, digest: digestOf(snapshot()) });
    const cluster = await joinCluster(store, { ...options, log, facts });
    const close = async (): Promise<void> => {
      await cluster.leave();
      await store.close();
    };
    const shared = { ...clock, now: () => cluster.now() };
    const known = [...writerMigrations, ...postgresMigrations];
    return {
      store,
      peers: cluster,
      clock: shared,
      folder: undefined,
      checkServer: () => store.check(),
      newerMigrations: () => store.read(() => newerMigrations(known)),
      close,
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Equal for nodes with the same configuration; the address of the database may differ. */
function digestOf({ hooks, agents, session, channels, gateway }: GatewaySnapshot): string {
  const text = JSON.stringify([hooks, agents, session, channels, gateway]);
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
