/** The journal of calls in PostgreSQL. */
import type { Migration } from "../../database/database.ts";
import { inPostgres } from "../../database/postgres/tables.ts";
import { CALLS } from "./tables.ts";

export const callMigrations: readonly Migration[] = [{ name: "agent: calls of tool servers", sql: inPostgres(CALLS) }];
