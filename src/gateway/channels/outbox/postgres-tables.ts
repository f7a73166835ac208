/** The outbox in PostgreSQL. */
import type { Migration } from "../../database/database.ts";
import { inPostgres } from "../../database/postgres/tables.ts";
import { CANCELS, OUTBOX } from "./tables.ts";

export const outboxMigrations: readonly Migration[] = [
  { name: "channels: outbox", sql: inPostgres(OUTBOX) },
  { name: "channels: calling back", sql: inPostgres(CANCELS) },
];
