/**
 * What was accepted, for the rest of the program: taking requests in, looking at them, running them again, and
 * forgetting them when they are old. Every promise resolves after its commit is durable.
 */
import type { Database, Writer } from "../../base/database.ts";
import { acceptDelivery, type Accepted, type AcceptRequest } from "./accept.ts";
import { Pace } from "./pace.ts";
import { pruneDeliveries } from "./prune.ts";
import { findDelivery, listDeliveries, runStatus, stats } from "./queries.ts";
import type { DeliveryDetails, DeliveryFilter, DeliverySummary, QueueStats } from "./queries.ts";
import type { RunStatus } from "./run-status.ts";
import type { SessionKeyOf } from "./runs.ts";
import { replayDelivery, type Replayed } from "./replay.ts";

/** Settings as they are now: asked for at every use, because the configuration can change. */
export interface DeliverySettings {
  /** Open runs at most. */
  readonly maxQueued: number;
  /** Of those, open runs of one mapping at most. */
  readonly maxQueuedOf: (mappingId: string) => number;
  /** How long idempotency keys and senders' delivery ids are remembered. */
  readonly keysMs: number;
  /** How long what is over is kept. */
  readonly retentionMs: number;
}

export interface DeliveriesDeps {
  readonly db: Database;
  readonly writer: Writer;
  readonly settings: () => DeliverySettings;
  readonly sessionKeyOf: SessionKeyOf;
  /** Called in a transaction that left something to do; what it returns, after the commit. */
  readonly onQueued: (db: Database) => () => void;
  readonly now: () => number;
}

export interface Deliveries {
  /** Resolves after the commit. Rejects with `storage` where nothing can be written. */
  accept(request: AcceptRequest): Promise<Accepted>;
  /** Newest first. */
  list(filter: DeliveryFilter): DeliverySummary[];
  find(id: string): DeliveryDetails | undefined;
  run(id: string): RunStatus | undefined;
  /** Runs the actions of a delivery, or of one of its runs, again. Throws `not_found`, `conflict` or `busy`. */
  replay(id: string): Promise<Replayed>;
  stats(): QueueStats;
  /** A run of this lane is over: so fast there is room for others. */
  ended(lane: string): void;
  /** Forgets what is over and old enough; returns how many deliveries went. */
  prune(): Promise<number>;
}

export function makeDeliveries(deps: DeliveriesDeps): Deliveries {
  const { db, writer, settings, sessionKeyOf, now } = deps;
  const pace = new Pace(now);
  const msUntil = (count: number, lane?: string): number => pace.msUntil(count, lane);
  /** @param work returns what it came to, and whether that left something to do */
  const queue = async <T>(work: (at: Database) => readonly [result: T, hasQueued: boolean]): Promise<T> => {
    const { result, after } = await writer.write((at) => {
      const [result, hasQueued] = work(at);
      return { result, after: hasQueued ? deps.onQueued(at) : undefined };
    });
    after?.();
    return result;
  };
  return {
    accept: (request) =>
      queue((at) => {
        const accepted = acceptDelivery(at, request, { ...settings(), sessionKeyOf, msUntil });
        return [accepted, accepted.kind === "accepted"];
      }),
    list: (filter) => listDeliveries(db, filter),
    find: (id) => findDelivery(db, id),
    run: (id) => runStatus(db, id),
    replay: (id) =>
      queue((at) => {
        const { maxQueued } = settings();
        return [replayDelivery(at, id, { now: now(), maxQueued, sessionKeyOf, msUntil }), true];
      }),
    ended: (lane) => pace.ended(lane),
    stats: () => stats(db, now()),
    prune: () => pruneDeliveries(writer, { now: now(), retentionMs: settings().retentionMs }),
  };
}
