/** What a gateway is at: numbers for probes, monitoring and pages. */
import { statfs } from "node:fs/promises";
import type { Database, Writer } from "../base/database.ts";
import { AppError } from "../base/errors.ts";
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

/** Less than this and the next commits fail. */
const FREE_BYTES_MIN = 1024 * 1024;

/**
 * Rejects with `storage` where the database cannot be written: as its last commit says, or the disk. Writes only after
 * a commit that failed, to see whether the next would.
 * @param home the database's folder
 */
export async function checkWritable(writer: Writer, home: string): Promise<void> {
  if (writer.failure) await writer.write((db) => void db.run("UPDATE open_runs SET n = n"));
  const { bavail, bsize } = await statfs(home);
  if (bavail * bsize < FREE_BYTES_MIN) throw new AppError("storage", `the disk of '${home}' is full`);
}
