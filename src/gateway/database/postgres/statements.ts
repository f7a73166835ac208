/**
 * Runs transactions over a connection to PostgreSQL: sends concurrent statements at once, and converts numbers to
 * JavaScript's.
 */
import { AppError } from "../../../base/index.ts";
import { isList, type Query, type Insert, type Transaction, type Statement, type Value } from "../store.ts";
import type { Found, Connection } from "./connection.ts";

type Row = Record<string, unknown>;

/** Runs a transaction to its end. An error of a statement is thrown into the transaction. */
export async function runTransaction<T>(connection: Connection, transaction: Transaction<T>): Promise<T> {
  let step = transaction.next();
  while (!step.done) {
    let answer: unknown;
    try {
      answer = await answerOf(connection, step.value);
    } catch (error) {
      step = transaction.throw(error);
      continue;
    }
    step = transaction.next(answer);
  }
  return step.value;
}

/** Sends a command without awaiting it; the promise holds its result. */
export function send(connection: Connection, text: string): Promise<unknown> {
  const sent = connection.command(text);
  sent.catch(() => {}); // the awaiting caller gets the error
  return sent;
}

/** Sends before it returns. The connection answers statements in order. */
async function answerOf(connection: Connection, query: Query): Promise<unknown> {
  if (!isList(query)) return answerOne(connection, query);
  return fulfilled(await Promise.allSettled(query.map((each) => answerOf(connection, each))));
}

/** Throws the first error. */
function fulfilled<T>(ends: readonly PromiseSettledResult<T>[]): T[] {
  return ends.map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}

/** Sends before it returns. */
async function answerOne(connection: Connection, statement: Statement): Promise<unknown> {
  if (statement.wants === "inserted") return insert(connection, statement.insert);
  if (statement.wants === "one of each") {
    const found = await query(connection, firstOfEach(statement.text), [jsonOf(statement.rows)]);
    return inPlaces(Array.from(found, withNumbers), statement.rows.length);
  }
  const { text, values, wants } = statement;
  const found = await query(connection, typeof text === "string" ? text : text.postgres, values);
  if (wants === "changes") return found.count;
  const rows = Array.from(found, withNumbers);
  return wants === "one" ? rows[0] : rows;
}

/** Sends before it returns. Throws before sending if PostgreSQL cannot store a text. */
function query(connection: Connection, text: string, values: readonly Value[]): Promise<Found> {
  for (const value of values) checkText(value);
  return connection.query(text, values);
}

/** One statement for all rows: their values are texts in a JSON array instead of parameters. */
function firstOfEach(text: string): string {
  const each = text.replaceAll(/\$(\d+)/g, (_, n) => `(asked.row ->> ${Number(n) - 1})`);
  return `SELECT asked.place, first.* FROM json_array_elements($1::text::json) WITH ORDINALITY AS asked (row, place)
    CROSS JOIN LATERAL (${each} LIMIT 1) AS first`;
}

/** @param rows with their positions, from 1 */
function inPlaces(rows: readonly Row[], length: number): (Row | undefined)[] {
  const answers = Array.from<Row | undefined>({ length });
  for (const { place, ...row } of rows) answers[(place as number) - 1] = row;
  return answers;
}

const hasBytes = (row: readonly Value[]): boolean => row.some((value) => value instanceof Uint8Array);

/** Sends before it returns: one statement for all rows, or one for each if they hold bytes, which JSON lacks. */
async function insert(connection: Connection, { table, columns, rows, ending = "" }: Insert): Promise<void> {
  const names = columns.join(", ");
  if (rows.some(hasBytes)) {
    const placeholders = columns.map((_, i) => `$${i + 1}`).join(", ");
    const text = `INSERT INTO ${table} (${names}) VALUES (${placeholders}) ${ending}`;
    fulfilled(await Promise.allSettled(rows.map((row) => query(connection, text, row))));
    return;
  }
  const text = `INSERT INTO ${table} (${names})
    SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1::text::json) ${ending}`;
  const records = rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])));
  await query(connection, text, [jsonOf(records)]);
}

/** Lone surrogates would fail the statement; they become U+FFFD, as they do in parameters. */
function jsonOf(value: unknown): string {
  const text = JSON.stringify(value);
  if (!MAYBE_UNFIT.test(text)) return text;
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== "string") return inner;
    checkText(inner);
    return inner.toWellFormed();
  });
}

/** U+0000 and lone surrogates in JSON; false matches are checked again. */
const MAYBE_UNFIT = /\\u(?:0000|d[89a-f])/;

/** Throws `bad_request` for a text that PostgreSQL cannot store: it would fail in the middle of the transaction. */
function checkText(value: Value): void {
  if (typeof value === "string" && value.includes("\0")) {
    throw new AppError("bad_request", "a text with the character U+0000 cannot be stored");
  }
}

/** The driver returns `bigint` columns, including counts, as bigints; JSON has numbers. */
function withNumbers(row: Row): Row {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value === "bigint" || Number.isInteger(value)) row[name] = numberOf(name, value as bigint | number);
  }
  return row;
}

function numberOf(name: string, value: bigint | number): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new AppError("storage", `column '${name}' holds ${value}, which is beyond 2^53`);
}
