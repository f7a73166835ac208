/** Writes a gateway's database to a file, row by row: memory holds one page of rows. */
import { open, stat, type FileHandle } from "node:fs/promises";
import { AppError } from "../../../base/index.ts";
import { queryAll, type Transaction, type Store, type Value } from "../../database/store.ts";
import { writeDurably } from "../../../base/system.ts";
import { FORMAT, toCell, type End, type TransferHead, type Row } from "./file.ts";
import { isNumbered, lastNumber, TABLES, type Counts, type TransferTable } from "./tables.ts";

/** Rows of one page: a webhook's body may have megabytes. */
const PAGE_ROWS = 50;

/**
 * The store must not be written meanwhile. The file appears complete, owner-only, or not at all. Throws `bad_request`
 * if the path is a folder or a device, which must not be replaced.
 */
export async function exportStore(store: Store, path: string, { version }: { version: string }): Promise<Counts> {
  const counts: Record<string, number> = {};
  const last: Record<string, number> = {};
  const before = await stat(path).catch(() => undefined);
  if (before && !before.isFile()) {
    const is = before.isDirectory() ? "a folder" : "a device or a pipe";
    throw new AppError("bad_request", `cannot export to '${path}': expected a file, got ${is}`);
  }
  await writeDurably(path, async (temporary) => {
    const file = await open(temporary, "wx", 0o600);
    try {
      const head: TransferHead = { format: FORMAT, version, at: new Date().toISOString() };
      await write(file, [head]);
      for (const table of TABLES) {
        const count = await exportTable(store, file, table);
        if (count > 0) counts[table.name] = count;
        const number = isNumbered(table) ? await store.read(() => lastNumber(table)) : 0;
        if (number > 0) last[table.name] = number;
      }
      const end: End = { counts, last };
      await write(file, [end]);
    } finally {
      await file.close();
    }
  });
  return counts;
}

async function exportTable(store: Store, file: FileHandle, table: TransferTable): Promise<number> {
  let count = 0;
  for (let after: readonly Value[] | undefined; ;) {
    const rows = await store.read(() => pageOf(table, after));
    await write(
      file,
      rows.map((row): Row => {
        const kept = Object.entries(row).filter(([column]) => !table.derived?.includes(column));
        return {
          table: table.name,
          row: Object.fromEntries(kept.map(([column, value]) => [column, toCell(value)])),
        };
      }),
    );
    count += rows.length;
    const final = rows.at(-1);
    if (rows.length < PAGE_ROWS || !final) return count;
    after = table.key.map((column) => final[column]!); // keys are never null
  }
}

/** Rows after a key; without one, from the first. */
function* pageOf(
  { name, key }: TransferTable,
  after: readonly Value[] | undefined,
): Transaction<Record<string, Value>[]> {
  const columns = key.join(", ");
  const behind = after ? `WHERE (${columns}) > (${after.map((_, i) => `$${i + 1}`).join(", ")})` : "";
  return yield* queryAll<Record<string, Value>>(
    `SELECT * FROM ${name} ${behind} ORDER BY ${columns} LIMIT ${PAGE_ROWS}`,
    ...(after ?? []),
  );
}

async function write(file: FileHandle, lines: readonly object[]): Promise<void> {
  await file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}
