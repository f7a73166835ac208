/**
 * Accepts requests: one transaction that, for each, either finds the answer to an earlier equal request, or stores the
 * request with a run for each of its actions. Senders are answered after the commit. It reads the data of all requests
 * at once, decides on each in order, as if it were alone, and stores all new rows at once.
 */
import { insertAll, parallel, type Transaction, type Value } from "../../../database/store.ts";
import type { HookResponse } from "./answer.ts";
import { findEarlier, type EarlierAnswers, type Found } from "./earlier.ts";
import { findItems, type KnownItems } from "./known-items.ts";
import { laneOf } from "./lane.ts";
import { openRuns, openRunsOf } from "./open-runs.ts";
import type { AcceptRequest } from "./request.ts";
import { storeRuns, type Posting } from "./posting.ts";
import { newRuns, type NewRun, type SessionKeyOf } from "./runs.ts";

export type Accepted =
  | {
      /** `replayed`: an equal request was accepted before; nothing is done again. */
      readonly kind: "accepted" | "replayed";
      readonly deliveryId: string;
      /** The ids in the answer. */
      readonly runIds: readonly string[];
      readonly response: HookResponse;
    }
  /** The key was used for another body. */
  | { readonly kind: "conflict" }
  /** `mappingId`: that mapping's share of the queue is full. */
  | { readonly kind: "full"; readonly retryAfterMs: number; readonly mappingId?: string }
  /** More new runs than the queue, or the mapping's share of it, can ever hold. */
  | { readonly kind: "too_many"; readonly limit: number };

export interface AcceptOptions {
  /** Maximum number of open runs. */
  readonly maxQueued: number;
  /** Maximum open runs of one mapping: one sender's flood leaves room for other senders. */
  readonly maxQueuedOf: (mappingId: string) => number;
  /** Lifetime of idempotency keys. */
  readonly keysMs: number;
  readonly sessionKeyOf: SessionKeyOf;
  /** Estimated time until `count` runs have ended, of a lane or of all. */
  readonly msUntil: (count: number, lane?: string) => number;
  readonly posting: () => Transaction<Posting>;
}

/** The outcome of a request. */
export interface Acceptance {
  readonly accepted: Accepted;
  /** Called after the commit. */
  readonly after: () => void;
}

/** @param requests in order of arrival */
export function* acceptDeliveries(
  requests: readonly AcceptRequest[],
  options: AcceptOptions,
): Transaction<readonly Acceptance[]> {
  const mapped = requests.filter(({ mappingId }) => mappingId !== undefined).map(laneOf);
  const [earlier, items, open, openLanes, posting] = yield* parallel(
    findEarlier(requests),
    findItems(requests),
    openRuns(),
    openRunsOf([...new Set(mapped)]),
    options.posting(),
  );
  const group = new Group({ earlier, items, open, openLanes, posting }, options);
  const accepted = requests.map((request) => group.decide(request));
  yield* group.store();
  return accepted.map((each) => ({ accepted: each, after: () => group.after(each) }));
}

interface Known {
  readonly earlier: EarlierAnswers;
  readonly items: KnownItems;
  open: number;
  readonly openLanes: Map<string, number>;
  readonly posting: Posting;
}

interface NewDelivery {
  readonly request: AcceptRequest;
  readonly id: string;
  readonly lane: string;
  /** JSON. */
  readonly response: string;
  readonly keysUntil: number;
}

/** Requests of one transaction: deciding on one takes the earlier ones into account. */
class Group {
  readonly #known: Known;
  readonly #options: AcceptOptions;
  readonly #deliveries: NewDelivery[] = [];
  readonly #runs: NewRun[] = [];
  readonly #runsOf = new Map<Accepted, readonly NewRun[]>();
  readonly #taken = new Set<NewRun>();

  constructor(known: Known, options: AcceptOptions) {
    this.#known = known;
    this.#options = options;
  }

