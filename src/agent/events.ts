/**
 * Events that wait for the next turn of a session. They stay until the transaction that stores a turn which saw them.
 * Their number is bounded: past the bound an event is refused, and its sender keeps it until there is room.
 */
import { AppError } from "../base/errors.ts";
import { plain, type Passage } from "../base/passage.ts";
import { execute, queryAll, queryOne, type Script } from "../base/store.ts";

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
export function* enqueueEvent(event: NewEvent, { eventsMax }: { eventsMax: number }): Script<Enqueued> {
  if (plain(event.text).trim() === "") return "ignored";
  const twin = yield* findTwin(event);
  if (twin !== undefined) {
    yield* join({ seq: twin, event });
    return "merged";
  }
  if ((yield* countEvents(event.sessionKey)) >= eventsMax) {
    throw new AppError("busy", `${eventsMax} events wait for session '${event.sessionKey}': no more are taken`);
  }
  yield* insert(event);
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
function* findTwin(event: NewEvent): Script<number | undefined> {
  if (event.dedupeKey !== undefined) {
    const text = "SELECT seq FROM session_events WHERE session_key = $1 AND dedupe_key = $2";
    return (yield* queryOne<{ seq: number }>(text, event.sessionKey, event.dedupeKey))?.seq;
  }
  const newest = yield* queryOne<EventRow>(
    "SELECT * FROM session_events WHERE session_key = $1 ORDER BY seq DESC LIMIT 1",
    event.sessionKey,
  );
  const isSame =
    newest?.dedupe_key === null &&
    newest.text === JSON.stringify(event.text) &&
    newest.source === event.source &&
    newest.is_wrapped === Number(event.isWrapped) &&
    newest.is_delivered === Number(event.isDelivered ?? false);
  return isSame ? newest.seq : undefined;
}

const join = ({ seq, event }: { seq: number; event: NewEvent }): Script<number> =>
  execute(
    `UPDATE session_events SET count = count + 1, last_at = $1, text = $2, is_wrapped = $3, source = $4,
       wants_heartbeat = wants_heartbeat | $5, is_delivered = is_delivered & $6 WHERE seq = $7`,
    event.now,
    JSON.stringify(event.text),
    Number(event.isWrapped),
    event.source,
    Number(event.wantsHeartbeat ?? false),
    Number(event.isDelivered ?? false),
    seq,
  );

const insert = (event: NewEvent): Script<number> =>
  execute(
    `INSERT INTO session_events (session_key, text, is_wrapped, source, dedupe_key, wants_heartbeat,
       is_delivered, count, created_at, last_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8)`,
    event.sessionKey,
    JSON.stringify(event.text),
    Number(event.isWrapped),
    event.source,
    event.dedupeKey ?? null,
    Number(event.wantsHeartbeat ?? false),
    Number(event.isDelivered ?? false),
    event.now,
  );

/** Events that wait, those that joined one not counted. */
export function* countEvents(sessionKey: string): Script<number> {
  return (yield* queryOne<{ n: number }>(COUNT, sessionKey))?.n ?? 0;
}

const COUNT = "SELECT n FROM session_event_counts WHERE session_key = $1";

/** The oldest first. */
export function* waitingEvents(options: { sessionKey: string; limit: number }): Script<readonly WaitingEvent[]> {
  const text = "SELECT * FROM session_events WHERE session_key = $1 ORDER BY seq LIMIT $2";
  const rows = yield* queryAll<EventRow>(text, options.sessionKey, options.limit);
  return rows.map((row) => ({
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
}

/** Whether an event waits that a heartbeat is due for. */
export function* wantsHeartbeat(sessionKey: string): Script<boolean> {
  const text = "SELECT 1 FROM session_events WHERE session_key = $1 AND wants_heartbeat = 1 LIMIT 1";
  return (yield* queryOne(text, sessionKey)) !== undefined;
}

/** Takes away what a turn was shown; belongs in the transaction that stores the turn. */
export function* consumeEvents(seen: readonly SeenEvent[]): Script<void> {
  for (const { seq, count } of seen) {
    const removed = yield* execute("DELETE FROM session_events WHERE seq = $1 AND count <= $2", seq, count);
    if (removed > 0) continue;
    yield* execute("UPDATE session_events SET count = count - $1, created_at = last_at WHERE seq = $2", count, seq);
  }
}
