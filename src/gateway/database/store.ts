/**
 * The gateway's database interface. A transaction is a generator that yields statements, receives their results, and
 * can await nothing else. So the same code runs synchronously inside SQLite's group commit, and asynchronously on
 * PostgreSQL.
 *
 * Statements suit every database: placeholders `$1`, `$2` … first appear in order, a parameter that is only compared
 * with null is cast, and aliases with capitals are quoted.
 */
import type { AppError } from "../../base/index.ts";

export type Value = string | number | null | Uint8Array;

/** One SQL text for all databases, or one for each. */
export type SqlText = string | { readonly sqlite: string; readonly postgres: string };

/** A statement that a transaction yields. */
export type Statement =
  /** Made by `queryOne`, `queryAll` and `execute`. */
  | { readonly text: SqlText; readonly values: readonly Value[]; readonly wants: "one" | "all" | "changes" }
  /** Made by `queryEach`: the first result row for each row of values. */
  | { readonly text: string; readonly rows: readonly (readonly Value[])[]; readonly wants: "one of each" }
  /** Made by `insertAll`. */
  | { readonly insert: Insert; readonly wants: "inserted" };

export interface Insert {
  readonly table: string;
  readonly columns: readonly string[];
  /** One value per column. */
  readonly rows: readonly (readonly Value[])[];
  /** A trailing clause such as `ON CONFLICT …`; absent: none. */
  readonly ending?: string;
}

/** A statement, or several independent ones. */
export type Query = Statement | readonly Query[];

/**
 * A transaction, or a part of one. The runner sends each statement's result back into the generator; a list gets a
 * list.
 */
export type Transaction<T> = Generator<Query, T, unknown>;

/** The first row; undefined without rows. */
export function* queryOne<Row>(text: SqlText, ...values: readonly Value[]): Transaction<Row | undefined> {
  return (yield { text, values, wants: "one" }) as Row | undefined;
}

export function* queryAll<Row>(text: SqlText, ...values: readonly Value[]): Transaction<Row[]> {
  return (yield { text, values, wants: "all" }) as Row[];
}

/** Returns the number of changed rows. */
export function* execute(text: SqlText, ...values: readonly Value[]): Transaction<number> {
  return (yield { text, values, wants: "changes" }) as number;
}

/**
 * The first result row for each row of values, in order; one statement on databases with round trips.
 * @param text whose parameters are texts: cast parameters that are compared with numbers
 */
export function* queryEach<Row>(text: string, rows: readonly (readonly Value[])[]): Transaction<(Row | undefined)[]> {
  return rows.length === 0 ? [] : ((yield { text, rows, wants: "one of each" }) as (Row | undefined)[]);
}

/** Inserts rows in order. */
export function* insertAll(insert: Insert): Transaction<void> {
  if (insert.rows.length > 0) yield { insert, wants: "inserted" };
}

/** Runs independent parts concurrently. If one throws, so does this. */
export function* parallel<const Parts extends readonly Transaction<unknown>[]>(
  ...parts: Parts
): Transaction<Results<Parts>> {
  const steps = parts.map((part) => part.next());
  for (;;) {
    const open = steps.flatMap((step, i) => (step.done ? [] : [{ i, query: step.value }]));
    if (open.length === 0) return steps.map(({ value }) => value as unknown) as Results<Parts>;
    const answers = (yield open.map(({ query }) => query)) as unknown[];
    for (const [k, { i }] of open.entries()) steps[i] = parts[i]!.next(answers[k]);
  }
}

type Results<Parts extends readonly Transaction<unknown>[]> = {
  -readonly [I in keyof Parts]: Parts[I] extends Transaction<infer T> ? T : never;
};

/** A part of a transaction that is rolled back alone if it throws. */
export function* undoable<T>(part: Transaction<T>): Transaction<T> {
  yield* execute("SAVEPOINT part");
  try {
    const result = yield* part;
    yield* execute("RELEASE SAVEPOINT part");
    return result;
  } catch (error) {
    yield* undo(error);
    throw error;
  }
}

export const isList = (query: Query): query is readonly Query[] => Array.isArray(query);

/** If the whole transaction is rolled back already, throws the cause. */
function* undo(cause: unknown): Transaction<void> {
  try {
    yield* execute("ROLLBACK TO SAVEPOINT part");
    yield* execute("RELEASE SAVEPOINT part");
  } catch {
    throw cause;
  }
}

/**
 * Placeholders for a list of values.
 * @param first number of the first one
 */
export const placeholders = (values: readonly Value[], first: number): string =>
  values.map((_, i) => `$${first + i}`).join(", ");

export interface Store {
  /**
   * Runs a transaction; resolves with its result once that is durable. One that throws is rolled back alone, and its
   * error is the rejection; `storage` means that the database failed. It may run more than once:
   * its only effects are in the database.
   */
  write<T>(transaction: () => Transaction<T>): Promise<T>;
  /**
   * Like `write`, for a transaction with many concurrent callers: one run may get several waiting inputs, and returns
   * as many results, in order. If it throws, it is run for each input alone. Its plans may be cached: each statement
   * finds its rows by an index, whatever the size of the tables.
   */
  writeEach<I, O>(transaction: (inputs: readonly I[]) => Transaction<readonly O[]>, input: I): Promise<O>;
  /** Runs a read-only transaction. Data that it sees may not be durable yet. */
  read<T>(transaction: () => Transaction<T>): Promise<T>;
  /** The error of the last commit; undefined if it succeeded. */
  readonly failure: AppError | undefined;
  /** Resolves once all pending work is stored. No transaction may follow. */
  close(): Promise<void>;
}
