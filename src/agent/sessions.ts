/**
 * Sessions: append-only transcripts by key. Functions take the database first, so that callers store a turn together
 * with what follows from it in one transaction.
 */
import type { Database } from "../base/database.ts";
import { AppError } from "../base/errors.ts";
import type { Target } from "../channels/channel.ts";
import type { Message } from "../runtime/runtime.ts";

/** What a transcript is made of. A compaction stands for all entries up to and including `through`. */
export type EntryBody =
  | { readonly kind: "message"; readonly message: Message; readonly isTruncated?: boolean }
  | {
      readonly kind: "compaction";
      readonly through: number;
      readonly droppedCount: number;
      /** Undefined: the entries were dropped without one. */
      readonly summary?: string;
    };

export interface Entry {
  readonly seq: number;
  readonly id: string;
  readonly runId: string;
  readonly createdAt: number;
  readonly body: EntryBody;
}

export interface Session {
  readonly key: string;
  readonly isEphemeral: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | undefined;
  /** To whom the conversation last spoke. */
  readonly route: Target | undefined;
}

export interface Append {
  readonly sessionKey: string;
  readonly runId: string;
  /** Whether the session ends with this run. */
  readonly isEphemeral: boolean;
  readonly entries: readonly EntryBody[];
  readonly now: number;
}

/** Throws `conflict` where the session has ended, or this run is in the transcript already. */
export function append(db: Database, { sessionKey, runId, isEphemeral, entries, now }: Append): void {
  checkOpen(db, sessionKey);
  touch(db, { sessionKey, isEphemeral, now });
  if (db.query("SELECT 1 FROM session_entries WHERE run_id = ? LIMIT 1").get(runId) !== null) {
    throw new AppError("conflict", `run '${runId}' is in the transcript of its session already`);
  }
  const insert = db.query(
    "INSERT INTO session_entries (id, session_key, run_id, position, created_at, kind, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  entries.forEach((body, i) =>
    insert.run(Bun.randomUUIDv7(), sessionKey, runId, i, now, body.kind, JSON.stringify(body)),
  );
  if (isEphemeral) endSession(db, { sessionKey, now });
}

/** Throws `conflict` where nothing can be added to a session any more. */
export function checkOpen(db: Database, sessionKey: string): void {
  if (findSession(db, sessionKey)?.endedAt === undefined) return;
  throw new AppError("conflict", `session '${sessionKey}' has ended`);
}

function touch(db: Database, options: { sessionKey: string; isEphemeral: boolean; now: number }): void {
  const { sessionKey, isEphemeral, now } = options;
  db.query(
    "INSERT INTO sessions (key, is_ephemeral, created_at, updated_at) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at",
  ).run(sessionKey, Number(isEphemeral), now, now);
}

/** Nothing can be added to it from now on; what it holds can be read. */
export function endSession(db: Database, { sessionKey, now }: { sessionKey: string; now: number }): void {
  db.query("UPDATE sessions SET ended_at = ? WHERE key = ? AND ended_at IS NULL").run(now, sessionKey);
}

interface SessionRow {
  readonly key: string;
  readonly is_ephemeral: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly ended_at: number | null;
  readonly last_channel: string | null;
  readonly last_to: string | null;
  readonly last_thread: string | null;
}

const sessionOf = (row: SessionRow): Session => ({
  key: row.key,
  isEphemeral: row.is_ephemeral === 1,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  endedAt: row.ended_at ?? undefined,
  route:
    row.last_channel === null || row.last_to === null
      ? undefined
      : {
          channel: row.last_channel,
          to: row.last_to,
          ...(row.last_thread === null ? {} : { thread: row.last_thread }),
        },
});

export function findSession(db: Database, key: string): Session | undefined {
  const row = db.query<SessionRow, [string]>("SELECT * FROM sessions WHERE key = ?").get(key);
  return row ? sessionOf(row) : undefined;
}

/** Remembers to whom the conversation spoke, for what is sent to `last`. */
export function setRoute(db: Database, options: { sessionKey: string; route: Target; now: number }): void {
  const { sessionKey, route, now } = options;
  touch(db, { sessionKey, isEphemeral: false, now });
  db.query("UPDATE sessions SET last_channel = ?, last_to = ?, last_thread = ? WHERE key = ?").run(
    route.channel,
    route.to,
    route.thread ?? null,
    sessionKey,
  );
}

interface EntryRow {
  readonly seq: number;
  readonly id: string;
  readonly run_id: string;
  readonly created_at: number;
  readonly body: string;
}

const entryOf = (row: EntryRow): Entry => ({
  seq: row.seq,
  id: row.id,
  runId: row.run_id,
  createdAt: row.created_at,
  body: JSON.parse(row.body) as EntryBody, // written by append alone
});

/** The last entries of a transcript, oldest first. @param before gives those before that `seq` */
export function listEntries(
  db: Database,
  { sessionKey, limit, before }: { sessionKey: string; limit: number; before?: number },
): readonly Entry[] {
  return db
    .query<EntryRow, [string, number, number]>(
      "SELECT * FROM session_entries WHERE session_key = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
    )
    .all(sessionKey, before ?? Number.MAX_SAFE_INTEGER, limit)
    .map(entryOf)
    .toReversed();
}

export interface StoredMessage {
  readonly seq: number;
  readonly message: Message;
}

export interface History {
  /** What stands for everything before `messages`. */
  readonly compaction: (EntryBody & { kind: "compaction" }) | undefined;
  readonly messages: readonly StoredMessage[];
}

/** What a session's next turn continues: the last compaction, and the messages that it does not stand for. */
export function historyOf(db: Database, sessionKey: string): History {
  const last = db
    .query<EntryRow, [string]>(
      "SELECT * FROM session_entries WHERE session_key = ? AND kind = 'compaction' ORDER BY seq DESC LIMIT 1",
    )
    .get(sessionKey);
  const body = last ? entryOf(last).body : undefined;
  const compaction = body?.kind === "compaction" ? body : undefined;
  const messages = db
    .query<EntryRow, [string, number]>(
      "SELECT * FROM session_entries WHERE session_key = ? AND kind = 'message' AND seq > ? ORDER BY seq",
    )
    .all(sessionKey, compaction?.through ?? 0)
    .map(entryOf)
    .flatMap(({ seq, body }) => (body.kind === "message" ? [{ seq, message: body.message }] : []));
  return { compaction, messages };
}

/**
 * Forgets sessions that nobody has used since `idleSince`, with their transcripts, unless events wait for them.
 * @param keep keys that stay whatever their age
 * @returns how many went
 */
export function pruneSessions(
  db: Database,
  { idleSince, keep, limit }: { idleSince: number; keep: readonly string[]; limit: number },
): number {
  return db
    .query(
      "DELETE FROM sessions WHERE key IN (SELECT key FROM sessions WHERE updated_at < ? " +
        `AND key NOT IN (${keep.map(() => "?").join(", ")}) ` +
        "AND key NOT IN (SELECT session_key FROM session_events) LIMIT ?)",
    )
    .run(idleSince, ...keep, limit).changes;
}
