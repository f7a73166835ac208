/**
 * The position in a mailbox, and its handled mails: written together with a mail's outcome, so that a crash neither
 * loses nor repeats a mail. Message ids outlive the server's UIDs, which it may reassign.
 */
import type { Migration } from "../../database/database.ts";
import { execute, queryOne, type Transaction } from "../../database/store.ts";
import { shortHash } from "../mapping/filters.ts";

/** Maximum number of mails of a mailbox that are remembered by id. */
const REMEMBERED_MAX = 20_000;

export const MAIL = `
  CREATE TABLE mail_positions (
    mailbox TEXT COLLATE BINARY PRIMARY KEY,
    uid_validity TEXT NOT NULL,
    last_uid INTEGER NOT NULL,
    began_at INTEGER NOT NULL,     -- when it was looked at for the first time
    newest_at INTEGER NOT NULL,    -- when the newest of the handled mails came in, as the server says
    since_at INTEGER NOT NULL      -- what came in before is not new, whatever its number; 0: numbers are enough
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE mail_handled (
    mailbox TEXT COLLATE BINARY NOT NULL,
    id_hash TEXT COLLATE BINARY NOT NULL,
    handled_at INTEGER NOT NULL,
    PRIMARY KEY (mailbox, id_hash)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX mail_handled_age ON mail_handled (mailbox, handled_at);
`;

export const mailMigrations: readonly Migration[] = [{ name: "hooks: mail", sql: MAIL }];

export interface MailPosition {
  /** The generation of the server's UIDs (UIDVALIDITY in RFC 9051). */
  readonly uidValidity: string;
  /** All mails up to this UID are handled. */
  readonly lastUid: number;
  /** Time of the first look at the mailbox, epoch milliseconds. */
  readonly beganAt: number;
  /** Arrival time of the newest handled mail. */
  readonly newestAt: number;
  /** Mails that arrived earlier are not new, whatever their UID; 0: UIDs are enough. */
  readonly sinceAt: number;
}

export const findPosition = (mailbox: string): Transaction<MailPosition | undefined> =>
  queryOne<MailPosition>(
    `SELECT uid_validity AS "uidValidity", last_uid AS "lastUid", began_at AS "beganAt", newest_at AS "newestAt",
       since_at AS "sinceAt" FROM mail_positions WHERE mailbox = $1`,
    mailbox,
  );

export function* setPosition(mailbox: string, position: MailPosition): Transaction<void> {
  const { uidValidity, lastUid, beganAt, newestAt, sinceAt } = position;
  yield* execute(
    `INSERT INTO mail_positions (mailbox, uid_validity, last_uid, began_at, newest_at, since_at)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (mailbox) DO UPDATE SET uid_validity = excluded.uid_validity,
       last_uid = excluded.last_uid, began_at = excluded.began_at, newest_at = excluded.newest_at,
       since_at = excluded.since_at`,
    mailbox,
    uidValidity,
    lastUid,
    beganAt,
    newestAt,
    sinceAt,
  );
}

export function* isHandled(mailbox: string, id: string): Transaction<boolean> {
  const text = "SELECT 1 FROM mail_handled WHERE mailbox = $1 AND id_hash = $2";
  return (yield* queryOne(text, mailbox, shortHash(id))) !== undefined;
}

/** Remembers a mail and forgets the oldest beyond the limit. */
export function* setHandled(mailbox: string, { id, now }: { id: string; now: number }): Transaction<void> {
  yield* execute(
    "INSERT INTO mail_handled (mailbox, id_hash, handled_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    mailbox,
    shortHash(id),
    now,
  );
  yield* execute(
    `DELETE FROM mail_handled WHERE mailbox = $1 AND handled_at <
       (SELECT handled_at FROM mail_handled WHERE mailbox = $1 ORDER BY handled_at DESC LIMIT 1 OFFSET $2)`,
    mailbox,
    REMEMBERED_MAX,
  );
}
