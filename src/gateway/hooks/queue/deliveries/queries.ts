/** Deliveries and runs for operators and senders. Actions and bodies are only in the details of one delivery. */
import { queryAll, queryOne, type Transaction } from "../../../database/store.ts";
import { waitReason } from "../../../channels/outbox/messages.ts";
import type { HookAction } from "../../action.ts";
import type { HookResponse } from "./answer.ts";
import type { RunStatus } from "./run-status.ts";
import type { RunState } from "./state.ts";
import type { DeliverySummary } from "./summary.ts";

export type { DeliverySummary };

const LIMIT_MAX = 500;

export interface DeliveryFilter {
  /** Deliveries with a run in this state; `failed` includes deliveries whose reply failed, or may not have arrived. */
  readonly state?: RunState | undefined;
  readonly path?: string | undefined;
  readonly mappingId?: string | undefined;
  /** Id of the last delivery of the previous page. */
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

export interface DeliveryDetails extends Omit<DeliverySummary, "runs"> {
  readonly providerDeliveryId: string | null;
  readonly idempotencyKey: string | null;
  readonly bodySha256: string;
  readonly body: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly response: HookResponse;
  readonly runs: readonly (RunStatus & { readonly action: HookAction; readonly sessionKey: string })[];
}

export interface QueueStats {
  /** Open runs by state. */
  readonly byState: Readonly<Record<string, number>>;
  /** Age of the oldest waiting run; 0: none is waiting. */
  readonly oldestQueuedMs: number;
  readonly pendingReplies: number;
  readonly pendingCallbacks: number;
}

const DELIVERY = `id, request_id AS "requestId", received_at AS "receivedAt", path, mapping_id AS "mappingId",
  auth_kind AS "authKind", auth_id AS "authId", body_bytes AS "bodyBytes", title, replay_of AS "replayOf"`;

const RUN = `runs.id, delivery_id AS "deliveryId", kind, runs.state, runs.attempts, runs.created_at AS "createdAt",
  started_at AS "startedAt", finished_at AS "finishedAt", runs.reason, answer, model, reply,
  COALESCE(reply_reason, ${waitReason("runs.id")}) AS "replyReason", callbacks.state AS callback, replay_of AS "replayOf"`;
const RUN_FROM = "FROM runs LEFT JOIN callbacks ON run_id = runs.id";

export function* listDeliveries(filter: DeliveryFilter): Transaction<DeliverySummary[]> {
  const { path = null, mappingId = null, before = null, state = null } = filter;
  const limit = Math.max(1, Math.min(filter.limit ?? 50, LIMIT_MAX));
  const rows = yield* queryAll<Omit<DeliverySummary, "runs">>(LIST, path, mappingId, before, state, limit);
  const found: DeliverySummary[] = [];
  for (const row of rows) {
    const text = "SELECT id, state, reply FROM runs WHERE delivery_id = $1 ORDER BY item";
    found.push({ ...row, runs: yield* queryAll<DeliverySummary["runs"][number]>(text, row.id) });
  }
  return found;
}

const LIST = `
  SELECT ${DELIVERY} FROM deliveries
  WHERE (CAST($1 AS TEXT) IS NULL OR path = $1) AND (CAST($2 AS TEXT) IS NULL OR mapping_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR seq < (SELECT seq FROM deliveries WHERE id = $3))
    AND (CAST($4 AS TEXT) IS NULL
      OR EXISTS (SELECT 1 FROM runs WHERE delivery_id = deliveries.id
        AND (state = $4 OR ($4 = 'failed' AND reply IN ('failed', 'unknown')))))
  ORDER BY seq DESC LIMIT $5`;

export function* findDelivery(id: string): Transaction<DeliveryDetails | undefined> {
  type Row = Omit<DeliveryDetails, "runs" | "headers" | "response"> & {
    seq: number;
    headers: string;
    response: string;
  };
  const row = yield* queryOne<Row>(
    `SELECT ${DELIVERY}, provider_delivery_id AS "providerDeliveryId", idempotency_key AS "idempotencyKey",
       body_sha256 AS "bodySha256", body, headers, response FROM deliveries WHERE id = $1`,
    id,
  );
  if (!row) return undefined;
  const runs = yield* queryAll<RunStatus & { action: string; sessionKey: string }>(
    `SELECT ${RUN}, action, session_key AS "sessionKey" ${RUN_FROM} WHERE delivery_id = $1 ORDER BY item`,
    id,
  );
  // our own JSON: acceptDelivery and insertRuns wrote it
  return {
    ...row,
    headers: JSON.parse(row.headers) as Record<string, string>,
    response: JSON.parse(row.response) as HookResponse,
    runs: runs.map((run) => ({ ...run, action: JSON.parse(run.action) as HookAction })),
  };
}

export const runStatus = (id: string): Transaction<RunStatus | undefined> =>
  queryOne<RunStatus>(`SELECT ${RUN} ${RUN_FROM} WHERE runs.id = $1`, id);

/** The endpoint and the credential of a run's request. */
export interface RunOrigin {
  readonly path: string;
  readonly authKind: string;
  readonly authId: string;
}

/** The header `traceparent` of a run's request. */
export function* traceOfRun(id: string): Transaction<string | undefined> {
  const text = "SELECT headers FROM runs JOIN deliveries ON deliveries.id = delivery_id WHERE runs.id = $1";
  const row = yield* queryOne<{ headers: string }>(text, id);
  return row && (JSON.parse(row.headers) as Partial<Record<string, string>>)["traceparent"];
}

export const runOrigin = (id: string): Transaction<RunOrigin | undefined> =>
  queryOne<RunOrigin>(
    `SELECT path, auth_kind AS "authKind", auth_id AS "authId"
     FROM runs JOIN deliveries ON deliveries.id = delivery_id WHERE runs.id = $1`,
    id,
  );

export function* stats(now: number): Transaction<QueueStats> {
  const states = yield* queryAll<{ state: string; n: number }>(
    "SELECT state, count(*) AS n FROM runs WHERE finished_at IS NULL GROUP BY state",
  );
  const oldest = yield* queryOne<{ at: number | null }>(
    "SELECT min(created_at) AS at FROM runs WHERE finished_at IS NULL AND state = 'queued'",
  );
  return {
    byState: Object.fromEntries(states.map(({ state, n }) => [state, n])),
    oldestQueuedMs: oldest?.at == null ? 0 : Math.max(0, now - oldest.at),
    pendingReplies: yield* count("SELECT count(*) AS n FROM runs WHERE reply = 'pending'"),
    pendingCallbacks: yield* count("SELECT count(*) AS n FROM callbacks WHERE state = 'pending'"),
  };
}

function* count(text: string): Transaction<number> {
  return (yield* queryOne<{ n: number }>(text))?.n ?? 0;
}
