/**
 * Events that wait for the next turn of a session. They stay until the transaction that stores a turn which saw them.
 * Their number is bounded: a full session refuses an event, and its sender keeps it until there is room.
 */
import { AppError } from "../../base/index.ts";
import { plain, type TaintedText } from "./boundary/tainted-text.ts";
import { execute, insertAll, queryAll, queryOne, parallel, type Transaction, type SqlText } from "../database/store.ts";

export interface NewEvent {
  readonly sessionKey: string;
  readonly text: TaintedText;
  /** True if outside parts go behind the safety boundary. */
  readonly isWrapped: boolean;
  /** The sender's name, for the model to read. */
  readonly source: string;
  /** Waiting events of one key are merged into one event with the newest text. */
  readonly dedupeKey?: string;
  /** True if the event asks for a heartbeat, also after a restart. */
  readonly wantsHeartbeat?: boolean;
  /** True if a reply with it is on its way to people, so that the model need not repeat it. */
  readonly isDelivered?: boolean;
  readonly now: number;
}

export interface WaitingEvent {
  readonly seq: number;
  readonly text: TaintedText;
  readonly isWrapped: boolean;
  readonly source: string;
  readonly wantsHeartbeat: boolean;
  readonly isDelivered: boolean;
  /** Number of events merged into this one. */
  readonly count: number;
  readonly createdAt: number;
  readonly lastAt: number;
}

/** An event as a turn saw it; events merged into it later are shown to the next turn. */
export type SeenEvent = Pick<WaitingEvent, "seq" | "count" | "wantsHeartbeat" | "isDelivered">;

/** `merged`: joined a waiting event. `ignored`: the event has no text. */
export type Enqueued = "queued" | "merged" | "ignored";

/**
 * Throws `busy` if too many wait.
 * @param eventsMax events that may wait in one session
 */
export function* enqueueEvent(event: NewEvent, { eventsMax }: { eventsMax: number }): Transaction<Enqueued> {
  const events = yield* openEvents(event.sessionKey, { eventsMax, dedupeKey: event.dedupeKey });
  const enqueued = events.add(event);
  yield* events.store();
  return enqueued;
}

/** Events of one session. Each is accepted or refused when it is added; all are stored together. */
export interface EventBatch {
  /** Throws `busy` if too many wait. */
  add(event: Omit<NewEvent, "sessionKey">): Enqueued;
  /** Stores all of them in one transaction. */
  store(): Transaction<void>;
}

/** @param dedupeKey key of the single event to be added; undefined for several, which have no keys */
export function* openEvents(
  sessionKey: string,
  { eventsMax, dedupeKey }: { eventsMax: number; dedupeKey?: string | undefined },
): Transaction<EventBatch> {
  const [twin, waiting] = yield* parallel(findTwin(sessionKey, dedupeKey), countEvents(sessionKey));
  return new Events(sessionKey, { eventsMax, twin, waiting });
}

/** The waiting event of the same key; without a key, the newest event. */
const findTwin = (sessionKey: string, dedupeKey: string | undefined): Transaction<EventRow | undefined> =>
  dedupeKey === undefined
    ? queryOne<EventRow>(NEWEST, sessionKey)
    : queryOne<EventRow>(
        "SELECT * FROM session_events WHERE session_key = $1 AND dedupe_key = $2",
        sessionKey,
        dedupeKey,
      );

const NEWEST = {
  sqlite: "SELECT * FROM session_events WHERE session_key = $1 ORDER BY seq DESC LIMIT 1",
  // this order makes PostgreSQL use `session_events_key`
  postgres: `SELECT * FROM session_events WHERE session_key BETWEEN $1 AND $1
    ORDER BY session_key DESC, seq DESC LIMIT 1`,
} satisfies SqlText;

type Row = Omit<{ -readonly [Key in keyof EventRow]: EventRow[Key] }, "seq"> & {
  /** Undefined: a new row. */
  readonly seq: number | undefined;
  /** Number of merged events not stored yet. */
  added: number;
};

class Events implements EventBatch {
  readonly #sessionKey: string;
  readonly #eventsMax: number;
  readonly #rows: Row[] = [];
  #waiting: number;

  constructor(
    sessionKey: string,
    { eventsMax, twin, waiting }: { eventsMax: number; twin: EventRow | undefined; waiting: number },
  ) {
    this.#sessionKey = sessionKey;
    this.#eventsMax = eventsMax;
    this.#waiting = waiting;
    if (twin) this.#rows.push({ ...twin, added: 0 });
  }

  add(event: Omit<NewEvent, "sessionKey">): Enqueued {
    if (plain(event.text).trim() === "") return "ignored";
    const row = rowOf(event);
    const last = this.#rows.at(-1);
    if (last && isTwin(last, row)) {
      join(last, row);
      return "merged";
    }
    if (this.#waiting >= this.#eventsMax) {
      const message = `${this.#eventsMax} events wait for session '${this.#sessionKey}': no more are taken`;
      throw new AppError("busy", message);
    }
    this.#waiting++;
    this.#rows.push(row);
    return "queued";
  }

