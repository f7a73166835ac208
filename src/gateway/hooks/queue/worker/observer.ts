/** Reports finished runs, replies and callbacks to metrics. */
import type { Logger } from "../../../../base/index.ts";
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
  | "id"
  | "lane"
  | "mappingId"
  | "action"
  | "state"
  | "createdAt"
  | "startedAt"
  | "finishedAt"
  | "reason"
  | "reply"
  | "replyTarget"
>;

/** A run that ended in the transaction that made it. */
export const posted = (run: NewRun): FinalRun => ({
  ...run,
  state: "succeeded",
  startedAt: null,
  finishedAt: run.createdAt,
  reason: null,
  reply: "none",
  replyTarget: null,
});

/** Logs a run that needs a person: it failed, it was given up, or its reply has no recipient. */
export function logEnd(log: Logger, { id: runId, mappingId: mapping, state, reason, reply }: FinalRun): void {
  if (state === "failed") log.warn("hooks: a run failed", { runId, mapping, reason });
  if (state === "dead") log.warn("hooks: a run was given up and will not be retried", { runId, mapping, reason });
  if (reply === "failed") log.warn("hooks: a reply has no recipient", { runId, mapping });
}

/** Called after the commit that made a run final. */
export function observeEnd(observer: RunObserver | undefined, run: FinalRun): void {
  if (!observer) return;
  observer.runEnded({ ...run, kind: run.action.kind }, run.lane);
  if (run.reply === "failed" || run.reply === "skipped") observer.replyEnded(run.reply, replyChannelOf(run));
}
