/**
 * Stores for tests: in SQLite, or where HEARTH_TEST_POSTGRES names a server in PostgreSQL, each in a schema of its own.
 */
import { createHash } from "node:crypto";
import { agentMigrations as agentInPostgres } from "../src/agent/postgres-tables.ts";
import { agentMigrations } from "../src/agent/tables.ts";
import { openDatabase, type Migration } from "../src/base/database.ts";
import { openPostgres } from "../src/base/postgres/postgres-store.ts";
import { SqliteStore } from "../src/base/sqlite-store.ts";
import type { Script, Store } from "../src/base/store.ts";
import { outboxMigrations as outboxInPostgres } from "../src/channels/outbox/postgres-tables.ts";
import { outboxMigrations } from "../src/channels/outbox/tables.ts";
import { deliveryMigrations as deliveriesInPostgres } from "../src/hooks/deliveries/postgres-tables.ts";
import { deliveryMigrations } from "../src/hooks/deliveries/tables.ts";

/** Undefined: tests run on SQLite. */
export const postgresUrl = process.env["HEARTH_TEST_POSTGRES"];

/** @param path absent: in memory */
export function openStore(migrations: readonly Migration[], path = ":memory:"): Store {
  if (postgresUrl === undefined) return new SqliteStore(openDatabase(path, migrations));
  const schema = path === ":memory:" ? `test_${crypto.randomUUID()}` : `test_${hashOf(path)}`;
  return new LaterStore(
    openPostgres({ url: postgresUrl, schema, connections: 3, name: "test" }, inPostgres(migrations)),
  );
}

const hashOf = (path: string): string => createHash("sha256").update(path).digest("hex").slice(0, 32);

const TABLES: readonly (readonly [readonly Migration[], readonly Migration[]])[] = [
  [agentMigrations, agentInPostgres],
  [outboxMigrations, outboxInPostgres],
  [deliveryMigrations, deliveriesInPostgres],
];

/** The same tables; a test's own are written for both. */
const inPostgres = (migrations: readonly Migration[]): Migration[] => [
  ...TABLES.flatMap(([sqlite, postgres]) => (sqlite.every((step) => migrations.includes(step)) ? postgres : [])),
  ...migrations.filter((step) => !TABLES.some(([sqlite]) => sqlite.includes(step))),
];

/** A store whose server answers later, for tests that open it in passing. */
class LaterStore implements Store {
  readonly #opened: Promise<Store>;
  #store: Store | undefined;

  constructor(opened: Promise<Store>) {
    this.#opened = opened;
    opened.then(
      (store) => (this.#store = store),
      () => {}, // whoever uses it is told
    );
  }

  write = async <T>(script: () => Script<T>): Promise<T> => (await this.#opened).write(script);

  writeEach = async <I, O>(script: (inputs: readonly I[]) => Script<readonly O[]>, input: I): Promise<O> =>
    (await this.#opened).writeEach(script, input);

  read = async <T>(script: () => Script<T>): Promise<T> => (await this.#opened).read(script);

  get failure(): Store["failure"] {
    return this.#store?.failure;
  }

  close = async (): Promise<void> => (await this.#opened).close();
}

/** A script that asks nothing. */
export function* answering<T>(value: T): Script<T> {
  yield* [];
  return value;
}
