/** Reports finished runs, replies and callbacks to metrics. */
import type { CallbackOutcome } from "../callback.ts";
import type { RunStatus } from "../deliveries/run-status.ts";
import { replyChannelOf, type NewRun, type Run } from "../deliveries/runs.ts";
import type { ReplyOutcome } from "./ports.ts";

/** A finished run as observers get it. */
type EndedRun = Pick<RunStatus, "kind" | "state" | "createdAt" | "startedAt" | "finishedAt">;

export interface RunObserver {
  /** @param lane the run's lane */
  runEnded(run: EndedRun, lane: string): void;
  /** @param outcome `skipped`: it was only an acknowledgement */
  replyEnded(outcome: ReplyOutcome["kind"] | "skipped", channel: string): void;
  callbackTried(outcome: CallbackOutcome["kind"]): void;
}

export type FinalRun = Pick<
  Run,
  "id" | "lane" | "action" | "state" | "createdAt" | "startedAt" | "finishedAt" | "reply" | "replyTarget"
>;

/** A run that ended in the transaction that made it. */
export const posted = (run: NewRun): FinalRun => ({
  ...run,
  state: "succeeded",
  startedAt: null,
  finishedAt: run.createdAt,
  reply: "none",
  replyTarget: null,
});

/** Called after the commit that made a run final. */
export function observeEnd(observer: RunObserver | undefined, run: FinalRun): void {
  if (!observer) return;
  observer.runEnded({ ...run, kind: run.action.kind }, run.lane);
  if (run.reply === "failed" || run.reply === "skipped") observer.replyEnded(run.reply, replyChannelOf(run));
}
