/** The tables of mailboxes in PostgreSQL; `position.ts` explains them. */
import type { Migration } from "../../database/database.ts";

const MAIL = `
  CREATE TABLE mail_positions (
    mailbox TEXT COLLATE "C" PRIMARY KEY,
    uid_validity TEXT NOT NULL,
    last_uid BIGINT NOT NULL,
    began_at BIGINT NOT NULL,
    newest_at BIGINT NOT NULL,
    since_at BIGINT NOT NULL
  );
  CREATE TABLE mail_handled (
    mailbox TEXT COLLATE "C" NOT NULL,
    id_hash TEXT COLLATE "C" NOT NULL,
    handled_at BIGINT NOT NULL,
    PRIMARY KEY (mailbox, id_hash)
  );
  CREATE INDEX mail_handled_age ON mail_handled (mailbox, handled_at);
`;

export const mailMigrations: readonly Migration[] = [{ name: "hooks: mail", sql: MAIL }];
