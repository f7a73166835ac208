/**
 * Takes a request in: one transaction that either finds the answer an equal request already got, or stores the request
 * with a run for each of its actions. The sender is answered after the commit.
 */
import type { Database } from "../../base/database.ts";
import type { HookAction } from "../action.ts";
import type { HookResponse } from "./answer.ts";
import { laneOf } from "./lane.ts";
import { rememberItems, runsOfItems } from "./items.ts";
import { insertRuns, type SessionKeyOf } from "./runs.ts";

/** A request that is authentic and valid. */
export interface AcceptRequest {
  readonly requestId: string;
  /** Relative to the ingress, normalized. */
  readonly path: string;
  /** Absent: a fixed endpoint. */
  readonly mappingId?: string | undefined;
  /** Which credential it came with; never the credential. */
  readonly auth: { readonly kind: string; readonly id: string };
  readonly idempotencyKey?: string | undefined;
  /** The sender's own id of this delivery, from a verified request. */
  readonly providerDeliveryId?: string | undefined;
  /** Hex. */
  readonly bodySha256: string;
  readonly bodyBytes: number;
  /** Absent: not kept. */
  readonly rawBody?: Uint8Array | undefined;
  /** Only what may be kept: no credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly actions: readonly HookAction[];
  /** Epoch milliseconds. */
  readonly now: number;
  /** @param runIds one for each action, in order; of an item that was sent before, its first */
  readonly respond: (runIds: readonly string[]) => HookResponse;
  /** What is to be written together with the acceptance, or not at all. */
  readonly alongside?: (db: Database) => void;
}

export type Accepted =
  | {
      /** `replayed`: an equal request was accepted before, and nothing happens again. */
      readonly kind: "accepted" | "replayed";
      readonly deliveryId: string;
      /** As the answer names them. */
      readonly runIds: readonly string[];
      readonly response: HookResponse;
    }
  /** The key was used for another body. */
  | { readonly kind: "conflict" }
  /** `mappingId`: it is that mapping's share of the queue. */
  | { readonly kind: "full"; readonly retryAfterMs: number; readonly mappingId?: string }
  /** More new runs than the queue, or the mapping's share of it, ever holds. */
  | { readonly kind: "too_many"; readonly limit: number };

export interface AcceptOptions {
  /** Open runs at most. */
  readonly maxQueued: number;
  /** Of those, open runs of one mapping at most: one sender's flood leaves room for the others. */
  readonly maxQueuedOf: (mappingId: string) => number;
  /** How long keys are remembered. */
  readonly keysMs: number;
  readonly sessionKeyOf: SessionKeyOf;
  /** Until so many runs will have ended, of a lane or of all. */
  readonly msUntil: (count: number, lane?: string) => number;
}

/** Call inside a transaction. */
export function acceptDelivery(db: Database, request: AcceptRequest, options: AcceptOptions): Accepted {
  forgetKeys(db, request);
  const earlier = findEarlier(db, request);
  if (earlier) return earlier.bodySha256 === request.bodySha256 || earlier.byProvider ? replayed(earlier) : CONFLICT;
  const lane = laneOf(request);
  const runs = runsOfItems(db, request.actions, { lane, now: request.now });
  const fresh = runs.filter(({ isNew }) => isNew);
  const full = findFull(db, { count: fresh.length, lane, mappingId: request.mappingId }, options);
  if (full) return full;
  const deliveryId = Bun.randomUUIDv7();
  const keysUntil = request.now + options.keysMs;
  rememberItems(db, runs, { lane, until: keysUntil });
  const response = request.respond(runs.map(({ id }) => id));
  insertDelivery(db, request, { deliveryId, lane, response, keysUntil });
  insertRuns(db, {
    deliveryId,
    lane,
    mappingId: request.mappingId ?? null,
    runs: fresh,
    sessionKeyOf: options.sessionKeyOf,
    now: request.now,
  });
  request.alongside?.(db);
  return { kind: "accepted", deliveryId, runIds: namedIn(response), response };
}

const CONFLICT: Accepted = { kind: "conflict" };

/** Runs that are not final: waiting or running. */
export const openRuns = (db: Database): number => db.query<{ n: number }, []>("SELECT n FROM open_runs").get()?.n ?? 0;

