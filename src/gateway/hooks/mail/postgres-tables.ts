/** The tables of mailboxes in PostgreSQL. */
import type { Migration } from "../../database/database.ts";
import { inPostgres } from "../../database/postgres/tables.ts";
import { MAIL } from "./position.ts";

export const mailMigrations: readonly Migration[] = [{ name: "hooks: mail", sql: inPostgres(MAIL) }];
