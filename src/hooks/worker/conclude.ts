/**
 * What follows a turn, in the transaction that stores it: the transcript, the reply's messages, the main session's
 * event, and the callback once nothing is under way. Every function here belongs inside a transaction.
 */
import type { Database } from "../../base/database.ts";
import { AppError, messageOf } from "../../base/errors.ts";
import type { HookAction } from "../action.ts";
import { asTurn, findRun, moveRun, type Run } from "../deliveries/runs.ts";
import { FINAL, isFinal, type Outcome, type ReplyState } from "../deliveries/state.ts";
import type { Target } from "../../channels/channel.ts";
import { replyOf } from "../../agent/reply.ts";
import type { TurnResult } from "../../agent/turn.ts";
import { addCallback } from "./callback-queue.ts";
import type { MainEvent, ReplyOutcome, WorkerPorts } from "./ports.ts";
import { replyProblem, summaryOf, type ReplyProblem } from "./summary.ts";

/** Beside an acknowledgement every word of a hook's reply counts: a short alert must not pass for one. */
const ACK_CHARS_MAX = 0;

/** How a turn ended. */
export interface Ending {
  readonly outcome: Outcome;
  /** Why it did not end well. */
  readonly reason?: string;
  /** Absent: there was no turn, or nothing of it is worth keeping. */
  readonly result?: TurnResult;
}

export interface Context {
  readonly ports: WorkerPorts;
  readonly now: number;
}

/** Ends a run's turn. The run is final afterwards, or waits with its answer stored for room among the events. */
export function concludeTurn(db: Database, run: Run, { outcome, reason, result }: Ending, context: Context): Run {
  const { answer, reply, target, replyReason } = startReply(db, run, { outcome, result }, context);
  db.query(
    `UPDATE runs SET answer = ?, model = ?, usage = ?, outcome = ?, reason = ?, reply = ?, reply_target = ?,
       reply_reason = ? WHERE id = ?`,
  ).run(
    answer,
    result?.model ?? null,
    result?.usage === undefined ? null : JSON.stringify(result.usage),
    outcome,
    reason ?? null,
    reply,
    target ? JSON.stringify(target) : null,
    replyReason ?? null,
    run.id,
  );
  return postEvent(db, { ...run, answer, outcome, reason: reason ?? null, reply }, context, { replyReason });
}

interface Reply {
  readonly answer: string | null;
  readonly reply: ReplyState;
  readonly target?: ReplyTarget;
  readonly replyReason?: string;
}

/** Where a reply is on its way to, and where it goes if it is refused there. */
type ReplyTarget = Target & { readonly others: readonly Target[] };

const eachChannelOnce = (targets: readonly Target[]): Target[] =>
  targets.filter(({ channel }, i) => targets.findIndex((other) => other.channel === channel) === i);

/** Hands an answer to the channels, where it is to be delivered. */
function startReply(
  db: Database,
  run: Run,
  { outcome, result }: Pick<Ending, "outcome"> & { result: TurnResult | undefined },
  context: Context,
): Reply {
  const { ports, now } = context;
  const text = result && replyOf(result, ACK_CHARS_MAX);
  const answer = text ?? result?.text ?? null;
  if (outcome !== "ok" || !result || run.action.kind !== "agent") return { answer, reply: "none" };
  const { deliver, channel, to, fallbackChannels } = run.action;
  if (!deliver) return { answer, reply: "none" };
  if (text === undefined) return { answer, reply: "skipped" };
  try {
    return db.transaction((): Reply => {
      const asked = ports.resolveTarget(db, { channel, ...(to === undefined ? {} : { to }) });
      const fallbacks = ports.fallbackTargets(db, fallbackChannels);
      const [target, ...others] = eachChannelOnce("reason" in asked ? fallbacks : [asked, ...fallbacks]);
      if (!target) return { answer, reply: "failed", ...("reason" in asked ? { replyReason: asked.reason } : {}) };
      ports.addReply(db, { groupId: run.id, target, text, now });
      return { answer, reply: "pending", target: { ...target, others } };
    })();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { answer, reply: "failed", replyReason: error.message };
  }
}

/**
 * Posts a run's event and makes the run final. Where no more events may wait, the run stays open and its event is
 * tried again later, in order.
 */
