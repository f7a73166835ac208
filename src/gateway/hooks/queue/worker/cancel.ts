/** Cancels a run on request: a waiting one, a running one, or a reply that has not left yet. */
import { execute, type Transaction } from "../../../database/store.ts";
import { findRun, type Run } from "../deliveries/runs.ts";
import { isFinal } from "../deliveries/state.ts";
import { giveUp, type Context } from "./conclude.ts";
import type { WorkerPorts } from "./ports.ts";

/**
 * The result of a cancellation. `stopping`: the model, or the sending of the reply, ends soon. `recalled`: the turn had
 * ended, and the reply is not sent. `over`: there was nothing left to cancel.
 */
export type Cancelled = "cancelled" | "stopping" | "recalled" | "over";

/** Ends a waiting run, or returns the remaining task: `replying` means to recall its reply. */
export function* cancelRun(
  runId: string,
  context: Context,
): Transaction<Run | "stopping" | "replying" | "over" | undefined> {
  const run = yield* findRun(runId);
  if (!run) return undefined;
  const hasTurned = isFinal(run.state) || (run.step === "event" && run.action.kind === "agent");
  if (hasTurned && run.reply !== "pending") return "over";
  if (!hasTurned && run.state !== "running") {
    return yield* giveUp(run, { outcome: "cancelled", reason: "cancelled before it ran" }, context);
  }
  yield* execute("UPDATE runs SET cancel_at = $1 WHERE id = $2", context.now, runId);
  return hasTurned ? "replying" : "stopping";
}

/** For a finished run whose `cancel_at` is set, so that its reply goes nowhere else. */
export async function recallReply({ cancelReply }: WorkerPorts, runId: string): Promise<Cancelled> {
  const { messages, leaving } = await cancelReply(runId);
  if (leaving > 0) return "stopping";
  return messages > 0 ? "recalled" : "over";
}
