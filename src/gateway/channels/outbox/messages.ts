/** Texts in the outbox: adds and cancels them, and reads their outcome, in the caller's transaction. */
import { execute, queryAll, queryOne, type Transaction } from "../../database/store.ts";
import type { Channel, Target } from "../channel.ts";
import { chunkText } from "../chunk.ts";
import type { OutboxRow } from "./tables.ts";

/** Longer texts are cut, with a note, so that one answer does not become hundreds of messages. */
const TEXT_CHARS_MAX = 200_000;
/** For a channel that is not configured at the moment. */
const UNKNOWN_LIMIT = { chunkLimit: 2000, chunkUnit: "utf16" } as const;

export interface NewText {
  /** The first text with the same id and target counts; repeats are dropped. */
  readonly groupId: string;
  readonly target: Target;
  readonly text: string;
  readonly now: number;
}

/** Cuts a text into messages and adds them. A blank text is added as failed. */
export function* addText(
  { groupId, target, text, now }: NewText,
  channel: Pick<Channel, "chunkLimit" | "chunkUnit"> = UNKNOWN_LIMIT,
): Transaction<void> {
  const chunks = chunkText(bounded(text), { limit: channel.chunkLimit, unit: channel.chunkUnit });
  const thread = target.thread ?? "";
  const lane = JSON.stringify([target.channel, target.to, thread]);
  const count = chunks.length;
  const insert = (
    index: number,
    chunk: string,
    state: OutboxRow["state"],
    reason: string | null,
  ): Transaction<number> =>
    execute(
      `INSERT INTO outbox (key, group_id, channel, recipient, thread, lane, chunk_index, chunk_count, text,
         state, next_at, reason, created_at, settled_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING`,
      Bun.randomUUIDv7(),
      groupId,
      target.channel,
      target.to,
      thread,
      lane,
      index,
      count,
      chunk,
      state,
      now,
      reason,
      now,
      state === "queued" ? null : now,
    );
  for (const [index, chunk] of chunks.entries()) yield* insert(index, chunk, "queued", null);
  if (count === 0) yield* insert(0, "", "failed", "the text is blank");
}

function bounded(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text;
  return `${text.slice(0, TEXT_CHARS_MAX)}\n\n[${text.length - TEXT_CHARS_MAX} more characters are left out]`;
}

/** The result of cancelling a text. */
export interface CalledBack {
  /** Number of cancelled messages. */
  readonly messages: number;
  /** Number of messages being sent right now: they may arrive, and are not retried. */
  readonly leaving: number;
}

const CANCEL = `UPDATE outbox SET state = CASE WHEN uncertain_at IS NULL THEN 'cancelled' ELSE 'unknown' END,
  reason = 'cancelled', settled_at = $1 WHERE state = 'queued'`;

/** Cancels messages that have not left; one being sent runs to its end. */
export function* cancelText(groupId: string, now: number): Transaction<CalledBack> {
  const messages = yield* execute(`${CANCEL} AND group_id = $2`, now, groupId);
  const mark = "UPDATE outbox SET cancel_at = $1 WHERE group_id = $2 AND state = 'sending'";
  return { messages, leaving: yield* execute(mark, now, groupId) };
}

/** Ends a message that was cancelled while it was being sent: there is no further attempt. */
export const cancelMessage = (seq: number, now: number): Transaction<number> =>
  execute(`${CANCEL} AND seq = $2 AND cancel_at IS NOT NULL`, now, seq);

/** The outcome of all messages of a text. `unknown`: some may have arrived, and are not sent again. */
export interface TextOutcome {
  readonly kind: "sent" | "failed" | "unknown";
  readonly reason?: string;
  /** The platform's ids of delivered messages, in order. */
  readonly messageIds: readonly string[];
}

/**
 * Undefined while messages are under way, and for an unknown text. For a text added again for another target, the last
 * one counts.
 */
export function* textOutcome(groupId: string): Transaction<TextOutcome | undefined> {
  const all = yield* textMessages(groupId);
  const rows = all.filter(({ lane }) => lane === all.at(-1)?.lane);
  if (rows.length === 0 || rows.some((row) => row.settled_at === null)) return undefined;
  const messageIds = rows.flatMap((row) => row.message_id ?? []);
  const uncertain = rows.find((row) => row.state === "unknown");
  const missing = rows.find((row) => row.state !== "sent");
  const first = uncertain ?? missing;
  if (!first) return { kind: "sent", messageIds };
  return { kind: uncertain ? "unknown" : "failed", reason: first.reason ?? first.state, messageIds };
}

/**
 * Deletes the failed messages of a text, so that it can be added again: of a target that has a part of it, only the
 * rest is added then. Returns false if there are no messages.
 */
export function* forgetFailed(groupId: string): Transaction<boolean> {
  const rows = yield* textMessages(groupId);
  yield* execute("DELETE FROM outbox WHERE group_id = $1 AND state = 'failed'", groupId);
  return rows.length > 0;
}

export const textMessages = (groupId: string): Transaction<OutboxRow[]> =>
  queryAll<OutboxRow>("SELECT * FROM outbox WHERE group_id = $1 ORDER BY seq", groupId);

/**
 * SQL of the reason why a text waits: of its own last attempt, or an earlier message's to the same recipient. Null: it
 * does not wait.
 * @param groupId SQL of the text's id
 */
export const waitReason = (groupId: string): string => `(SELECT reason FROM outbox AS head
  WHERE settled_at IS NULL AND reason IS NOT NULL
    AND lane = (SELECT lane FROM outbox WHERE group_id = ${groupId} AND settled_at IS NULL ORDER BY seq LIMIT 1)
  ORDER BY seq LIMIT 1)`;

export interface OutboxStats {
  readonly queued: number;
  readonly sending: number;
}

export function* outboxStats(): Transaction<OutboxStats> {
  const row = yield* queryOne<OutboxStats>(
    `SELECT COUNT(*) FILTER (WHERE state = 'queued') AS queued, COUNT(*) FILTER (WHERE state = 'sending') AS sending
       FROM outbox WHERE settled_at IS NULL`,
  );
  return row ?? { queued: 0, sending: 0 };
}

const PRUNE_BATCH = 1000; // a long transaction would block all others

/** Deletes messages that ended before a time, at most a batch; returns their number. */
export const pruneOutbox = (before: number): Transaction<number> =>
  execute(
    `DELETE FROM outbox WHERE seq IN
       (SELECT seq FROM outbox WHERE settled_at IS NOT NULL AND settled_at < $1 LIMIT ${PRUNE_BATCH})`,
    before,
  );
