/**
 * Sessions: transcripts by key. Entries only come, until nothing reads them. All functions are parts of
 * transactions, so that callers store a turn and its consequences in one.
 */
import { AppError } from "../../base/index.ts";
import { execute, placeholders, queryAll, queryOne, type Transaction } from "../database/store.ts";
import type { Target } from "../channels/channel.ts";
import type { Message } from "../../runtime/portable.ts";

/** An entry of a transcript. A compaction stands for all entries up to and including `through`. */
export type EntryBody =
  | { readonly kind: "message"; readonly message: Message; readonly isTruncated?: boolean }
  | {
      readonly kind: "compaction";
      readonly through: number;
      readonly droppedCount: number;
      /** Undefined: the entries were dropped without a summary. */
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
  /** Target of the conversation's last message. */
  readonly route: Target | undefined;
}

export interface Append {
  readonly sessionKey: string;
  readonly runId: string;
  /** True if the session ends with this run. */
  readonly isEphemeral: boolean;
  readonly entries: readonly EntryBody[];
  readonly now: number;
}

/** Throws `conflict` if the session has ended, or this run is in the transcript already. */
export function* append({ sessionKey, runId, isEphemeral, entries, now }: Append): Transaction<void> {
  yield* checkOpen(sessionKey);
  yield* touch({ sessionKey, isEphemeral, now });
  if (yield* queryOne("SELECT 1 FROM session_entries WHERE run_id = $1 LIMIT 1", runId)) {
    throw new AppError("conflict", `run '${runId}' is in the transcript of its session already`);
  }
  for (const [i, body] of entries.entries()) {
    yield* execute(
      `INSERT INTO session_entries (id, session_key, run_id, position, created_at, kind, body)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      Bun.randomUUIDv7(),
      sessionKey,
      runId,
      i,
      now,
      body.kind,
      JSON.stringify(body),
    );
  }
  if (isEphemeral) yield* endSession({ sessionKey, now });
}

/** Throws `conflict` if the session has ended. */
export function* checkOpen(sessionKey: string): Transaction<void> {
  if ((yield* findSession(sessionKey))?.endedAt === undefined) return;
  throw new AppError("conflict", `session '${sessionKey}' has ended`);
}

function* touch(options: { sessionKey: string; isEphemeral: boolean; now: number }): Transaction<void> {
  const { sessionKey, isEphemeral, now } = options;
  yield* execute(
    `INSERT INTO sessions (key, is_ephemeral, created_at, updated_at) VALUES ($1, $2, $3, $3)
     ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at`,
    sessionKey,
    Number(isEphemeral),
    now,
  );
}

/** Closes the session for new entries; its transcript stays readable. */
export function* endSession({ sessionKey, now }: { sessionKey: string; now: number }): Transaction<void> {
  yield* execute("UPDATE sessions SET ended_at = $1 WHERE key = $2 AND ended_at IS NULL", now, sessionKey);
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

export function* findSession(key: string): Transaction<Session | undefined> {
  const row = yield* queryOne<SessionRow>("SELECT * FROM sessions WHERE key = $1", key);
  return row ? sessionOf(row) : undefined;
}

/** Remembers the conversation's target, for messages to `last`. */
export function* setRoute(options: { sessionKey: string; route: Target; now: number }): Transaction<void> {
  const { sessionKey, route, now } = options;
  yield* touch({ sessionKey, isEphemeral: false, now });
  yield* execute(
    "UPDATE sessions SET last_channel = $1, last_to = $2, last_thread = $3 WHERE key = $4",
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
  body: JSON.parse(row.body) as EntryBody, // only append writes it
});

/** The last entries of a transcript, oldest first. */
export function* listEntries(of: { sessionKey: string; limit: number }): Transaction<readonly Entry[]> {
  const rows = yield* queryAll<EntryRow>(
    "SELECT * FROM session_entries WHERE session_key = $1 ORDER BY seq DESC LIMIT $2",
    of.sessionKey,
    of.limit,
  );
  return rows.map(entryOf).toReversed();
}

/** Number of the latest entries of a transcript that stay readable, compacted or not. */
export const READ_MAX = 2000;

export interface StoredMessage {
  readonly seq: number;
  readonly message: Message;
}

export interface History {
  /** Stands for everything before `messages`. */
  readonly compaction: (EntryBody & { kind: "compaction" }) | undefined;
  readonly messages: readonly StoredMessage[];
}

function* lastCompaction(sessionKey: string): Transaction<History["compaction"]> {
  const last = yield* queryOne<EntryRow>(
    "SELECT * FROM session_entries WHERE session_key = $1 AND kind = 'compaction' ORDER BY seq DESC LIMIT 1",
    sessionKey,
  );
  const body = last ? entryOf(last).body : undefined;
  return body?.kind === "compaction" ? body : undefined;
}

/** The history that a session's next turn continues: the last compaction, and the messages after it. */
export function* historyOf(sessionKey: string): Transaction<History> {
  const compaction = yield* lastCompaction(sessionKey);
  const rows = yield* queryAll<EntryRow>(
    "SELECT * FROM session_entries WHERE session_key = $1 AND kind = 'message' AND seq > $2 ORDER BY seq",
    sessionKey,
    compaction?.through ?? 0,
  );
  const messages = rows
    .map(entryOf)
    .flatMap(({ seq, body }) => (body.kind === "message" ? [{ seq, message: body.message }] : []));
  return { compaction, messages };
}

/**
 * Deletes sessions unused since `idleSince`, with their transcripts, unless events wait for them.
 * @param keep keys to keep whatever their age
 * @returns number of deleted sessions
 */
export const pruneSessions = ({
  idleSince,
  keep,
  limit,
}: {
  idleSince: number;
  keep: readonly string[];
  limit: number;
}): Transaction<number> =>
  execute(
    `DELETE FROM sessions WHERE key IN (SELECT key FROM sessions WHERE updated_at < $1
       AND key NOT IN (${placeholders(keep, 2)})
       AND key NOT IN (SELECT session_key FROM session_events) LIMIT $${keep.length + 2})`,
    idleSince,
    ...keep,
    limit,
  );

/** Keys of sessions with entries that `pruneEntries` may delete. */
export function* longSessions(): Transaction<readonly string[]> {
  const text = "SELECT session_key FROM session_entries GROUP BY session_key HAVING count(*) > $1";
  return (yield* queryAll<{ session_key: string }>(text, READ_MAX)).map((row) => row.session_key);
}

/**
 * Deletes entries that nothing reads: all that the last compaction stands for, except the latest `READ_MAX`.
 * @param before newer ones stay: their runs may be repeated
 * @returns number of deleted entries
 */
export function* pruneEntries({
  sessionKey,
  before,
  limit,
}: {
  sessionKey: string;
  before: number;
  limit: number;
}): Transaction<number> {
  const compaction = yield* lastCompaction(sessionKey);
  const oldestRead = yield* queryOne<{ seq: number }>(
    "SELECT seq FROM session_entries WHERE session_key = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2",
    sessionKey,
    READ_MAX - 1,
  );
  if (!compaction || !oldestRead) return 0;
  return yield* execute(
    `DELETE FROM session_entries WHERE seq IN (SELECT seq FROM session_entries
       WHERE session_key = $1 AND seq <= $2 AND seq < $3 AND created_at < $4 LIMIT $5)`,
    sessionKey,
    compaction.through,
    oldestRead.seq,
    before,
    limit,
  );
}
