/**
 * Events that wait for the next turn of a session. They stay until the transaction that stores a turn which saw them.
 * Their number is bounded: past the bound an event is refused, and its sender keeps it until there is room.
 */
import { AppError } from "../../base/index.ts";
import { plain, type Passage } from "./boundary/passage.ts";
import { execute, insertAll, queryAll, queryOne, together, type Script, type SqlText } from "../database/store.ts";

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
  /** Whether a reply with it is on its way to people, so that the model need not tell them too. */
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
  const events = yield* openEvents(event.sessionKey, { eventsMax, dedupeKey: event.dedupeKey });
  const enqueued = events.add(event);
  yield* events.store();
  return enqueued;
}

/** Events of one session: decided on one after the other, stored together. */
export interface EventBatch {
  /** Throws `busy` where too many wait. */
  add(event: Omit<NewEvent, "sessionKey">): Enqueued;
  /** At once. */
  store(): Script<void>;
}

/** @param dedupeKey of the one event to be added; where there are several they have none */
export function* openEvents(
  sessionKey: string,
  { eventsMax, dedupeKey }: { eventsMax: number; dedupeKey?: string | undefined },
): Script<EventBatch> {
  const [twin, waiting] = yield* together(findTwin(sessionKey, dedupeKey), countEvents(sessionKey));
  return new Events(sessionKey, { eventsMax, twin, waiting });
}

/** One of its key; where it has none, the newest event. */
const findTwin = (sessionKey: string, dedupeKey: string | undefined): Script<EventRow | undefined> =>
  dedupeKey === undefined
    ? queryOne<EventRow>(NEWEST, sessionKey)
    : queryOne<EventRow>(
        "SELECT * FROM session_events WHERE session_key = $1 AND dedupe_key = $2",
        sessionKey,
        dedupeKey,
      );

const NEWEST = {
  sqlite: "SELECT * FROM session_events WHERE session_key = $1 ORDER BY seq DESC LIMIT 1",
  // an order that only `session_events_key` has
  postgres: `SELECT * FROM session_events WHERE session_key BETWEEN $1 AND $1
    ORDER BY session_key DESC, seq DESC LIMIT 1`,
} satisfies SqlText;

/** A row as it is to be. */
type Row = Omit<{ -readonly [Key in keyof EventRow]: EventRow[Key] }, "seq"> & {
  /** Undefined: it is new. */
  readonly seq: number | undefined;
  /** How many events it stands for that are not stored. */
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

  *store(): Script<void> {
    const joined = this.#rows.filter(({ seq, added }) => seq !== undefined && added > 0);
    const rows = this.#rows.filter(({ seq }) => seq === undefined);
    const values = rows.map((row) => [this.#sessionKey, row.added, ...KEPT.map((column) => row[column])]);
    yield* together(...joined.map(update), insertAll({ table: "session_events", columns: COLUMNS, rows: values }));
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

/** Waiting events of one key are one; of those without, neighbours that say the same. */
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

const update = (row: Row): Script<number> =>
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

/**
 * Whether an event waits that a heartbeat is due for.
 * @param checkedAt when one was due for all that waited; absent: for none that did not ask
 */
export function* wantsHeartbeat(sessionKey: string, checkedAt = -1): Script<boolean> {
  const text = `SELECT 1 FROM session_events
    WHERE session_key = $1 AND (wants_heartbeat = 1 OR created_at <= $2) LIMIT 1`;
  return (yield* queryOne(text, sessionKey, checkedAt)) !== undefined;
}

/** Makes a heartbeat due for the oldest that waits. Returns false where one is due, or none waits. */
export function* hastenEvents(sessionKey: string): Script<boolean> {
  if (yield* wantsHeartbeat(sessionKey)) return false;
  const oldest = "SELECT min(seq) FROM session_events WHERE session_key = $1";
  return (yield* execute(`UPDATE session_events SET wants_heartbeat = 1 WHERE seq = (${oldest})`, sessionKey)) > 0;
}

/** Takes away what a turn was shown; belongs in the transaction that stores the turn. */
export function* consumeEvents(seen: readonly SeenEvent[]): Script<void> {
  for (const { seq, count } of seen) {
    const removed = yield* execute("DELETE FROM session_events WHERE seq = $1 AND count <= $2", seq, count);
    if (removed > 0) continue;
    yield* execute("UPDATE session_events SET count = count - $1, created_at = last_at WHERE seq = $2", count, seq);
  }
}
