/** Callbacks to send: one row per run that requested one, kept until the callback arrives or is given up. */
import { execute, queryAll, queryOne, type Transaction } from "../../../database/store.ts";
import type { Run } from "../deliveries/runs.ts";
import type { CallbackOutcome } from "../callback.ts";
import { MAX_AGE_MS, retryDelayMs } from "./backoff.ts";

const ATTEMPTS_MAX = 12;

export interface DueCallback {
  /** Also the callback's own id: the same for every attempt. */
  readonly runId: string;
  readonly url: string;
  readonly body: string;
  readonly attempts: number;
  readonly createdAt: number;
  /** From the request. */
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

/**
 * Adds a callback if the run's action requested one, once per run. Format of the body: Standard Webhooks (type,
 * timestamp, data).
 */
export function* addCallback(run: Run, now: number): Transaction<void> {
  if (run.action.kind !== "agent" || run.action.callbackUrl === undefined) return;
  const body = JSON.stringify({
    type: `run.${run.state}`,
    timestamp: new Date(now).toISOString(),
    data: {
      runId: run.id,
      deliveryId: run.deliveryId,
      state: run.state,
      answer: run.answer,
      reason: run.reason,
      reply: run.reply,
    },
  });
  yield* execute(
    `INSERT INTO callbacks (run_id, url, body, state, next_at, created_at) VALUES ($1, $2, $3, 'pending', $4, $4)
     ON CONFLICT DO NOTHING`,
    run.id,
    run.action.callbackUrl,
    body,
    now,
  );
}

export function* dueCallbacks({ now, limit }: { now: number; limit: number }): Transaction<DueCallback[]> {
  const rows = yield* queryAll<Omit<DueCallback, "traceparent" | "tracestate"> & { headers: string }>(
    `SELECT run_id AS "runId", url, callbacks.body, callbacks.attempts, callbacks.created_at AS "createdAt", headers
     FROM callbacks JOIN runs ON runs.id = run_id JOIN deliveries ON deliveries.id = delivery_id
     WHERE callbacks.state = 'pending' AND callbacks.next_at <= $1 ORDER BY callbacks.next_at LIMIT $2`,
    now,
    limit,
  );
  return rows.map(({ headers, ...callback }) => {
    const { traceparent = null, tracestate = null } = JSON.parse(headers) as Partial<Record<string, string>>;
    return { ...callback, traceparent, tracestate };
  });
}

export function* nextCallbackAt(): Transaction<number | undefined> {
  const text = "SELECT min(next_at) AS at FROM callbacks WHERE state = 'pending'";
  return (yield* queryOne<{ at: number | null }>(text))?.at ?? undefined;
}

export type CallbackState = "pending" | "sent" | "failed";

/** Stores the outcome of an attempt, unless another node has stored a later one. Returns the callback's state. */
export function* settleCallback(
  callback: DueCallback,
  { outcome, now, random }: { outcome: CallbackOutcome; now: number; random: () => number },
): Transaction<CallbackState> {
  const attempts = callback.attempts + 1;
  const isOver = attempts >= ATTEMPTS_MAX || now - callback.createdAt > MAX_AGE_MS;
  const state: CallbackState =
    outcome.kind === "retry" && !isOver ? "pending" : outcome.kind === "sent" ? "sent" : "failed";
  const waitMs = outcome.kind === "retry" ? retryDelayMs(attempts, random, outcome.afterMs) : 0;
  yield* execute(
    `UPDATE callbacks SET state = $1, attempts = $2, next_at = $3, reason = $4
     WHERE run_id = $5 AND state = 'pending' AND attempts = $6`,
    state,
    attempts,
    now + waitMs,
    outcome.kind === "sent" ? null : outcome.reason,
    callback.runId,
    callback.attempts,
  );
  return state;
}
