/** The gateway's database, which belongs to one process: another would take up what this one is in the middle of. */
import { join } from "node:path";
import { agentMigrations } from "../agent/tables.ts";
import { openDatabase, type Database } from "../base/database.ts";
import { takeLock } from "../base/process-lock.ts";
import { outboxMigrations } from "../channels/outbox/tables.ts";
import { deliveryMigrations } from "../hooks/deliveries/tables.ts";
import { mailMigrations } from "../hooks/mail/position.ts";

export interface Storage {
  readonly db: Database;
  close(): void;
}

/** Throws `conflict` where another process has it, or `storage`. */
export function openStorage(home: string): Storage {
  const lock = takeLock(join(home, "gateway.lock"), `the gateway in '${home}'`);
  try {
    const migrations = [...agentMigrations, ...outboxMigrations, ...deliveryMigrations, ...mailMigrations];
    const db = openDatabase(join(home, "gateway.db"), migrations);
    return {
      db,
      close() {
        db.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}
