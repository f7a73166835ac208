/** The state of a gateway: numbers for probes, monitoring and pages. */
import { statfs } from "node:fs/promises";
import type { Heartbeat } from "../agent/heartbeat.ts";
import { AppError } from "../../base/index.ts";
import { execute, type Store } from "../database/store.ts";
import { outboxStats } from "../channels/outbox/messages.ts";
import type { Deliveries } from "../hooks/queue/deliveries/deliveries.ts";
import { briefOf, type MailBrief, type MailStatus } from "../hooks/mail/status.ts";
import type { Worker } from "../hooks/queue/worker/worker.ts";
import { sendsToLast } from "./audit-delivery.ts";
import type { GatewaySnapshot } from "./snapshot.ts";
import type { Storage } from "./storage.ts";

export interface GatewayStatus {
  /** Runs. */
  readonly queued: number;
  readonly running: number;
  /** Age of the oldest waiting run; 0: none is waiting. */
  readonly oldestMs: number;
  /** Replies and callbacks not delivered yet, and messages of replies. */
  readonly replies: number;
  readonly callbacks: number;
  readonly messages: number;
  /** Present: turns are paused. */
  readonly paused?: true;
  /** Present: the heartbeat's answers have no target. */
  readonly heartbeat?: "unheard";
  /** Absent: no mailbox is watched. */
  readonly mail?: MailBrief;
  /** Problems for an operator to fix, one line each, without paths and secrets. Absent: none. */
  readonly findings?: readonly string[];
}

export async function statusOf({
  store,
  deliveries,
  heartbeat,
  mail,
  worker,
  snapshot,
  liveFindings,
}: {
  store: Store;
  deliveries: Pick<Deliveries, "stats">;
  heartbeat: Pick<Heartbeat, "isUnheard">;
  mail: MailStatus | undefined;
  worker: Pick<Worker, "isPaused">;
  snapshot: () => GatewaySnapshot;
  liveFindings: () => Promise<readonly string[]>;
}): Promise<GatewayStatus> {
  const {
    byState,
    oldestQueuedMs: oldestMs,
    pendingReplies: replies,
    pendingCallbacks: callbacks,
  } = await deliveries.stats();
  const { queued, sending } = await store.read(outboxStats);
  const findings = await liveFindings();
  const brief = {
    ...(worker.isPaused ? { paused: true as const } : {}),
    ...(sendsToLast(snapshot()) && (await heartbeat.isUnheard()) ? { heartbeat: "unheard" as const } : {}),
    ...(mail ? { mail: briefOf(mail) } : {}),
    ...(findings.length > 0 ? { findings } : {}),
  };
  const { queued: waiting = 0, running = 0 } = byState;
  return { queued: waiting, running, oldestMs, replies, callbacks, messages: queued + sending, ...brief };
}

/** With less free space the next commits fail. */
const FREE_BYTES_MIN = 1024 * 1024;

/**
 * Rejects with `storage` if the database cannot be written, judged by its last commit, the disk, or the server. Writes
 * only after a failed commit, to test whether the next would succeed.
 */
export async function checkWritable(
  store: Store,
  { folder, checkServer }: Pick<Storage, "folder" | "checkServer">,
): Promise<void> {
  if (store.failure) await store.write(() => execute("UPDATE open_runs SET n = n"));
  await checkServer?.();
  if (folder === undefined) return;
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < FREE_BYTES_MIN) throw new AppError("storage", `the disk of '${folder}' is full`);
}
