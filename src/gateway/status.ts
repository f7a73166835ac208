/** What a gateway is at: numbers for probes, monitoring and pages. */
import type { Database } from "../base/database.ts";
import { outboxStats } from "../channels/outbox/messages.ts";
import type { Deliveries } from "../hooks/deliveries/deliveries.ts";
import { briefOf, type MailBrief, type MailStatus } from "../hooks/mail/status.ts";

export interface GatewayStatus {
  /** Runs. */
  readonly queued: number;
  readonly running: number;
  /** Age of the oldest run that waits; 0: none does. */
  readonly oldestMs: number;
  /** Replies and callbacks that are not delivered yet, and messages of replies. */
  readonly replies: number;
  readonly callbacks: number;
  readonly messages: number;
  /** Absent: no mailbox is listened to. */
  readonly mail?: MailBrief;
}

export function statusOf(
  db: Database,
  { deliveries, mail }: { deliveries: Pick<Deliveries, "stats">; mail: MailStatus | undefined },
): GatewayStatus {
  const {
    byState,
    oldestQueuedMs: oldestMs,
    pendingReplies: replies,
    pendingCallbacks: callbacks,
  } = deliveries.stats();
  const { queued, sending } = outboxStats(db);
  const brief = mail ? { mail: briefOf(mail) } : {};
  const { queued: waiting = 0, running = 0 } = byState;
  return { queued: waiting, running, oldestMs, replies, callbacks, messages: queued + sending, ...brief };
}

/** Writes, and changes nothing. */
export const touch = (db: Database): void => void db.run("UPDATE open_runs SET n = n");
