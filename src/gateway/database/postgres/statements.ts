/**
 * Runs transactions over a connection to PostgreSQL: sends concurrent statements at once, and converts numbers to
 * JavaScript's.
 */
import { AppError } from "../../../base/index.ts";
import {
  isList,
  type Query,
  type Insert,
  type Transaction,
  type SqlText,
  type Statement,
  type Value,
  type Savepoint,
} from "../store.ts";
import type { Found, Connection } from "./connection.ts";

type Row = Record<string, unknown>;

/** Sends the last statements of a transaction that shares its commit with no other, and commits; an error ends it. */
export type Commit = (sendLast: () => Promise<unknown>) => Promise<void>;

/**
 * Runs a transaction to its end. An error of a statement is thrown into the transaction.
 * @param commit absent: other transactions share the commit
 */
export async function runTransaction<T>(
  connection: Connection,
  transaction: Transaction<T>,
  commit?: Commit,
): Promise<T> {
  let step = transaction.next();
  while (!step.done) {
    const query = step.value;
    if (commit && isSavepoint(query) && query.isLast) {
      checkTexts(query.part); // before sending anything
      await commit(() => answerOf(connection, query.part));
      step = transaction.next();
      continue;
    }
    let answer: unknown;
    try {
      answer = await answerOf(connection, query);
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

const isSavepoint = (query: Query): query is Savepoint => !isList(query) && query.wants === "savepoint";

/** Sends before it returns. The connection answers statements in order. */
async function answerOf(connection: Connection, query: Query): Promise<unknown> {
  if (isSavepoint(query)) return answerSavepoint(connection, query);
  if (!isList(query)) return answerOne(connection, statementsOf(query)[0]!);
  const ends = await Promise.allSettled(
    messagesOf(statementsOf(query)).map((message) => answerMessage(connection, message)),
  );
  return inShapeOf(query, fulfilled(ends).flat());
}

async function answerSavepoint(connection: Connection, { part }: Savepoint): Promise<void> {
  const sent = [
    send(connection, "SAVEPOINT whole"),
    answerOf(connection, part),
    send(connection, "RELEASE SAVEPOINT whole"),
  ];
  const ends = await Promise.allSettled(sent);
  if (ends.every(({ status }) => status === "fulfilled")) return;
  await connection.command("ROLLBACK TO SAVEPOINT whole").catch(() => {}); // the first error is the cause
  fulfilled(ends);
}

/** Throws the first error. */
function fulfilled<T>(ends: readonly PromiseSettledResult<T>[]): T[] {
  return ends.map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}

const statementsOf = (query: Query): Statement[] => {
  if (isList(query)) return query.flatMap(statementsOf);
  if (isSavepoint(query)) return statementsOf(query.part);
  return [query];
};

/** @param answers of all statements, in order; removes those it uses */
function inShapeOf(query: readonly Query[], answers: unknown[]): unknown[] {
  return query.map((each) => (isList(each) ? inShapeOf(each, answers) : answers.shift()));
}

/** Groups neighbouring statements of one kind, reads or inserts, which are sent as one statement. */
function messagesOf(statements: readonly Statement[]): Statement[][] {
  const messages: Statement[][] = [];
  for (const statement of statements) {
    const last = messages.at(-1);
    const kind = kindOf(statement);
    if (last && kind !== "other" && kind === kindOf(last[0]!)) last.push(statement);
    else messages.push([statement]);
  }
  return messages;
}

function kindOf(statement: Statement): "read" | "insert" | "other" {
  if (statement.wants === "inserted") return statement.insert.rows.some(hasBytes) ? "other" : "insert";
  if (statement.wants === "one of each") return "read";
  return /^\s*SELECT\b/.test(textOf(statement.text)) && statement.wants !== "changes" ? "read" : "other";
}

const textOf = (text: SqlText): string => (typeof text === "string" ? text : text.postgres);

async function answerMessage(connection: Connection, message: readonly Statement[]): Promise<unknown[]> {
  if (message.length === 1) return [await answerOne(connection, message[0]!)];
  if (kindOf(message[0]!) === "read") return readAll(connection, message);
  const inserts = message.flatMap((each) => (each.wants === "inserted" ? [insertion(each.insert)] : []));
  let first = 0;
  const parts = inserts.map(({ text, values }, i) => {
    const part = `insert_${i} AS (${shifted(text, first)})`;
    first += values.length;
    return part;
  });
  await query(connection, `WITH ${parts.join(", ")} SELECT 1`, inserts.flatMap(valuesOf));
  return message.map(() => undefined);
}

/** A statement with its parameters. */
interface Text {
  readonly text: string;
  readonly values: readonly Value[];
}

const valuesOf = ({ values }: Text): readonly Value[] => values;

/** Shifts the numbers of a statement's parameters. */
const shifted = (text: string, by: number): string => text.replaceAll(/\$(\d+)/g, (_, n) => `$${Number(n) + by}`);

/** Returns the rows of all of them, via JSON. */
async function readAll(connection: Connection, message: readonly Statement[]): Promise<unknown[]> {
  const values: Value[] = [];
  const columns = message.map((statement, i) => {
    const { text, values: own } = plain(statement);
    const rows = `SELECT * FROM (${shifted(text, values.length)}) AS rows ${statement.wants === "one" ? "LIMIT 1" : ""}`;
    values.push(...own);
    return `(SELECT json_agg(part) FROM (${rows}) AS part) AS answer_${i}`;
  });
  const [row] = await query(connection, `SELECT ${columns.join(", ")}`, values);
  return message.map((statement, i) => {
    const rows = ((row![`answer_${i}`] as readonly Row[] | null) ?? []).map(withNumbers);
    if (statement.wants === "one of each") return inPlaces(rows, statement.rows.length);
    return statement.wants === "one" ? rows[0] : rows;
  });
}

/** A reading statement with its parameters. */
function plain(statement: Statement): Text {
  if (statement.wants === "inserted") throw new TypeError("an insertion reads nothing");
  if (statement.wants !== "one of each") return { text: textOf(statement.text), values: statement.values };
  return { text: firstOfEach(statement.text), values: [jsonOf(statement.rows)] };
}

/** Sends before it returns. */
async function answerOne(connection: Connection, statement: Statement): Promise<unknown> {
  if (statement.wants === "inserted") return insert(connection, statement.insert);
  const { text, values } = plain(statement);
  const found = await query(connection, text, values);
  if (statement.wants === "changes") return found.count;
  const rows = Array.from(found, withNumbers);
  if (statement.wants === "one of each") return inPlaces(rows, statement.rows.length);
  return statement.wants === "one" ? rows[0] : rows;
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

/**
 * All rows in one statement, without bytes, which JSON lacks. A value shared by all rows is sent and parsed once.
 * Throws if PostgreSQL cannot store a text.
 */
function insertion({ table, columns, rows, ending = "" }: Insert): Text {
  const names = columns.join(", ");
  const common = `json_populate_record(NULL::${table}, $1::text::json)`;
  const text = `INSERT INTO ${table} (${names})
    SELECT ${names} FROM json_populate_recordset(${common}, $2::text::json) ${ending}`;
  const [first] = rows;
  const differs = columns.map((_, i) => rows.some((row) => row[i] !== first![i]));
  const partOf = (row: readonly Value[], differing: boolean): Record<string, Value> => {
    const part: Record<string, Value> = {};
    for (let i = 0; i < columns.length; i++) if (differs[i] === differing) part[columns[i]!] = row[i]!;
    return part;
  };
  return { text, values: [jsonOf(partOf(first!, false)), jsonOf(rows.map((row) => partOf(row, true)))] };
}

/** Sends before it returns: one statement for all rows, or one for each if they hold bytes. */
async function insert(connection: Connection, all: Insert): Promise<void> {
  if (!all.rows.some(hasBytes)) {
    const { text, values } = insertion(all);
    await query(connection, text, values);
    return;
  }
  const places = all.columns.map((_, i) => `$${i + 1}`).join(", ");
  const text = `INSERT INTO ${all.table} (${all.columns.join(", ")}) VALUES (${places}) ${all.ending ?? ""}`;
  fulfilled(await Promise.allSettled(all.rows.map((row) => query(connection, text, row))));
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

function checkTexts(query: Query): void {
  for (const statement of statementsOf(query)) {
    const rows =
      "insert" in statement ? statement.insert.rows : "rows" in statement ? statement.rows : [statement.values];
    for (const row of rows) for (const value of row) checkText(value);
  }
}

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
