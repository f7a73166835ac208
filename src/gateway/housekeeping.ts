/** Once an hour, on one node, deletes deliveries, messages and unused sessions past their retention. */
import { mainSessionKey } from "../agent/session-key.ts";
import { pruneSessions } from "../agent/sessions.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Lease } from "../base/peers.ts";
import type { Store } from "../base/store.ts";
import { pruneOutbox } from "../channels/outbox/messages.ts";
import type { Deliveries } from "../hooks/deliveries/deliveries.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

const EVERY_MS = 3_600_000;
const FIRST_MS = 60_000; // not while everything else starts
const DAY_MS = 24 * 3_600_000;
const BATCH = 200;

export interface HousekeepingParts {
  readonly store: Store;
  readonly deliveries: Pick<Deliveries, "prune">;
  readonly snapshot: () => GatewaySnapshot;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Returns what ends it. */
export function keepHouse(parts: HousekeepingParts, lease: Lease): () => void {
  let cancel = parts.clock.after(FIRST_MS, round);
  let isOver = false;
  function round(): void {
    void (lease.isHeld ? tidy(parts) : Promise.resolve())
      .catch((error: unknown) => parts.log.error("what is old cannot be forgotten", { error: messageOf(error) }))
      .then(() => {
        if (!isOver) cancel = parts.clock.after(EVERY_MS, round);
      });
  }
  return () => {
    isOver = true;
    cancel();
  };
}

/** One round. */
export async function tidy({ store, deliveries, snapshot, clock, log }: HousekeepingParts): Promise<void> {
  const { hooks, session } = snapshot();
  const now = clock.now();
  const runs = await deliveries.prune();
  const messages = await inBatches(() => store.write(() => pruneOutbox(now - hooks.queue.retentionDays * DAY_MS)));
  const { idleExpiry } = session;
  const idle = { idleSince: now - idleExpiry, keep: [mainSessionKey(session)], limit: BATCH };
  const sessions = idleExpiry === 0 ? 0 : await inBatches(() => store.write(() => pruneSessions(idle)));
  if (runs + messages + sessions > 0) log.info("old records are forgotten", { deliveries: runs, messages, sessions });
}

/** Until nothing goes any more; between two batches others have their turn. */
async function inBatches(prune: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let gone = await prune(); gone > 0; gone = await prune()) total += gone;
  return total;
}
