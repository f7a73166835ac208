/**
 * How far a mailbox has been read, and which of its mails were handled: written together with what a mail became, so
 * that a crash neither loses one nor brings one twice. Ids outlive the server's numbers, which it may give anew.
 */
import type { Database, Migration } from "../../base/database.ts";
import { shortHash } from "../mappings/filters.ts";

/** Mails of a mailbox that are remembered by id. */
const REMEMBERED_MAX = 20_000;

export const mailMigrations: readonly Migration[] = [
  {
    name: "hooks: mail",
    sql: `
      CREATE TABLE mail_positions (
        mailbox TEXT PRIMARY KEY,
        uid_validity TEXT NOT NULL,
        last_uid INTEGER NOT NULL,
        began_at INTEGER NOT NULL,     -- when it was looked at for the first time
        newest_at INTEGER NOT NULL,    -- when the newest of the handled mails came in, as the server says
        since_at INTEGER NOT NULL      -- what came in before is not new, whatever its number; 0: numbers are enough
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE mail_handled (
        mailbox TEXT NOT NULL,
        id_hash TEXT NOT NULL,
        handled_at INTEGER NOT NULL,
        PRIMARY KEY (mailbox, id_hash)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX mail_handled_age ON mail_handled (mailbox, handled_at);
    `,
  },
];

export interface MailPosition {
  /** The server's generation of its numbers (UIDVALIDITY in RFC 9051). */
  readonly uidValidity: string;
  /** Handled up to here, in order. */
  readonly lastUid: number;
  /** When the mailbox was looked at for the first time, epoch milliseconds. */
  readonly beganAt: number;
  /** When the newest of the handled mails came in. */
  readonly newestAt: number;
  /** What came in before is not new, whatever its number; 0: numbers are enough. */
  readonly sinceAt: number;
}

export function findPosition(db: Database, mailbox: string): MailPosition | undefined {
  const found = db
    .query<MailPosition, [string]>(
      `SELECT uid_validity AS uidValidity, last_uid AS lastUid, began_at AS beganAt, newest_at AS newestAt,
         since_at AS sinceAt FROM mail_positions WHERE mailbox = ?`,
    )
    .get(mailbox);
  return found ?? undefined;
}

/** Call inside a transaction. */
export function setPosition(db: Database, mailbox: string, position: MailPosition): void {
  const { uidValidity, lastUid, beganAt, newestAt, sinceAt } = position;
  db.query(
    `INSERT OR REPLACE INTO mail_positions (mailbox, uid_validity, last_uid, began_at, newest_at, since_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(mailbox, uidValidity, lastUid, beganAt, newestAt, sinceAt);
}

export const isHandled = (db: Database, mailbox: string, id: string): boolean =>
  db.query("SELECT 1 FROM mail_handled WHERE mailbox = ? AND id_hash = ?").get(mailbox, shortHash(id)) !== null;

/** Remembers a mail and forgets the oldest beyond the most. Call inside a transaction. */
export function setHandled(db: Database, mailbox: string, { id, now }: { id: string; now: number }): void {
  db.query("INSERT OR IGNORE INTO mail_handled (mailbox, id_hash, handled_at) VALUES (?, ?, ?)").run(
    mailbox,
    shortHash(id),
    now,
  );
  db.query(
    `DELETE FROM mail_handled WHERE mailbox = ?1 AND handled_at <
       (SELECT handled_at FROM mail_handled WHERE mailbox = ?1 ORDER BY handled_at DESC LIMIT 1 OFFSET ?2)`,
  ).run(mailbox, REMEMBERED_MAX);
}
