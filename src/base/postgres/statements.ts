/** Scripts over a connection to PostgreSQL: one statement after the other, numbers as JavaScript has them. */
import type { ReservedSQL, SQL } from "bun";
import { AppError } from "../errors.ts";
import type { Script, Statement, Value } from "../store.ts";

type Row = Record<string, unknown>;

/** Runs a script to its end. What a statement throws is thrown into the script. */
export async function runScript<T>(connection: SQL | ReservedSQL, script: Script<T>): Promise<T> {
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

async function answerOf(connection: SQL | ReservedSQL, { text, values, wants }: Statement): Promise<unknown> {
  for (const value of values) checkText(value);
  const found = await connection.unsafe(typeof text === "string" ? text : text.postgres, values as Value[]);
  switch (wants) {
    case "one":
      return found.length === 0 ? undefined : withNumbers(found[0] as Row);
    case "all":
      return Array.from(found as readonly Row[], withNumbers);
    case "changes":
      return (found as unknown as { readonly count: number }).count;
    default:
      return wants satisfies never;
  }
}

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
