/** Sends a failed reply again: the stored answer, without a new turn, and without the parts that have arrived. */
import { AppError } from "../../../../base/index.ts";
import { execute, type Transaction } from "../../../database/store.ts";
import { asTurn, findRun } from "../deliveries/runs.ts";
import { addReply, type Context } from "./conclude.ts";

/** Throws `not_found`, or `conflict` if nothing can be sent. */
export function* resendReply(runId: string, context: Context): Transaction<void> {
  const run = yield* findRun(runId);
  if (!run) throw new AppError("not_found", "no such run");
  if (run.reply !== "failed" || run.cancelAt !== null || run.answer === null) {
    throw new AppError("conflict", "its reply has not failed");
  }
  const isKnown = yield* context.ports.forgetFailed(runId);
  if (!isKnown && run.replyTarget !== null) throw new AppError("conflict", "its messages were deleted");
  const { target, replyReason } = yield* addReply(runId, asTurn(run).action, run.answer, context);
  if (!target) throw new AppError("conflict", replyReason ?? "its reply has no recipient");
  yield* execute(
    "UPDATE runs SET reply = 'pending', reply_reason = NULL, reply_target = $1 WHERE id = $2",
    JSON.stringify(target),
    runId,
  );
}
