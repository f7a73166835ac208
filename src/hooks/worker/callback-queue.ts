/** Callbacks that wait to be sent: a row for each run that asked for one, kept until it arrived or was given up. */
import type { Database } from "../../base/database.ts";
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
  /** As the request had them. */
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

/** Once per run, where its action asked for one. Shape of the body: Standard Webhooks (type, timestamp, data). */
export function addCallback(db: Database, run: Run, now: number): void {
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
  db.query(
    `INSERT INTO callbacks (run_id, url, body, state, next_at, created_at) VALUES (?, ?, ?, 'pending', ?, ?)
     ON CONFLICT DO NOTHING`,
  ).run(run.id, run.action.callbackUrl, body, now, now);
}

export const dueCallbacks = (db: Database, { now, limit }: { now: number; limit: number }): DueCallback[] =>
  db
    .query<Omit<DueCallback, "traceparent" | "tracestate"> & { headers: string }, [number, number]>(
      `SELECT run_id AS runId, url, callbacks.body, callbacks.attempts, callbacks.created_at AS createdAt, headers
       FROM callbacks JOIN runs ON runs.id = run_id JOIN deliveries ON deliveries.id = delivery_id
       WHERE callbacks.state = 'pending' AND callbacks.next_at <= ? ORDER BY callbacks.next_at LIMIT ?`,
    )
    .all(now, limit)
    .map(({ headers, ...callback }) => {
      const { traceparent = null, tracestate = null } = JSON.parse(headers) as Partial<Record<string, string>>;
      return { ...callback, traceparent, tracestate };
    });

export const nextCallbackAt = (db: Database): number | undefined =>
  db.query<{ at: number | null }, []>("SELECT min(next_at) AS at FROM callbacks WHERE state = 'pending'").get()?.at ??
  undefined;

export type CallbackState = "pending" | "sent" | "failed";

/** Notes what became of an attempt. Returns the callback's state. */
export function settleCallback(
  db: Database,
  callback: DueCallback,
  { outcome, now, random }: { outcome: CallbackOutcome; now: number; random: () => number },
): CallbackState {
  const attempts = callback.attempts + 1;
  const isOver = attempts >= ATTEMPTS_MAX || now - callback.createdAt > MAX_AGE_MS;
  const state: CallbackState =
    outcome.kind === "retry" && !isOver ? "pending" : outcome.kind === "sent" ? "sent" : "failed";
  const waitMs = outcome.kind === "retry" ? retryDelayMs(attempts, random, outcome.afterMs) : 0;
  db.query("UPDATE callbacks SET state = ?, attempts = ?, next_at = ?, reason = ? WHERE run_id = ?").run(
    state,
    attempts,
    now + waitMs,
    outcome.kind === "sent" ? null : outcome.reason,
    callback.runId,
  );
  return state;
}
