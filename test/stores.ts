/** Stores for tests: in SQLite, or on the server in HEARTH_TEST_POSTGRES, each in a separate schema. */
import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { agentMigrations as agentInPostgres } from "../src/gateway/agent/postgres-tables.ts";
import { callMigrations as callsInPostgres } from "../src/gateway/agent/calls/postgres-tables.ts";
import { callMigrations } from "../src/gateway/agent/calls/tables.ts";
import { agentMigrations } from "../src/gateway/agent/tables.ts";
import { openDatabase, SETTINGS, type Migration } from "../src/gateway/database/database.ts";
import { openPostgres, type PostgresStore } from "../src/gateway/database/postgres/postgres-store.ts";
import { SqliteStore } from "../src/gateway/database/sqlite-store.ts";
import { execute, queryAll, queryOne, type Transaction, type Store } from "../src/gateway/database/store.ts";
import { outboxMigrations as outboxInPostgres } from "../src/gateway/channels/outbox/postgres-tables.ts";
import { outboxMigrations } from "../src/gateway/channels/outbox/tables.ts";
import { postgresMigrations } from "../src/gateway/operate/postgres-migrations.ts";
import { deliveryMigrations as deliveriesInPostgres } from "../src/gateway/hooks/queue/deliveries/postgres-tables.ts";
import { deliveryMigrations } from "../src/gateway/hooks/queue/deliveries/tables.ts";
import { mailMigrations } from "../src/gateway/hooks/mail/position.ts";
import { mailMigrations as mailInPostgres } from "../src/gateway/hooks/mail/postgres-tables.ts";

/** Undefined: tests run on SQLite. */
export const postgresUrl = process.env["HEARTH_TEST_POSTGRES"];

/** @param path the same for stores over one database; absent: in memory, of this store alone */
export function openStore(migrations: readonly Migration[], path = ":memory:"): Store {
  if (postgresUrl === undefined)
    return new SqliteStore(path === ":memory:" ? openInMemory(migrations) : openDatabase(path, migrations));
  return new LaterStore(openInPostgres(postgresUrl, { migrations: inPostgres(migrations), path }));
}

/** By migrations: fresh databases with their tables. */
const made = new Map<string, Uint8Array>();

/** A copy of an earlier one: making the tables takes longer than most tests. */
function openInMemory(migrations: readonly Migration[]): Database {
  const kind = JSON.stringify(migrations);
  const bytes = made.get(kind) ?? openDatabase(":memory:", migrations).serialize();
  made.set(kind, bytes);
  const db = Database.deserialize(bytes, { strict: true });
  db.run(SETTINGS);
  return db;
}

/** The settings of a gateway's database, the same for the same folder. */
export async function databaseOf(home: string): Promise<{ database?: object }> {
  if (postgresUrl === undefined) return {};
  const { schema } = await schemaOf(postgresUrl, { migrations: postgresMigrations, path: join(home, "gateway.db") });
  return { database: { url: postgresUrl, schema, connections: 3 } };
}

const TABLES: readonly (readonly [readonly Migration[], readonly Migration[]])[] = [
  [agentMigrations, agentInPostgres],
  [outboxMigrations, outboxInPostgres],
  [deliveryMigrations, deliveriesInPostgres],
  [callMigrations, callsInPostgres],
  [mailMigrations, mailInPostgres],
];

/** The same tables; a test's own work on both. */
const inPostgres = (migrations: readonly Migration[]): Migration[] => [
  ...TABLES.flatMap(([sqlite, postgres]) => (sqlite.every((step) => migrations.includes(step)) ? postgres : [])),
  ...migrations.filter((step) => !TABLES.some(([sqlite]) => sqlite.includes(step))),
];

/** Making tables costs more than most tests, so a used schema with the same tables is emptied and reused. */
interface Schema {
  readonly schema: string;
  /** Identifies its tables. */
  readonly kind: string;
  /** The statement that empties its tables. */
  readonly empty: string;
  /** Stays connected. */
  readonly store: PostgresStore;
}

interface Wanted {
  readonly migrations: readonly Migration[];
  readonly path: string;
}

const free: Schema[] = [];
/** By path. */
const used = new Map<string, Promise<Schema>>();