  decide(request: AcceptRequest): Accepted {
    const { earlier, items } = this.#known;
    const found = earlier.find(request);
    if (found) return found.bodySha256 === request.bodySha256 || found.byProvider ? replayed(found) : CONFLICT;
    const lane = laneOf(request);
    const runs = items.runsOf(request);
    const fresh = runs.filter(({ isNew }) => isNew);
    const full = this.#full(fresh.length, lane, request.mappingId);
    if (full) return full;
    const { sessionKeyOf, keysMs } = this.#options;
    const { deliveryId = Bun.randomUUIDv7() } = request;
    const keysUntil = request.now + keysMs;
    const response = request.respond(runs.map(({ id }) => id));
    const mappingId = request.mappingId ?? null;
    const added = newRuns({ deliveryId, lane, mappingId, runs: fresh, sessionKeyOf, now: request.now });
    const delivery = { request, id: deliveryId, lane, response: JSON.stringify(response), keysUntil };
    earlier.add(request, { ...delivery, bodySha256: request.bodySha256 });
    items.remember(runs, { lane, until: keysUntil });
    this.#deliveries.push(delivery);
    for (const run of added) this.#add(run);
    const accepted: Accepted = { kind: "accepted", deliveryId, runIds: namedIn(response), response };
    this.#runsOf.set(accepted, added);
    return accepted;
  }

  *store(): Transaction<void> {
    const { earlier, items, posting } = this.#known;
    if (this.#deliveries.length === 0) return;
    yield* earlier.forget();
    yield* storeRuns(this.#runs, this.#taken, {
      posting,
      also: () => [items.store(), this.#insertDeliveries()],
    });
    for (const { request } of this.#deliveries) if (request.alongside) yield* request.alongside();
  }

  #insertDeliveries(): Transaction<void> {
    return insertAll({
      table: "deliveries",
      columns: COLUMNS,
      rows: this.#deliveries.map((each) => this.#rowOf(each)),
    });
  }

  after(accepted: Accepted): void {
    const runs = this.#runsOf.get(accepted);
    if (runs) this.#known.posting.after(runs, this.#isOver);
  }

  readonly #isOver = (run: NewRun): boolean => this.#taken.has(run);

  /** @param count of new runs: items that were sent before need no room */
  #full(count: number, lane: string, mappingId: string | undefined): Accepted | undefined {
    const { maxQueued, maxQueuedOf, msUntil } = this.#options;
    const share = mappingId === undefined ? maxQueued : Math.min(maxQueuedOf(mappingId), maxQueued);
    if (count > share) return { kind: "too_many", limit: share };
    const over = this.#known.open + count - maxQueued;
    if (over > 0) return { kind: "full", retryAfterMs: msUntil(over) };
    if (mappingId === undefined) return undefined;
    const ownOver = (this.#known.openLanes.get(lane) ?? 0) + count - share;
    return ownOver > 0 ? { kind: "full", retryAfterMs: msUntil(ownOver, lane), mappingId } : undefined;
  }

  #add(run: NewRun): void {
    this.#runs.push(run);
    if (this.#known.posting.take(run)) {
      this.#taken.add(run);
      return;
    }
    const { openLanes } = this.#known;
    this.#known.open++;
    openLanes.set(run.lane, (openLanes.get(run.lane) ?? 0) + 1);
  }

  #rowOf({ request, id, lane, response, keysUntil }: NewDelivery): Value[] {
    const { earlier } = this.#known;
    const { requestId, now, path, mappingId = null, auth, bodySha256, bodyBytes, rawBody = null, headers } = request;
    const providerId = earlier.hasForgotten("provider_delivery_id", id) ? null : (request.providerDeliveryId ?? null);
    const key = earlier.hasForgotten("idempotency_key", id) ? null : (request.idempotencyKey ?? null);
    const who = [lane, mappingId, auth.kind, auth.id, providerId, key, keysUntil];
    const what = [bodySha256, bodyBytes, rawBody, JSON.stringify(headers), response, request.title ?? null];
    return [id, requestId, now, path, ...who, ...what];
  }
}

const COLUMNS = `id request_id received_at path lane mapping_id auth_kind auth_id provider_delivery_id idempotency_key
  keys_until body_sha256 body_bytes body headers response title`.split(/\s+/);

const CONFLICT: Accepted = { kind: "conflict" };

function replayed({ id, response }: Found): Accepted {
  const earlier = JSON.parse(response) as HookResponse; // this file wrote it
  return { kind: "replayed", deliveryId: id, runIds: namedIn(earlier), response: earlier };
}

/** For items that were sent before, the runs of earlier requests. */
const namedIn = ({ body: { runId, runIds = [runId] } }: HookResponse): readonly string[] => runIds;
