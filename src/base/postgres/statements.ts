/** Scripts over a connection to PostgreSQL: what one asks at once is sent at once; numbers as JavaScript has them. */
import type { ReservedSQL, SQL } from "bun";
import { AppError } from "../errors.ts";
import type { Ask, Insert, Script, Statement, Value } from "../store.ts";

type Connection = SQL | ReservedSQL;
type Row = Record<string, unknown>;

/** Runs a script to its end. What a statement throws is thrown into the script. */
export async function runScript<T>(connection: Connection, script: Script<T>): Promise<T> {
  let step = script.next();
  while (!step.done) {
    let answer: unknown;
    try {
      answer = await answerOf(connection, step.value);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(answer);
  }
  return step.value;
}

/** Sends a statement that nobody waits for now; what becomes of it, its promise says. */
export function send(connection: Connection, text: string): Promise<unknown> {
  const sent = connection.unsafe(text).simple().execute();
  sent.catch(() => {}); // whoever waits for it is told
  return sent;
}

const isList = (ask: Ask): ask is readonly Ask[] => Array.isArray(ask);

/** The connection answers in the order in which statements are sent: in that of the list, however deep. */
async function answerOf(connection: Connection, ask: Ask): Promise<unknown> {
  if (!isList(ask)) return answerOne(connection, ask);
  const ends = await Promise.allSettled(statementsOf(ask).map((statement) => answerOne(connection, statement)));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
  return inShapeOf(
    ask,
    ends.map((end) => (end as PromiseFulfilledResult<unknown>).value),
  );
}

const statementsOf = (ask: Ask): Statement[] => (isList(ask) ? ask.flatMap(statementsOf) : [ask]);

/** @param answers of all statements, in order; those that are used are taken away */
function inShapeOf(ask: readonly Ask[], answers: unknown[]): unknown[] {
  return ask.map((each) => (isList(each) ? inShapeOf(each, answers) : answers.shift()));
}

/** Sends before it returns. */
async function answerOne(connection: Connection, statement: Statement): Promise<unknown> {
  switch (statement.wants) {
    case "inserted":
      return insert(connection, statement.insert);
    case "one of each":
      return firstOfEach(connection, statement);
    default: {
      const { text, values, wants } = statement;
      const found = await query(connection, typeof text === "string" ? text : text.postgres, values);
      if (wants === "changes") return found.count;
      if (wants === "all") return Array.from(found, withNumbers);
      return found.length === 0 ? undefined : withNumbers(found[0]!);
    }
  }
}

type Found = readonly Row[] & { readonly count: number };

function query(connection: Connection, text: string, values: readonly Value[]): Promise<Found> {
  for (const value of values) checkText(value);
  return connection.unsafe(text, values as Value[]).execute() as unknown as Promise<Found>;
}

/** One statement for all rows: their values are texts in a JSON array, in place of parameters. */
async function firstOfEach(
  connection: Connection,
  { text, rows }: { text: string; rows: readonly (readonly Value[])[] },
): Promise<(Row | undefined)[]> {
  const each = text.replaceAll(/\$(\d+)/g, (_, n) => `(asked.row ->> ${Number(n) - 1})`);
  const all = `SELECT asked.place, first.* FROM json_array_elements($1::text::json) WITH ORDINALITY AS asked (row, place)
    CROSS JOIN LATERAL (${each} LIMIT 1) AS first`;
  const found = await query(connection, all, [jsonOf(rows)]);
  const answers = Array.from<Row | undefined>({ length: rows.length });
  for (const { place, ...row } of found) answers[Number(place) - 1] = withNumbers(row);
  return answers;
}

/** One statement for all rows but those with bytes, which JSON cannot hold. */
async function insert(connection: Connection, { table, columns, rows, ending = "" }: Insert): Promise<void> {
  const names = columns.join(", ");
  const places = columns.map((_, i) => `$${i + 1}`).join(", ");
  const alone = `INSERT INTO ${table} (${names}) VALUES (${places}) ${ending}`;
  const all = `INSERT INTO ${table} (${names})
    SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1::text::json) ${ending}`;
  const objects = (part: typeof rows) =>
    part.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  const sent = parts(rows).map((part) =>
    hasBytes(part[0]!) ? query(connection, alone, part[0]!) : query(connection, all, [jsonOf(objects(part))]),
  );
  const failed = (await Promise.allSettled(sent)).find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
}

const hasBytes = (row: readonly Value[]): boolean => row.some((value) => value instanceof Uint8Array);

/** Rows in order: each with bytes alone, those between together. */
function parts(rows: Insert["rows"]): Insert["rows"][] {
  const parts: (readonly Value[])[][] = [];
  for (const row of rows) {
    const last = parts.at(-1);
    if (last && !hasBytes(row) && !hasBytes(last[0]!)) last.push(row);
    else parts.push([row]);
  }
  return parts;
}

/** Half characters would fail the statement; as parameters of their own they become U+FFFD too. */
const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== "string") return inner;
    checkText(inner);
    return inner.toWellFormed();
  });

/** Throws `bad_request` for a text that PostgreSQL cannot hold: it would fail in the middle of the transaction. */
function checkText(value: Value): void {
  if (typeof value === "string" && value.includes("\0")) {
    throw new AppError("bad_request", "a text with the character U+0000 cannot be stored");
  }
}

/** The driver gives `bigint` columns, counts among them, as bigints. */
function withNumbers(row: Row): Row {
  for (const [name, value] of Object.entries(row)) if (typeof value === "bigint") row[name] = numberOf(name, value);
  return row;
}

function numberOf(name: string, value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new AppError("storage", `column '${name}' holds ${value}, which is beyond 2^53`);
}
