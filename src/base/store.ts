/**
 * The gateway's database, as all of its code sees it. A transaction is a script: a generator that yields statements and
 * gets their answers, and that can wait for nothing else. So one text runs synchronously inside SQLite's group commit
 * and with promises elsewhere.
 *
 * Statements are written for every database: placeholders `$1`, `$2` … first appear in order, a parameter that is only
 * compared with null is cast, and aliases with capitals are in quotes.
 */
import type { AppError } from "./errors.ts";

export type Value = string | number | null | Uint8Array;

/** One text for all databases, or one for each. */
export type SqlText = string | { readonly sqlite: string; readonly postgres: string };

/** What a script asks of its database; made by `queryOne`, `queryAll` and `execute`. */
export interface Statement {
  readonly text: SqlText;
  readonly values: readonly Value[];
  readonly wants: "one" | "all" | "changes";
}

/** A transaction, or a part of one. Whoever runs it answers each statement as it asks to be. */
export type Script<T> = Generator<Statement, T, unknown>;

/** The first row; undefined where there is none. */
export function* queryOne<Row>(text: SqlText, ...values: readonly Value[]): Script<Row | undefined> {
  return (yield { text, values, wants: "one" }) as Row | undefined;
}

export function* queryAll<Row>(text: SqlText, ...values: readonly Value[]): Script<Row[]> {
  return (yield { text, values, wants: "all" }) as Row[];
}

/** Returns how many rows changed. */
export function* execute(text: SqlText, ...values: readonly Value[]): Script<number> {
  return (yield { text, values, wants: "changes" }) as number;
}

/** A part of a script that undoes itself alone where it throws. */
export function* undoable<T>(part: Script<T>): Script<T> {
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

/** Where the whole transaction is undone already, what did that is thrown. */
function* undo(cause: unknown): Script<void> {
  try {
    yield* execute("ROLLBACK TO SAVEPOINT part");
    yield* execute("RELEASE SAVEPOINT part");
  } catch {
    throw cause;
  }
}

/** Placeholders for a list of values. @param first number of the first of them */
export const placeholders = (values: readonly Value[], first: number): string =>
  values.map((_, i) => `$${first + i}`).join(", ");

export interface Store {
  /**
   * Runs a script as one transaction; resolves with its result once that is durable. A script that throws undoes itself
   * alone, and its error is the rejection; `storage` says that the database failed. It may be run again: it changes
   * nothing but its database.
   */
  write<T>(script: () => Script<T>): Promise<T>;
  /** Runs a script that changes nothing. What it sees may not be durable yet. */
  read<T>(script: () => Script<T>): Promise<T>;
  /** Why the last commit failed; undefined where it did not. */
  readonly failure: AppError | undefined;
  /** Resolves once all that was to be written is. No script may come after it. */
  close(): Promise<void>;
}
