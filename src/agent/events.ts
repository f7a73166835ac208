/**
 * Events that wait for the next turn of a session. They stay until the transaction that stores a turn which saw them.
 * Their number is bounded: past the bound an event is refused, and its sender keeps it until there is room.
 */
import type { Database } from "../base/database.ts";
import { AppError } from "../base/errors.ts";
import { plain, type Passage } from "../base/passage.ts";

export interface NewEvent {
  readonly sessionKey: string;
  readonly text: Passage;
  /** Whether outside parts go behind the safety boundary. */
  readonly isWrapped: boolean;
  /** Who sent it, for the model to read. */
  readonly source: string;
  /** Waiting events of one key are one event, which says what the last of them said. */
  readonly dedupeKey?: string;
  /** Whether a heartbeat is due for it: one that waits when the server starts gets one. */
  readonly wantsHeartbeat?: boolean;
  /** Whether people have been told already, so that the model need not tell them again. */
  readonly isDelivered?: boolean;
  readonly now: number;
}

export interface WaitingEvent {
  readonly seq: number;
  readonly text: Passage;
  readonly isWrapped: boolean;
  readonly source: string;
  readonly wantsHeartbeat: boolean;
  readonly isDelivered: boolean;
  /** How many events this one stands for. */
  readonly count: number;
  readonly createdAt: number;
  readonly lastAt: number;
}

/** What a turn was shown of an event: those that joined it since are shown to the next. */
export type SeenEvent = Pick<WaitingEvent, "seq" | "count" | "wantsHeartbeat" | "isDelivered">;

/** `merged`: it joined one that waits. `ignored`: it has no text. */
export type Enqueued = "queued" | "merged" | "ignored";

/**
 * Throws `busy` where too many wait.
 * @param eventsMax events that may wait in one session
 */
export function enqueueEvent(db: Database, event: NewEvent, { eventsMax }: { eventsMax: number }): Enqueued {
  if (plain(event.text).trim() === "") return "ignored";
  const twin = findTwin(db, event);
  if (twin !== undefined) {
    join(db, { seq: twin, event });
    return "merged";
  }
  if (countEvents(db, event.sessionKey) >= eventsMax) {
    throw new AppError("busy", `${eventsMax} events wait for session '${event.sessionKey}': no more are taken`);
  }
  insert(db, event);
  return "queued";
}

interface EventRow {
  readonly seq: number;
  readonly text: string;
  readonly is_wrapped: number;
  readonly source: string;
  readonly dedupe_key: string | null;
  readonly wants_heartbeat: number;
  readonly is_delivered: number;
  readonly count: number;
  readonly created_at: number;
  readonly last_at: number;
}

/** One of its key; where it has none, the newest event if that says the same. */
function findTwin(db: Database, event: NewEvent): number | undefined {
  if (event.dedupeKey !== undefined) {
    return db
      .query<{ seq: number }, [string, string]>(
        "SELECT seq FROM session_events WHERE session_key = ? AND dedupe_key = ?",
      )
      .get(event.sessionKey, event.dedupeKey)?.seq;
  }
  const newest = db
    .query<EventRow, [string]>("SELECT * FROM session_events WHERE session_key = ? ORDER BY seq DESC LIMIT 1")
    .get(event.sessionKey);
  const isSame =
    newest?.dedupe_key === null &&
    newest.text === JSON.stringify(event.text) &&
    newest.source === event.source &&
    newest.is_wrapped === Number(event.isWrapped) &&
    newest.is_delivered === Number(event.isDelivered ?? false);
  return isSame ? newest.seq : undefined;
}

function join(db: Database, { seq, event }: { seq: number; event: NewEvent }): void {
  db.query(
    "UPDATE session_events SET count = count + 1, last_at = ?, text = ?, is_wrapped = ?, source = ?, " +
      "wants_heartbeat = wants_heartbeat | ?, is_delivered = is_delivered & ? WHERE seq = ?",
  ).run(
    event.now,
    JSON.stringify(event.text),
    Number(event.isWrapped),
    event.source,
    Number(event.wantsHeartbeat ?? false),
    Number(event.isDelivered ?? false),
    seq,
  );
}

function insert(db: Database, event: NewEvent): void {
  db.query(
    "INSERT INTO session_events (session_key, text, is_wrapped, source, dedupe_key, wants_heartbeat, " +
      "is_delivered, count, created_at, last_at) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)",
  ).run(
    event.sessionKey,
    JSON.stringify(event.text),
    Number(event.isWrapped),
    event.source,
    event.dedupeKey ?? null,
    Number(event.wantsHeartbeat ?? false),
    Number(event.isDelivered ?? false),
    event.now,
    event.now,
  );
}

/** Events that wait, those that joined one not counted. */
export const countEvents = (db: Database, sessionKey: string): number =>
  db.query<{ n: number }, [string]>("SELECT n FROM session_event_counts WHERE session_key = ?").get(sessionKey)?.n ?? 0;

/** The oldest first. */
export const waitingEvents = (db: Database, options: { sessionKey: string; limit: number }): readonly WaitingEvent[] =>
  db
    .query<EventRow, [string, number]>("SELECT * FROM session_events WHERE session_key = ? ORDER BY seq LIMIT ?")
    .all(options.sessionKey, options.limit)
    .map((row) => ({
      seq: row.seq,
      text: JSON.parse(row.text) as Passage, // written by insert and join alone
      isWrapped: row.is_wrapped === 1,
      source: row.source,
      wantsHeartbeat: row.wants_heartbeat === 1,
      isDelivered: row.is_delivered === 1,
      count: row.count,
      createdAt: row.created_at,
      lastAt: row.last_at,
    }));

/** Whether an event waits that a heartbeat is due for. */
export const wantsHeartbeat = (db: Database, sessionKey: string): boolean =>
  db.query("SELECT 1 FROM session_events WHERE session_key = ? AND wants_heartbeat = 1 LIMIT 1").get(sessionKey) !==
  null;

/** Takes away what a turn was shown; call it in the transaction that stores the turn. */
export function consumeEvents(db: Database, seen: readonly SeenEvent[]): void {
  const remove = db.query("DELETE FROM session_events WHERE seq = ? AND count <= ?");
  const shrink = db.query("UPDATE session_events SET count = count - ?, created_at = last_at WHERE seq = ?");
  for (const { seq, count } of seen) {
    if (remove.run(seq, count).changes === 0) shrink.run(count, seq);
  }
}
