/**
 * Detects tables that a newer version made or changed: this version keeps working with them, as rolling upgrades need.
 */
import type { Migration } from "../database/database.ts";
import { queryAll, type Transaction } from "../database/store.ts";
import { VERSION } from "../../base/index.ts";
import type { Finding } from "./report.ts";

/** Names of migrations that ran on the tables and are unknown here. */
export function* newerMigrations(known: readonly Migration[]): Transaction<string[]> {
  const names = new Set(known.map(({ name }) => name));
  const rows = yield* queryAll<{ name: string }>("SELECT name FROM migrations ORDER BY name");
  return rows.flatMap(({ name }) => (names.has(name) ? [] : [name]));
}

/** One line for an operator. @param names at least one */
export const newerMessage = (names: readonly string[]): string =>
  `a newer version has changed the gateway's tables: ${VERSION} does not know ${names.map((name) => `'${name}'`).join(", ")}; ` +
  "it continues to work, but should be upgraded soon, or the tables restored from an earlier copy";

/** A finding about unknown migrations; empty without any. */
export const newerTables = (names: readonly string[]): Finding[] =>
  names.length === 0
    ? []
    : [{ id: "newer-tables", severity: "warn", key: "", where: "", message: newerMessage(names) }];
