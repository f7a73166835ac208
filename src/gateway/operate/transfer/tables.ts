/** The tables of a transfer: all whose rows are not derived from other rows. */
import { queryAll, queryOne, type Transaction, type SqlText, type Store } from "../../database/store.ts";

export interface TransferTable {
  readonly name: string;
  /** Unique columns that order the rows. */
  readonly key: readonly string[];
  /** Columns that the database computes. */
  readonly derived?: readonly string[];
}

/** Ordered so that rows follow those they refer to. */
export const TABLES: readonly TransferTable[] = [
  { name: "sessions", key: ["key"] },
  { name: "session_entries", key: ["seq"] },
  { name: "session_events", key: ["seq"] },
  { name: "heartbeats", key: ["session_key"] },
  { name: "deliveries", key: ["seq"] },
  { name: "items", key: ["lane", "item_id"] },
  { name: "runs", key: ["seq"], derived: ["is_first"] },
  { name: "turn_rounds", key: ["run_id", "round"] },
  { name: "tool_calls", key: ["id"] },
  { name: "callbacks", key: ["run_id"] },
  { name: "outbox", key: ["seq"] },
  { name: "mail_positions", key: ["mailbox"] },
  { name: "mail_handled", key: ["mailbox", "id_hash"] },
  { name: "pauses", key: ["since"], derived: ["is_one"] },
];

/** True if its rows have sequence numbers that are never reused. */
export const isNumbered = ({ key }: TransferTable): boolean => key[0] === "seq";

const COLUMNS: SqlText = {
  sqlite: "SELECT name FROM pragma_table_info($1)",
  postgres: `SELECT column_name AS name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1`,
};

/** Names of the transferred columns. */
export function* columnsOf({ name, derived = [] }: TransferTable): Transaction<ReadonlySet<string>> {
  const rows = yield* queryAll<{ name: string }>(COLUMNS, name);
  return new Set(rows.map((row) => row.name).filter((column) => !derived.includes(column)));
}

export function* countRows(table: TransferTable): Transaction<number> {
  const row = yield* queryOne<{ n: number }>(`SELECT count(*) AS n FROM ${table.name}`);
  return row?.n ?? 0;
}

/** The last number used; 0: none. */
export function* lastNumber({ name }: TransferTable): Transaction<number> {
  const text: SqlText = {
    sqlite: "SELECT seq AS n FROM sqlite_sequence WHERE name = $1",
    postgres: "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, 'seq')::regclass) AS n",
  };
  return (yield* queryOne<{ n: number | null }>(text, name))?.n ?? 0;
}

/**
 * Sets the last number used.
 * @param last at least 1
 */
export function* setLastNumber({ name }: TransferTable, last: number): Transaction<void> {
  const forget: SqlText = { sqlite: "DELETE FROM sqlite_sequence WHERE name = $1", postgres: "SELECT $1::text" };
  const note: SqlText = {
    sqlite: "INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)",
    postgres: "SELECT setval(pg_get_serial_sequence($1, 'seq'), $2)",
  };
  yield* queryAll(forget, name);
  yield* queryAll(note, name, last);
}

/** Number of rows by table, without empty tables. */
export type Counts = Readonly<Record<string, number>>;

export async function countAll(store: Store): Promise<Counts> {
  const counts = TABLES.map(async (table) => [table.name, await store.read(() => countRows(table))] as const);
  return Object.fromEntries((await Promise.all(counts)).filter(([, n]) => n > 0));
}
