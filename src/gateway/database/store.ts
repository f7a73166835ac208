/**
 * The gateway's database, as all of its code sees it. A transaction is a script: a generator that yields statements and
 * gets their answers, and that can wait for nothing else. So one text runs synchronously inside SQLite's group commit
 * and with promises elsewhere.
 *
 * Statements are written for every database: placeholders `$1`, `$2` … first appear in order, a parameter that is only
 * compared with null is cast, and aliases with capitals are in quotes.
 */
import type { AppError } from "../../base/index.ts";

export type Value = string | number | null | Uint8Array;

/** One text for all databases, or one for each. */
export type SqlText = string | { readonly sqlite: string; readonly postgres: string };

/** What a script asks of its database. */
export type Statement =
  /** Made by `queryOne`, `queryAll` and `execute`. */
  | { readonly text: SqlText; readonly values: readonly Value[]; readonly wants: "one" | "all" | "changes" }
  /** Made by `queryEach`: the first row for each of the rows of values. */
  | { readonly text: string; readonly rows: readonly (readonly Value[])[]; readonly wants: "one of each" }
  /** Made by `insertAll`. */
  | { readonly insert: Insert; readonly wants: "inserted" };

export interface Insert {
  readonly table: string;
  readonly columns: readonly string[];
  /** A value for each column. */
  readonly rows: readonly (readonly Value[])[];
  /** What follows, as `ON CONFLICT …`; absent: nothing. */
  readonly ending?: string;
}

/** A statement, several that do not depend on one another's answers, or what is done wholly or not at all. */
export type Ask = Statement | readonly Ask[] | Whole;

/** Made by `whole`. */
export interface Whole {
  readonly part: Ask;
  readonly isLast: boolean;
  readonly wants: "whole";
}

/** A transaction, or a part of one. Whoever runs it answers each statement as it asks to be, and a list with a list. */
export type Script<T> = Generator<Ask, T, unknown>;

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

/**
 * The first row for each row of values, in order: one statement where each is a round trip.
 * @param text parameters are texts; what is compared with a number is cast
 */
export function* queryEach<Row>(text: string, rows: readonly (readonly Value[])[]): Script<(Row | undefined)[]> {
  return rows.length === 0 ? [] : ((yield { text, rows, wants: "one of each" }) as (Row | undefined)[]);
}

/** Inserts rows in order. */
export function* insertAll(insert: Insert): Script<void> {
  if (insert.rows.length > 0) yield { insert, wants: "inserted" };
}

/**
 * Runs parts that do not depend on one another beside each other. Where one of them throws, so does this. What they
 * read are texts, numbers and booleans: it may come as JSON.
 */
export function* together<const Parts extends readonly Script<unknown>[]>(...parts: Parts): Script<Results<Parts>> {
  const steps = parts.map((part) => part.next());
  for (;;) {
    const open = steps.flatMap((step, i) => (step.done ? [] : [{ i, ask: step.value }]));
    if (open.length === 0) return steps.map(({ value }) => value as unknown) as Results<Parts>;
    const answers = (yield open.map(({ ask }) => ask)) as unknown[];
    for (const [k, { i }] of open.entries()) steps[i] = parts[i]!.next(answers[k]);
  }
}

type Results<Parts extends readonly Script<unknown>[]> = {
  -readonly [I in keyof Parts]: Parts[I] extends Script<infer T> ? T : never;
};

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

/**
 * What a part asks at once, which is all that it asks: undone together where some of it fails; then the script may ask
 * something else in its place. The answers are not heard.
 * @param isLast whether the script asks nothing after them, so that they can be committed with it
 */
export function* whole(part: Script<void>, { isLast }: { isLast: boolean }): Script<void> {
  const step = part.next();
  if (!step.done) yield { part: step.value, isLast, wants: "whole" };
}

export const isList = (ask: Ask): ask is readonly Ask[] => Array.isArray(ask);

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
  /**
   * As `write`, for what many ask at the same moment: the script may be given several inputs that wait, and returns as
   * many results, in order. Where it throws for several, it is run for each alone. Its statements may be planned once
   * and for all: each finds what it reads by an index, whatever is in the tables.
   */
  writeEach<I, O>(script: (inputs: readonly I[]) => Script<readonly O[]>, input: I): Promise<O>;
  /** Runs a script that changes nothing. What it sees may not be durable yet. */
  read<T>(script: () => Script<T>): Promise<T>;
  /** Why the last commit failed; undefined where it did not. */
  readonly failure: AppError | undefined;
  /** Resolves once all that was to be written is. No script may come after it. */
  close(): Promise<void>;
}
