/** Ending a run because somebody asked for it: what waits, what runs, and a reply that has not left yet. */
import { execute, type Script } from "../../../database/store.ts";
import { findRun, type Run } from "../deliveries/runs.ts";
import { isFinal } from "../deliveries/state.ts";
import { giveUp, type Context } from "./conclude.ts";
import type { WorkerPorts } from "./ports.ts";

/**
 * What asking for a run's end led to. `stopping`: its model, or the sending of its reply, ends soon. `recalled`: its
 * turn had ended, and its reply is not sent. `over`: there was nothing left to end.
 */
export type Cancelled = "cancelled" | "stopping" | "recalled" | "over";

/** A run that waited and is over now, or what else there is to do: `replying` to call its reply back. */
export function* cancelRun(
  runId: string,
  context: Context,
): Script<Run | "stopping" | "replying" | "over" | undefined> {
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

/** Of a run that is over, and whose `cancel_at` says that its reply goes nowhere else. */
export async function recallReply({ cancelReply }: WorkerPorts, runId: string): Promise<Cancelled> {
  const { messages, leaving } = await cancelReply(runId);
  if (leaving > 0) return "stopping";
  return messages > 0 ? "recalled" : "over";
}