/** Runs of a lane that are not final. */
const openRunsOf = (db: Database, lane: string): number =>
  db.query<{ n: number }, [string]>("SELECT n FROM open_lanes WHERE lane = ?").get(lane)?.n ?? 0;

/** @param count of new runs: items that were sent before need no room */
function findFull(
  db: Database,
  { count, lane, mappingId }: { count: number; lane: string; mappingId: string | undefined },
  { maxQueued, maxQueuedOf, msUntil }: AcceptOptions,
): Accepted | undefined {
  const share = mappingId === undefined ? maxQueued : Math.min(maxQueuedOf(mappingId), maxQueued);
  if (count > share) return { kind: "too_many", limit: share };
  const over = openRuns(db) + count - maxQueued;
  if (over > 0) return { kind: "full", retryAfterMs: msUntil(over) };
  if (mappingId === undefined) return undefined;
  const ownOver = openRunsOf(db, lane) + count - share;
  return ownOver > 0 ? { kind: "full", retryAfterMs: msUntil(ownOver, lane), mappingId } : undefined;
}

/** What was accepted under these keys too long ago no longer answers for them. */
function forgetKeys(db: Database, { auth, path, idempotencyKey, providerDeliveryId, mappingId, now }: AcceptRequest) {
  if (idempotencyKey !== undefined) {
    db.query(
      `UPDATE deliveries SET idempotency_key = NULL
       WHERE auth_kind = ? AND auth_id = ? AND path = ? AND idempotency_key = ? AND keys_until <= ?`,
    ).run(auth.kind, auth.id, path, idempotencyKey, now);
  }
  if (providerDeliveryId !== undefined) {
    db.query(
      `UPDATE deliveries SET provider_delivery_id = NULL
       WHERE lane = ? AND provider_delivery_id = ? AND keys_until <= ?`,
    ).run(laneOf({ mappingId, path }), providerDeliveryId, now);
  }
}

interface Earlier {
  readonly id: string;
  readonly bodySha256: string;
  readonly response: string;
  readonly byProvider: boolean;
}

function findEarlier(db: Database, request: AcceptRequest): Earlier | undefined {
  const { auth, path, idempotencyKey, providerDeliveryId } = request;
  const columns = "SELECT id, body_sha256 AS bodySha256, response FROM deliveries";
  type Row = Omit<Earlier, "byProvider">;
  if (idempotencyKey !== undefined) {
    const found = db
      .query<Row, string[]>(`${columns} WHERE auth_kind = ? AND auth_id = ? AND path = ? AND idempotency_key = ?`)
      .get(auth.kind, auth.id, path, idempotencyKey);
    if (found) return { ...found, byProvider: false };
  }
  if (providerDeliveryId !== undefined) {
    const found = db
      .query<Row, string[]>(`${columns} WHERE lane = ? AND provider_delivery_id = ?`)
      .get(laneOf(request), providerDeliveryId);
    if (found) return { ...found, byProvider: true };
  }
  return undefined;
}

function replayed({ id, response }: Earlier): Accepted {
  const earlier = JSON.parse(response) as HookResponse; // written below
  return { kind: "replayed", deliveryId: id, runIds: namedIn(earlier), response: earlier };
}

/** Of items that were sent before, the runs of earlier requests. */
const namedIn = ({ body: { runId, runIds = [runId] } }: HookResponse): readonly string[] => runIds;

interface Stored {
  readonly deliveryId: string;
  readonly lane: string;
  readonly response: HookResponse;
  readonly keysUntil: number;
}

function insertDelivery(db: Database, request: AcceptRequest, stored: Stored): void {
  db.query(
    `INSERT INTO deliveries (id, request_id, received_at, path, lane, mapping_id, auth_kind, auth_id,
       provider_delivery_id, idempotency_key, keys_until, body_sha256, body_bytes, body, headers, response)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    stored.deliveryId,
    request.requestId,
    request.now,
    request.path,
    stored.lane,
    request.mappingId ?? null,
    request.auth.kind,
    request.auth.id,
    request.providerDeliveryId ?? null,
    request.idempotencyKey ?? null,
    stored.keysUntil,
    request.bodySha256,
    request.bodyBytes,
    request.rawBody ?? null,
    JSON.stringify(request.headers),
    JSON.stringify(stored.response),
  );
}
