/**
 * Deliveries, for the rest of the program: accepts, lists, replays and prunes them. Every promise resolves after its
 * commit is durable.
 */
import type { Transaction, Store } from "../../../database/store.ts";
import { acceptDeliveries, type Accepted, type AcceptOptions } from "./accept.ts";
import type { Posting } from "./posting.ts";
import type { AcceptRequest } from "./request.ts";
import { EndRate } from "./end-rate.ts";
import { pruneDeliveries } from "./prune.ts";
import { findDelivery, listDeliveries, runStatus, stats } from "./queries.ts";
import type { DeliveryDetails, DeliveryFilter, DeliverySummary, QueueStats } from "./queries.ts";
import type { RunStatus } from "./run-status.ts";
import type { SessionKeyOf } from "./runs.ts";
import { replayDelivery, type Replayed, type ReplayOptions } from "./replay.ts";
import { findReplayable, type Replayable, type ReplayFilter } from "./replayable.ts";

/** The current settings; read at every use, because the configuration can change. */
export interface DeliverySettings {
  /** Maximum number of open runs. */
  readonly maxQueued: number;
  /** Maximum number of open runs of one mapping. */
  readonly maxQueuedOf: (mappingId: string) => number;
  /** Lifetime of idempotency keys and senders' delivery ids. */
  readonly keysMs: number;
  /** Retention of finished deliveries. */
  readonly retentionMs: number;
}

export interface DeliveriesDeps {
  readonly store: Store;
  readonly settings: () => DeliverySettings;
  readonly sessionKeyOf: SessionKeyOf;
  /** Called for each transaction that makes runs. */
  readonly posting: () => Transaction<Posting>;
  readonly now: () => number;
  /** Number of nodes that share this queue; absent: one. */
  readonly nodes?: () => number;
}

export interface Deliveries {
  /** Resolves after the commit. Rejects with `storage` if the database cannot be written. */
  accept(request: AcceptRequest): Promise<Accepted>;
  /** Newest first. */
  list(filter: DeliveryFilter): Promise<DeliverySummary[]>;
  find(id: string): Promise<DeliveryDetails | undefined>;
  run(id: string): Promise<RunStatus | undefined>;
  /** Runs the actions of a delivery, or of one of its runs, again. Throws `not_found`, `conflict` or `busy`. */
  replay(id: string, options?: Partial<Pick<ReplayOptions, "isOneOfMany">>): Promise<Replayed>;
  replayable(filter: ReplayFilter): Promise<Replayable>;
  stats(): Promise<QueueStats>;
  /** Records the end of a run of this lane, for the estimate of free room. */
  ended(lane: string): void;
  /** Deletes old finished deliveries, until the signal ends it; returns their number. */
  prune(signal?: AbortSignal): Promise<number>;
}

export function makeDeliveries(deps: DeliveriesDeps): Deliveries {
  const { store, settings, sessionKeyOf, posting, now, nodes } = deps;
  const rate = new EndRate(now, nodes);
  const msUntil = (count: number, lane?: string): number => rate.msUntil(count, lane);
  const options = (): AcceptOptions => {
    return { ...settings(), sessionKeyOf, msUntil, posting };
  };
  const acceptAll = (requests: readonly AcceptRequest[]) => acceptDeliveries(requests, options());
  return {
    async accept(request) {
      const known = { ...request, deliveryId: Bun.randomUUIDv7() };
      const { accepted, after } = await store.writeEach(acceptAll, known);
      after();
      return accepted;
    },
    list: (filter) => store.read(() => listDeliveries(filter)),
    find: (id) => store.read(() => findDelivery(id)),
    run: (id) => store.read(() => runStatus(id)),
    replayable: (filter) => store.read(() => findReplayable(filter)),
    async replay(id, { isOneOfMany = false } = {}) {
      const replaying = { maxQueued: settings().maxQueued, sessionKeyOf, msUntil, posting, isOneOfMany };
      const { replayed, after } = await store.write(() => replayDelivery(id, { now: now(), ...replaying }));
      after();
      return replayed;
    },
    ended: (lane) => rate.ended(lane),
    stats: () => store.read(() => stats(now())),
    prune: (signal) => pruneDeliveries(store, { now: now(), retentionMs: settings().retentionMs, signal }),
  };
}
