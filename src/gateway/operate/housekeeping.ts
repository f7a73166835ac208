/**
 * Once an hour, on one node, deletes deliveries, messages, unused sessions, and entries of transcripts that nothing
 * reads, past their retention.
 */
import { mainSessionKey } from "../agent/session-key.ts";
import { longSessions, pruneEntries, pruneSessions } from "../agent/sessions.ts";
import { type Clock, type Logger, messageOf } from "../../base/index.ts";
import type { Lease } from "../database/peers.ts";
import type { Store } from "../database/store.ts";
import { pruneOutbox } from "../channels/outbox/messages.ts";
import type { Deliveries } from "../hooks/queue/deliveries/deliveries.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

const EVERY_MS = 3_600_000;
const FIRST_MS = 60_000; // after the busy start
const DAY_MS = 24 * 3_600_000;
const BATCH = 200;

export interface HousekeepingParts {
  readonly store: Store;
  readonly deliveries: Pick<Deliveries, "prune">;
  readonly snapshot: () => GatewaySnapshot;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Returns a function that stops it and waits for the current round. */
export function keepHouse(parts: HousekeepingParts, lease: Lease): () => Promise<void> {
  let cancel = parts.clock.after(FIRST_MS, round);
  const over = new AbortController();
  let running = Promise.resolve();
  function round(): void {
    running = (lease.isHeld ? tidy(parts, over.signal) : Promise.resolve())
      .catch((error: unknown) => parts.log.error("deleting old records failed", { error: messageOf(error) }))
      .then(() => {
        if (!over.signal.aborted) cancel = parts.clock.after(EVERY_MS, round);
      });
  }
  return () => {
    over.abort();
    cancel();
    return running;
  };
}

/** One round; the signal ends it after the current batch. */
export async function tidy(parts: HousekeepingParts, signal?: AbortSignal): Promise<void> {
  const { store, deliveries, snapshot, clock, log } = parts;
  const { hooks, session } = snapshot();
  const now = clock.now();
  const runs = await deliveries.prune(signal);
  const before = now - hooks.queue.retentionDays * DAY_MS;
  const messages = await inBatches(signal, () => store.write(() => pruneOutbox(before)));
  const { idleExpiry } = session;
  const idle = { idleSince: now - idleExpiry, keep: [mainSessionKey(session)], limit: BATCH };
  const sessions = idleExpiry === 0 ? 0 : await inBatches(signal, () => store.write(() => pruneSessions(idle)));
  let entries = 0;
  for (const sessionKey of await store.read(longSessions)) {
    const old = { sessionKey, before, limit: BATCH };
    entries += await inBatches(signal, () => store.write(() => pruneEntries(old)));
  }
  if (runs + messages + sessions + entries > 0) {
    log.info("deleted old records", { deliveries: runs, messages, sessions, entries });
  }
}

/** Repeats until nothing is left to delete, or the signal aborts; yields to other writes between batches. */
async function inBatches(signal: AbortSignal | undefined, prune: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let gone = 1; gone > 0 && !signal?.aborted; total += gone) gone = await prune();
  return total;
}
