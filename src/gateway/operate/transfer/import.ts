/**
 * Imports an export into an empty database, in one transaction: all of it, with the counts in the file, or nothing.
 * Sequence numbers and ids are kept. Triggers recompute their counts.
 */
import { AppError, messageOf, isObject } from "../../../base/index.ts";
import { beginPause, endPause } from "../../database/pauses.ts";
import { execute, queryOne, type Transaction, type Store, type Value } from "../../database/store.ts";
import { badFile, end, fromCell, head, linesOf, readAs, row, type End, type TransferLine, type Row } from "./file.ts";
import {
  columnsOf,
  countAll,
  countRows,
  isNumbered,
  setLastNumber,
  TABLES,
  type Counts,
  type TransferTable,
} from "./tables.ts";

/** Rows of one statement; parameters have 15-bit numbers. */
const BATCH_ROWS = 50;
const BATCH_VALUES_MAX = 30_000;

/** Throws `conflict` if the database is not empty, `bad_file` if the file is incomplete or does not fit. */
export async function importStore(store: Store, path: string): Promise<Counts> {
  const { pauses: _, ...rows } = await countAll(store); // a new database may be paused already
  const there = Object.entries(rows).map(([table, n]) => `${n} in ${table}`);
  if (there.length > 0) {
    throw new AppError(
      "conflict",
      `the database is not empty: it has rows (${there.join(", ")}); import fills a new one`,
    );
  }
  const progress: Progress = { line: 1 };
  try {
    await store.write(() => keepingPause(() => importLines(path, progress)));
  } catch (error) {
    if (!isRefusal(error)) throw error;
    throw badFile(path, progress.line, `from there on rows that the tables refuse (${messageOf(error)})`);
  }
  return countAll(store);
}

/** True if the database refused a row: by SQLite's code, or a class of PostgreSQL's. */
const isRefusal = (error: unknown): error is Error =>
  error instanceof Error &&
  [("code" in error && error.code) || "", ("errno" in error && error.errno) || ""].some((code) =>
    /^(SQLITE_CONSTRAINT|SQLITE_MISMATCH|2[23][0-9A-Z]{3}$)/.test(String(code)),
  );

/** Keeps the database's own pause, which is not one of the counted rows. */
function* keepingPause(work: () => Transaction<void>): Transaction<void> {
  const pause = yield* queryOne<{ since: number }>("SELECT since FROM pauses");
  yield* endPause();
  yield* work();
  if (pause) yield* beginPause(pause.since);
}

interface Progress {
  /** Line of the last statement's first row. */
  line: number;
}

interface Target {
  readonly table: TransferTable;
  readonly columns: ReadonlySet<string>;
}

function* importLines(path: string, progress: Progress): Transaction<void> {
  const targets = new Map<string, Target>();
  for (const table of TABLES) targets.set(table.name, { table, columns: yield* columnsOf(table) });
  let batch: Batch | undefined;
  let last: TransferLine | undefined;
  for (const line of linesOf(path)) {
    if (line.number === 1) {
      readAs(head, line, path);
      continue;
    }
    if (last) throw badFile(path, line.number, "lines behind its end");
    if (isEnd(line)) {
      last = line;
      continue;
    }
    const read = readAs(row, line, path);
    const next = batchOf(read, { line, path, target: targets.get(read.table) });
    if (batch && (batch.text !== next.text || batch.rows.length >= batch.max)) {
      yield* insert(batch, progress);
      batch = undefined;
    }
    if (batch) batch.rows.push(...next.rows);
    else batch = next;
  }
  if (batch) yield* insert(batch, progress);
  if (!last) throw badFile(path, 1, "a file without its last line");
  yield* finish(readAs(end, last, path), path);
}

const isEnd = ({ value }: TransferLine): boolean => isObject(value) && "counts" in value;

/** Rows with the same columns of one table. */
interface Batch {
  /** The statement up to its values. */
  readonly text: string;
  readonly rows: Value[][];
  readonly max: number;
  /** Line of the first row. */
  readonly line: number;
}

interface At {
  readonly line: TransferLine;
  readonly path: string;
  readonly target: Target | undefined;
}

/** Throws `bad_file` for an unknown table or column. */
function batchOf({ table, row: cells }: Row, { line, path, target }: At): Batch {
  if (!target) throw badFile(path, line.number, `a table '${table}', which this version has not`);
  const names = Object.keys(cells);
  const unknown = names.find((name) => !target.columns.has(name));
  if (unknown !== undefined) {
    throw badFile(path, line.number, `a column '${unknown}' of ${table}, which this version has not`);
  }
  const values = names.map((name) => storable(fromCell(cells[name]!))); // a key of the row
  return {
    text: `INSERT INTO ${target.table.name} (${names.join(", ")}) VALUES `,
    rows: [values],
    line: line.number,
    max: Math.max(1, Math.min(BATCH_ROWS, Math.floor(BATCH_VALUES_MAX / Math.max(1, names.length)))),
  };
}

/** PostgreSQL cannot store U+0000; SQLite can. */
const storable = (value: Value): Value => (typeof value === "string" ? value.replaceAll("\0", "\uFFFD") : value);

function* insert({ text, rows, line }: Batch, progress: Progress): Transaction<void> {
  progress.line = line;
  let number = 0;
  const values = rows.map((row) => `(${row.map(() => `$${++number}`).join(", ")})`);
  yield* execute(text + values.join(", "), ...rows.flat());
}

/** Throws `bad_file` if the number of rows differs from the counts. */
function* finish({ counts, last }: End, path: string): Transaction<void> {
  for (const table of TABLES) {
    const [wanted, found] = [counts[table.name] ?? 0, yield* countRows(table)];
    if (found !== wanted) {
      throw new AppError("bad_file", `${path}: expected ${wanted} rows of ${table.name}, got ${found}`);
    }
    const number = last[table.name] ?? 0;
    if (isNumbered(table) && number > 0) yield* setLastNumber(table, number);
  }
  const stray = yield* queryOne<{ id: string; delivery: string }>(STRAY_RUN);
  if (stray) {
    const message = `${path}: expected delivery '${stray.delivery}' of run '${stray.id}', but it is missing`;
    throw new AppError("bad_file", message);
  }
}

/** PostgreSQL's tables have no foreign key for this. */
const STRAY_RUN = `SELECT id, delivery_id AS delivery FROM runs
  WHERE NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.id = runs.delivery_id) LIMIT 1`;