async function openInPostgres(url: string, { migrations, path }: Wanted): Promise<Store> {
  if (path === ":memory:") {
    const taken = await takeSchema(url, migrations);
    return closing(taken.store, () => giveBack(taken));
  }
  const isFirst = !used.has(path);
  const { schema, store } = await schemaOf(url, { migrations, path });
  if (isFirst) return closing(store, () => store.write(() => answering(undefined)));
  return openPostgres({ url, schema, connections: 3, name: "test" }, migrations);
}

/** The schema of a path, as long as its folder exists. */
async function schemaOf(url: string, { migrations, path }: Wanted): Promise<Schema> {
  for (const [other, promise] of used) {
    if (existsSync(dirname(other))) continue;
    used.delete(other);
    await giveBack(await promise);
  }
  const known = used.get(path) ?? takeSchema(url, migrations);
  used.set(path, known);
  return known;
}

async function takeSchema(url: string, migrations: readonly Migration[]): Promise<Schema> {
  const kind = migrations.map(({ name }) => name).join();
  const at = free.findIndex((other) => other.kind === kind);
  if (at >= 0) return free.splice(at, 1)[0]!;
  const schema = `test_${crypto.randomUUID()}`;
  const store = await openPostgres({ url, schema, connections: 3, name: "test" }, migrations);
  return { schema, kind, store, empty: await store.read(emptying) };
}

/** Not reused if a test dropped tables, or left more rows than are worth deleting. */
async function giveBack({ schema, kind, store, empty }: Schema): Promise<void> {
  const isEmpty = await store
    .write(function* () {
      const isFull = empty.includes("open_runs") && (yield* queryOne(`SELECT 1 FROM open_runs WHERE n > ${MANY}`));
      if (!isFull) yield* execute(empty);
      return !isFull;
    })
    .catch(() => false);
  if (isEmpty) free.push({ schema, kind, store, empty });
  else await store.close();
}

/** With this many runs or more, making new tables is faster than deleting rows. */
const MANY = 300;

/** A statement that empties all tables. It empties the triggers' tables too, and keeps the server's life. */
function* emptying(): Transaction<string> {
  const tables = yield* queryAll<{ name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = current_schema()
       AND tablename NOT IN ('migrations', 'open_runs', 'session_event_parts', 'server_lives')`,
  );
  const sequences = yield* queryAll<{ name: string }>(
    "SELECT quote_literal(quote_ident(sequencename)) AS name FROM pg_sequences WHERE schemaname = current_schema()",
  );
  const deletions = tables.map(({ name }, i) => `d${i} AS (DELETE FROM ${name})`);
  return `WITH ${deletions.join(", ")} SELECT ${sequences.map(({ name }) => `setval(${name}, 1, FALSE)`).join(", ")}`;
}

/** A store that is reused later. Writes of its user after closing do not reach the next one. */
function closing(store: Store, end: () => Promise<void>): Store {
  const underway = new Set<Promise<unknown>>();
  const noted = <T>(written: Promise<T>): Promise<T> => {
    underway.add(written);
    const over = (): void => void underway.delete(written);
    written.then(over, over);
    return written;
  };
  let closed: Promise<void> | undefined;
  return {
    write: (transaction) => noted(store.write(transaction)),
    writeEach: (transaction, input) => noted(store.writeEach(transaction, input)),
    read: (transaction) => store.read(transaction),
    get failure() {
      return store.failure;
    },
    close: () => (closed ??= Promise.allSettled(underway).then(end)),
  };
}

/** A store that opens lazily, for tests that need it synchronously. */
class LaterStore implements Store {
  readonly #opened: Promise<Store>;
  #store: Store | undefined;

  constructor(opened: Promise<Store>) {
    this.#opened = opened;
    opened.then(
      (store) => (this.#store = store),
      () => {}, // its user gets the error
    );
  }

  write = async <T>(transaction: () => Transaction<T>): Promise<T> => (await this.#opened).write(transaction);

  writeEach = async <I, O>(transaction: (inputs: readonly I[]) => Transaction<readonly O[]>, input: I): Promise<O> =>
    (await this.#opened).writeEach(transaction, input);

  read = async <T>(transaction: () => Transaction<T>): Promise<T> => (await this.#opened).read(transaction);

  get failure(): Store["failure"] {
    return this.#store?.failure;
  }

  close = async (): Promise<void> => (await this.#opened).close();
}

/** A transaction without statements. */
export function* answering<T>(value: T): Transaction<T> {
  yield* [];
  return value;
}
