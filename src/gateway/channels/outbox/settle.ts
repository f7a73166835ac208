/**
 * The next state of a message after an attempt, or after a crash during one. The rule: a message that may have arrived
 * is sent again only while the platform still recognises the repeat.
 */
import { execute, queryAll, type Transaction } from "../../database/store.ts";
import type { SendOutcome } from "../channel.ts";
import { cancelMessage } from "./messages.ts";
import type { OutboxRow } from "./tables.ts";

const BACKOFF_FIRST_MS = 1000;
const BACKOFF_MAX_MS = 300_000;

export interface RetryLimits {
  readonly maxAttempts: number;
  /** Age from the time of adding. */
  readonly maxAgeMs: number;
}

/**
 * Delay before a retry, which doubles with every attempt.
 * @param random in [0, 1): adds up to a fifth, so that not all messages are retried at the same time
 */
function backoffMs(attempts: number, random: number): number {
  const base = Math.min(BACKOFF_FIRST_MS * 2 ** Math.min(attempts - 1, 20), BACKOFF_MAX_MS);
  return Math.round(base * (1 + random / 5));
}

/** True if an attempt that may have arrived can be repeated without a second message. */
export const isRepeatable = (uncertainAt: number | null, dedupeMs: number, now: number): boolean =>
  uncertainAt === null || now - uncertainAt < dedupeMs;

export interface Settlement {
  readonly state: OutboxRow["state"];
  readonly reason: string | null;
  readonly messageId: string | null;
  readonly nextAt: number;
  readonly uncertainAt: number | null;
  /** The attempt does not count. */
  readonly isUncounted?: boolean;
}

export interface Attempt {
  readonly row: OutboxRow;
  readonly outcome: SendOutcome;
  readonly dedupeMs: number;
  readonly limits: RetryLimits;
  readonly now: number;
  readonly random: number;
}

/** Rounds up, also the times of plugins: tables keep whole milliseconds. */
const wholeMs = (ms = 0): number => (Number.isFinite(ms) ? Math.ceil(ms) : 0);

/** The row's next state. */
export function settle({ row, outcome, dedupeMs, limits, now, random }: Attempt): Settlement {
  const none = { messageId: null, nextAt: row.next_at, uncertainAt: row.uncertain_at };
  if (outcome.kind === "sent") return { ...none, state: "sent", reason: null, messageId: outcome.messageId ?? null };
  const uncertainAt = row.uncertain_at ?? (outcome.kind === "unknown" ? row.sending_at : null);
  const { reason } = outcome;
  const end = { ...none, uncertainAt, reason, state: uncertainAt === null ? "failed" : "unknown" } as const;
  if (outcome.kind === "failed") return end;
  // the channel waits, not the message; how long, the outbox bounds
  if (outcome.kind === "refused") return { ...none, state: "queued", reason, nextAt: now, isUncounted: true };
  const asked = outcome.kind === "retry" ? wholeMs(outcome.afterMs) : 0;
  const nextAt = now + Math.max(asked, backoffMs(row.attempts, random));
  if (!isRepeatable(uncertainAt, dedupeMs, nextAt)) return end;
  if (row.attempts >= limits.maxAttempts || nextAt - row.created_at > limits.maxAgeMs) {
    return { ...end, reason: `given up after ${row.attempts} attempts: ${reason}` };
  }
  return { ...none, state: "queued", reason, nextAt, uncertainAt };
}

/**
 * Stores a settlement. If a message failed, the later ones of its text are not sent either. Returns false and stores
 * nothing if another node has taken over the message and tried it again.
 */
export function* writeSettlement(row: OutboxRow, settlement: Settlement, now: number): Transaction<boolean> {
  const { state, reason, messageId, nextAt, uncertainAt, isUncounted = false } = settlement;
  const changed = yield* execute(
    `UPDATE outbox SET state = $1, reason = $2, message_id = $3, next_at = $4, uncertain_at = $5, settled_at = $6,
         attempts = attempts - $7
       WHERE seq = $8 AND state = 'sending' AND attempts = $9`,
    state,
    reason,
    messageId,
    nextAt,
    uncertainAt,
    state === "queued" ? null : now,
    isUncounted ? 1 : 0,
    row.seq,
    row.attempts,
  );
  if (changed === 0) return false;
  if (state === "queued") yield* cancelMessage(row.seq, now);
  if (state !== "failed") return true;
  yield* execute(
    `UPDATE outbox SET state = 'failed', reason = 'an earlier part was not sent', settled_at = $1
       WHERE group_id = $2 AND lane = $3 AND state = 'queued'`,
    now,
    row.group_id,
    row.lane,
  );
  return true;
}

/** Messages marked `sending`: under way, or interrupted by a crash. */
export const sendingRows = (): Transaction<OutboxRow[]> =>
  queryAll<OutboxRow>("SELECT * FROM outbox WHERE settled_at IS NULL AND state = 'sending'");

/**
 * After a crash a `sending` message may have arrived: it is sent again if the platform recognises repeats, else its
 * state becomes `unknown`.
 */
export function* recover(row: OutboxRow, dedupeMs: number, now: number): Transaction<void> {
  const uncertainAt = row.uncertain_at ?? row.sending_at ?? row.created_at;
  const state = isRepeatable(uncertainAt, dedupeMs, now) ? "queued" : "unknown";
  const reason = "the process ended while it was being sent";
  yield* writeSettlement(row, { state, reason, messageId: null, nextAt: now, uncertainAt }, now);
}
