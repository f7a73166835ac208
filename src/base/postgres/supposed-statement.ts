/**
 * What is supposed, as one statement that commits by itself: it waits for the lock of those that write, checks, and
 * stores. What it sees is as old as its beginning: what others committed while it waited it finds where it inserts, by
 * unique keys, and nowhere else.
 */
import { messageOf } from "../errors.ts";
import type { Supposition } from "../store.ts";
import { insertion, insertParts, plain, shifted, type Text } from "./statements.ts";

/** Expressions that wait for the lock of those that write, until the end of their transaction. */
export interface WriteLock {
  readonly exclusive: string;
  readonly shared: string;
}

/** First of the lock's two numbers; the other is the schema's. */
const WRITE_LOCK = 7_205_102;

export function writeLockOf(schema: string): WriteLock {
  const numbers = `(${WRITE_LOCK}, ${Bun.hash.crc32(schema) | 0})`;
  return { exclusive: `pg_advisory_xact_lock${numbers}`, shared: `pg_advisory_xact_lock_shared${numbers}` };
}

/** No number, so that the server says it in an error. */
const OTHERWISE = "hearth: it is not as supposed";

export const isOtherwise = (error: unknown): boolean => messageOf(error).includes(OTHERWISE);

export class SupposedStatements {
  readonly #lock: WriteLock;
  /** By the texts that they are made of, of which there are few. */
  readonly #texts = new Map<string, string>();

  constructor(lock: WriteLock) {
    this.#lock = lock;
  }

  /** Throws for a text that PostgreSQL cannot hold. */
  statementOf({ unless, inserts, isBesideOthers }: Supposition<unknown>): Text {
    const lock = isBesideOthers ? this.#lock.shared : this.#lock.exclusive;
    const questions = unless.map(plain);
    const insertions = inserts.map((insert) => insertion(insert, "begun"));
    const all = [...questions, ...insertions];
    const key = [lock, ...all.map((each) => each.text)].join(";");
    const text = this.#texts.get(key) ?? textOf(lock, questions, insertions);
    this.#texts.set(key, text);
    return { text, values: all.flatMap(({ values }) => values) };
  }
}

function textOf(lock: string, questions: readonly Text[], insertions: readonly Text[]): string {
  let asked = 0;
  const others = questions.map(({ text, values }) => {
    const other = `EXISTS (${shifted(text, asked)})`;
    asked += values.length;
    return other;
  });
  // whoever could lose what is stored is told so by the script
  const isOther = ["current_setting('synchronous_commit') = 'off'", ...others].join(" OR ");
  const check = `SELECT CAST(CASE WHEN ${isOther} THEN '${OTHERWISE}' ELSE '1' END AS INTEGER) FROM begun`;
  const begun = `begun AS MATERIALIZED (SELECT CAST(${lock} AS TEXT) AS begun_lock)`;
  return `WITH ${[begun, ...insertParts(insertions, asked)].join(", ")} ${check}`;
}