export function postEvent(
  db: Database,
  run: Run,
  context: Context,
  also: { replyReason?: string | undefined } = {},
): Run {
  const { ports, now } = context;
  try {
    db.transaction(() => {
      ports.enqueueEvent(db, eventOf(run, now));
      if (run.reply === "failed")
        ports.enqueueEvent(db, problemEvent(run, { kind: "failed", reason: also.replyReason }, now));
    })();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === "busy") return run.state === "running" ? moveRun(db, run, "store", now, { step: "event" }) : run;
    return close(db, moveRun(db, run, "fail", now, { reason: messageOf(error) }), context);
  }
  const outcome = run.outcome ?? "ok";
  return close(db, moveRun(db, run, FINAL[outcome], now, { outcome }), context);
}

function eventOf(run: Run, now: number): MainEvent {
  const { action } = run;
  const shared = { ...mainEvent(run, now), wantsHeartbeat: wantsHeartbeat(action) };
  if (action.kind === "wake") return { ...shared, text: action.text, isDelivered: false };
  const text = summaryOf(action, { ...run, outcome: run.outcome ?? "ok" });
  return { ...shared, text, dedupeKey: run.id, isDelivered: run.reply === "pending" };
}

export const wantsHeartbeat = (action: HookAction): boolean =>
  (action.kind === "wake" ? action.mode : action.wakeMode) === "now";

function problemEvent(run: Run, problem: ReplyProblem, now: number): MainEvent {
  const text = replyProblem(asTurn(run).action, problem);
  return { ...mainEvent(run, now), text, dedupeKey: `${run.id}:reply`, wantsHeartbeat: false, isDelivered: false };
}

const mainEvent = (run: Run, now: number) => ({
  isWrapped: run.action.isWrapped,
  source: sourceOf(run),
  now,
});

/** The source of a run's text, as prompts name it. */
export const sourceOf = ({ mappingId }: Run): string => `Webhook ${mappingId ?? ""}`.trimEnd();

/** Ends a run whose turn never began, or cannot be repeated. */
export function giveUp(db: Database, run: Run, ending: { outcome: Outcome; reason: string }, context: Context): Run {
  if (run.step === "turn") return concludeTurn(db, run, ending, context);
  return close(db, moveRun(db, run, FINAL[ending.outcome], context.now, ending), context);
}

/** Sends a reply that was refused elsewhere. Returns false where there is nowhere else. */
function sendElsewhere(db: Database, { id, answer }: Run, { ports, now }: Context): boolean {
  const row = db
    .query<{ target: string | null }, [string]>("SELECT reply_target AS target FROM runs WHERE id = ?")
    .get(id);
  const { others = [] } = JSON.parse(row?.target ?? "{}") as Partial<ReplyTarget>; // startReply wrote it
  const [target, ...rest] = others;
  if (!target || answer === null) return false;
  ports.addReply(db, { groupId: id, target, text: answer, now });
  const next: ReplyTarget = { ...target, others: rest };
  db.query("UPDATE runs SET reply_target = ? WHERE id = ?").run(JSON.stringify(next), id);
  return true;
}

/**
 * Notes how a reply ended, or sends it elsewhere where that is configured. Returns false where that has to wait: a
 * failed reply posts an event to the main session, and there is no room.
 */
export function settleReply(db: Database, run: Run, { kind, reason }: ReplyOutcome, context: Context): boolean {
  if (kind === "failed" && sendElsewhere(db, run, context)) return true;
  try {
    if (kind !== "sent") context.ports.enqueueEvent(db, problemEvent(run, { kind, reason }, context.now));
  } catch (error) {
    if (error instanceof AppError && error.code === "busy") return false;
    throw error;
  }
  db.query("UPDATE runs SET reply = ?, reply_reason = ? WHERE id = ? AND reply = 'pending'").run(
    kind,
    reason ?? null,
    run.id,
  );
  const settled = findRun(db, run.id);
  if (settled) close(db, settled, context);
  return true;
}

/** Once a run is final and its reply settled, its callback is due. */
function close(db: Database, run: Run, { now }: Context): Run {
  if (isFinal(run.state) && run.reply !== "pending") addCallback(db, run, now);
  return run;
}
