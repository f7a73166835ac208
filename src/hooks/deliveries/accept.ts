/**
 * Takes a request in: one transaction that either finds the answer an equal request already got, or stores the request
 * with a run for each of its actions. The sender is answered after the commit.
 */
import { execute, queryOne, type Script } from "../../base/store.ts";
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
  readonly alongside?: () => Script<void>;
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

export function* acceptDelivery(request: AcceptRequest, options: AcceptOptions): Script<Accepted> {
  yield* forgetKeys(request);
  const earlier = yield* findEarlier(request);
  if (earlier) return earlier.bodySha256 === request.bodySha256 || earlier.byProvider ? replayed(earlier) : CONFLICT;
  const lane = laneOf(request);
  const runs = yield* runsOfItems(request.actions, { lane, now: request.now });
  const fresh = runs.filter(({ isNew }) => isNew);
  const full = yield* findFull({ count: fresh.length, lane, mappingId: request.mappingId }, options);
  if (full) return full;
  const deliveryId = Bun.randomUUIDv7();
  const keysUntil = request.now + options.keysMs;
  yield* rememberItems(runs, { lane, until: keysUntil });
  const response = request.respond(runs.map(({ id }) => id));
  yield* insertDelivery(request, { deliveryId, lane, response, keysUntil });
  yield* insertRuns({
    deliveryId,
    lane,
    mappingId: request.mappingId ?? null,
    runs: fresh,
    sessionKeyOf: options.sessionKeyOf,
    now: request.now,
  });
  if (request.alongside) yield* request.alongside();
  return { kind: "accepted", deliveryId, runIds: namedIn(response), response };
}

const CONFLICT: Accepted = { kind: "conflict" };

/** Runs that are not final: waiting or running. */
export function* openRuns(): Script<number> {
  return (yield* queryOne<{ n: number }>("SELECT n FROM open_runs"))?.n ?? 0;
}

/** Runs of a lane that are not final. */
function* openRunsOf(lane: string): Script<number> {
  return (yield* queryOne<{ n: number }>("SELECT n FROM open_lanes WHERE lane = $1", lane))?.n ?? 0;
}

/** @param count of new runs: items that were sent before need no room */
function* findFull(
  { count, lane, mappingId }: { count: number; lane: string; mappingId: string | undefined },
  { maxQueued, maxQueuedOf, msUntil }: AcceptOptions,
): Script<Accepted | undefined> {
  const share = mappingId === undefined ? maxQueued : Math.min(maxQueuedOf(mappingId), maxQueued);
  if (count > share) return { kind: "too_many", limit: share };
  const over = (yield* openRuns()) + count - maxQueued;
  if (over > 0) return { kind: "full", retryAfterMs: msUntil(over) };
  if (mappingId === undefined) return undefined;
  const ownOver = (yield* openRunsOf(lane)) + count - share;
  return ownOver > 0 ? { kind: "full", retryAfterMs: msUntil(ownOver, lane), mappingId } : undefined;
}

/** What was accepted under these keys too long ago no longer answers for them. */
function* forgetKeys(request: AcceptRequest): Script<void> {
  const { auth, path, idempotencyKey, providerDeliveryId, now } = request;
  if (idempotencyKey !== undefined) {
    yield* execute(
      `UPDATE deliveries SET idempotency_key = NULL
       WHERE auth_kind = $1 AND auth_id = $2 AND path = $3 AND idempotency_key = $4 AND keys_until <= $5`,
      auth.kind,
      auth.id,
      path,
      idempotencyKey,
      now,
    );
  }
  if (providerDeliveryId !== undefined) {
    yield* execute(
      `UPDATE deliveries SET provider_delivery_id = NULL
       WHERE lane = $1 AND provider_delivery_id = $2 AND keys_until <= $3`,
      laneOf(request),
      providerDeliveryId,
      now,
    );
  }
}

interface Earlier {
  readonly id: string;
  readonly bodySha256: string;
  readonly response: string;
  readonly byProvider: boolean;
}

function* findEarlier(request: AcceptRequest): Script<Earlier | undefined> {
  const { auth, path, idempotencyKey, providerDeliveryId } = request;
  const columns = 'SELECT id, body_sha256 AS "bodySha256", response FROM deliveries';
  type Row = Omit<Earlier, "byProvider">;
  if (idempotencyKey !== undefined) {
    const found = yield* queryOne<Row>(
      `${columns} WHERE auth_kind = $1 AND auth_id = $2 AND path = $3 AND idempotency_key = $4`,
      auth.kind,
      auth.id,
      path,
      idempotencyKey,
    );
    if (found) return { ...found, byProvider: false };
  }
  if (providerDeliveryId !== undefined) {
    const text = `${columns} WHERE lane = $1 AND provider_delivery_id = $2`;
    const found = yield* queryOne<Row>(text, laneOf(request), providerDeliveryId);
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

const insertDelivery = (request: AcceptRequest, stored: Stored): Script<number> =>
  execute(
    `INSERT INTO deliveries (id, request_id, received_at, path, lane, mapping_id, auth_kind, auth_id,
       provider_delivery_id, idempotency_key, keys_until, body_sha256, body_bytes, body, headers, response)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
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
