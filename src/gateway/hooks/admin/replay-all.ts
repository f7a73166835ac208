/**
 * Repeats all runs that were given up, or all replies that failed, in pages. Each is repeated at most once, however
 * often an operator asks, and repeated runs take at most half of the queue.
 */
import { AppError } from "../../../base/index.ts";
import type { Deliveries } from "../queue/deliveries/deliveries.ts";
import type { ReplayFilter } from "../queue/deliveries/replayable.ts";
import type { Worker } from "../queue/worker/worker.ts";

const WAIT_MS = 1000;

export interface ReplayedPage {
  /** Number of runs that matched, on this page and later ones. */
  readonly found: number;
  readonly replayed: number;
  readonly skipped: readonly { readonly runId: string; readonly reason: string }[];
  /** Value of `after` for the next page; null: this is the last. */
  readonly next: string | null;
  /** Wait time before the next page, while the queue has no room; else null. */
  readonly retryAfterMs: number | null;
}

export interface ReplayAllParts {
  readonly deliveries: Pick<Deliveries, "replayable" | "replay">;
  readonly worker: Pick<Worker, "resend">;
}

/** Only counts if `isDryRun`. */
export async function replayAll(
  { deliveries, worker }: ReplayAllParts,
  { isDryRun, ...filter }: ReplayFilter & { readonly isDryRun: boolean },
): Promise<ReplayedPage> {
  const { found, runIds } = await deliveries.replayable(filter);
  const skipped: { runId: string; reason: string }[] = [];
  if (isDryRun) return { found, replayed: 0, skipped, next: null, retryAfterMs: null };
  let replayed = 0;
  for (const [i, runId] of runIds.entries()) {
    try {
      await (filter.what === "dead" ? deliveries.replay(runId, { isOneOfMany: true }) : worker.resend(runId));
      replayed++;
    } catch (error) {
      if (!(error instanceof AppError) || error.code === "storage") throw error;
      if (error.code === "busy") {
        const retryAfterMs = error.retryAfterMs ?? WAIT_MS;
        return { found, replayed, skipped, next: runIds[i - 1] ?? filter.after ?? "", retryAfterMs };
      }
      skipped.push({ runId, reason: error.message });
    }
  }
  return { found, replayed, skipped, next: found > runIds.length ? runIds.at(-1)! : null, retryAfterMs: null };
}