  *store(): Transaction<void> {
    const joined = this.#rows.filter(({ seq, added }) => seq !== undefined && added > 0);
    const rows = this.#rows.filter(({ seq }) => seq === undefined);
    const values = rows.map((row) => [this.#sessionKey, row.added, ...KEPT.map((column) => row[column])]);
    yield* parallel(...joined.map(update), insertAll({ table: "session_events", columns: COLUMNS, rows: values }));
  }
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

const KEPT = [
  "text",
  "is_wrapped",
  "source",
  "dedupe_key",
  "wants_heartbeat",
  "is_delivered",
  "created_at",
  "last_at",
] as const;
const COLUMNS = ["session_key", "count", ...KEPT];

const rowOf = ({ text, now, ...event }: Omit<NewEvent, "sessionKey">): Row => ({
  seq: undefined,
  text: JSON.stringify(text),
  is_wrapped: Number(event.isWrapped),
  source: event.source,
  dedupe_key: event.dedupeKey ?? null,
  wants_heartbeat: Number(event.wantsHeartbeat ?? false),
  is_delivered: Number(event.isDelivered ?? false),
  count: 1,
  created_at: now,
  last_at: now,
  added: 1,
});

/** Merge events of one key; without keys, neighbours with the same text. */
const isTwin = (waiting: Row, row: Row): boolean =>
  row.dedupe_key === null
    ? waiting.dedupe_key === null &&
      waiting.text === row.text &&
      waiting.source === row.source &&
      waiting.is_wrapped === row.is_wrapped &&
      waiting.is_delivered === row.is_delivered
    : waiting.dedupe_key === row.dedupe_key;

function join(waiting: Row, { text, is_wrapped, source, wants_heartbeat, is_delivered, last_at }: Row): void {
  Object.assign(waiting, { text, is_wrapped, source, last_at });
  waiting.added++;
  waiting.wants_heartbeat |= wants_heartbeat;
  waiting.is_delivered &= is_delivered;
}

const update = (row: Row): Transaction<number> =>
  execute(
    `UPDATE session_events SET count = count + $1, last_at = $2, text = $3, is_wrapped = $4, source = $5,
       wants_heartbeat = wants_heartbeat | $6, is_delivered = is_delivered & $7 WHERE seq = $8`,
    row.added,
    row.last_at,
    row.text,
    row.is_wrapped,
    row.source,
    row.wants_heartbeat,
    row.is_delivered,
    row.seq!,
  );

/** Number of waiting events; merged ones count once. */
export function* countEvents(sessionKey: string): Transaction<number> {
  return (yield* queryOne<{ n: number }>(COUNT, sessionKey))?.n ?? 0;
}

const COUNT = "SELECT n FROM session_event_counts WHERE session_key = $1";

/** The oldest first. */
export function* waitingEvents(options: { sessionKey: string; limit: number }): Transaction<readonly WaitingEvent[]> {
  const text = "SELECT * FROM session_events WHERE session_key = $1 ORDER BY seq LIMIT $2";
  const rows = yield* queryAll<EventRow>(text, options.sessionKey, options.limit);
  return rows.map((row) => ({
    seq: row.seq,
    text: JSON.parse(row.text) as TaintedText, // only insert and merge write it
    isWrapped: row.is_wrapped === 1,
    source: row.source,
    wantsHeartbeat: row.wants_heartbeat === 1,
    isDelivered: row.is_delivered === 1,
    count: row.count,
    createdAt: row.created_at,
    lastAt: row.last_at,
  }));
}

/**
 * True if a waiting event asks for a heartbeat.
 * @param checkedAt time of the last check: every event that was waiting then asks for a heartbeat; absent: only events
 * with `wantsHeartbeat` do
 */
export function* wantsHeartbeat(sessionKey: string, checkedAt = -1): Transaction<boolean> {
  const text = `SELECT 1 FROM session_events
    WHERE session_key = $1 AND (wants_heartbeat = 1 OR created_at <= $2) LIMIT 1`;
  return (yield* queryOne(text, sessionKey, checkedAt)) !== undefined;
}

/** Marks the oldest waiting event as asking for a heartbeat. Returns false if one already asks, or none waits. */
export function* hastenEvents(sessionKey: string): Transaction<boolean> {
  if (yield* wantsHeartbeat(sessionKey)) return false;
  const oldest = "SELECT min(seq) FROM session_events WHERE session_key = $1";
  return (yield* execute(`UPDATE session_events SET wants_heartbeat = 1 WHERE seq = (${oldest})`, sessionKey)) > 0;
}

/** Removes the events that a turn saw; belongs in the transaction that stores the turn. */
export function* consumeEvents(seen: readonly SeenEvent[]): Transaction<void> {
  for (const { seq, count } of seen) {
    const removed = yield* execute("DELETE FROM session_events WHERE seq = $1 AND count <= $2", seq, count);
    if (removed > 0) continue;
    yield* execute("UPDATE session_events SET count = count - $1, created_at = last_at WHERE seq = $2", count, seq);
  }
}
