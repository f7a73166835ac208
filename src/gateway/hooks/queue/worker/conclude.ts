/**
 * Stores a turn and its consequences in one transaction: the transcript, the reply's messages, the main session's
 * event, and the callback once nothing is under way.
 */
import { AppError, messageOf } from "../../../../base/index.ts";
import { execute, queryEach, undoable, type Transaction } from "../../../database/store.ts";
import type { AgentAction, HookAction, WakeAction } from "../../action.ts";
import { asTurn, findRun, moveRun, type Run } from "../deliveries/runs.ts";
import { FINAL, isFinal, type Outcome, type ReplyState } from "../deliveries/state.ts";
import type { Target } from "../../../channels/channel.ts";
import { replyOf } from "../../../agent/reply.ts";
import type { TurnResult } from "../../../agent/turn.ts";
import { addCallback } from "./callback-queue.ts";
import type { MainEvent, ReplyOutcome, WorkerPorts } from "./ports.ts";
import { replyProblem, summaryOf, type ReplyProblem } from "./summary.ts";

/** In a hook's reply every word besides an acknowledgement counts, because a short alert must not be dropped as one. */
const ACK_CHARS_MAX = 0;

/** The end of a turn. */
export interface Ending {
  readonly outcome: Outcome;
  readonly reason?: string;
  /** Absent: there was no turn, or its result is not worth storing. */
  readonly result?: TurnResult;
}

export interface Context {
  readonly ports: WorkerPorts;
  readonly now: number;
}

/** Ends a run's turn. Afterwards the run is final, or its answer is stored and it waits for room among the events. */
export function* concludeTurn(run: Run, { outcome, reason, result }: Ending, context: Context): Transaction<Run> {
  const { answer, reply, target, replyReason } = yield* startReply(run, { outcome, result }, context);
  yield* execute(
    `UPDATE runs SET answer = $1, model = $2, usage = $3, outcome = $4, reason = $5, reply = $6, reply_target = $7,
       reply_reason = $8 WHERE id = $9`,
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
  return yield* postEvent({ ...run, answer, outcome, reason: reason ?? null, reply }, context, { replyReason });
}

interface Reply {
  readonly answer: string | null;
  readonly reply: ReplyState;
  readonly target?: ReplyTarget;
  readonly replyReason?: string;
}

/** The target of a reply, and the fallbacks if it is refused there. */
type ReplyTarget = Target & { readonly others: readonly Target[] };

const eachChannelOnce = (targets: readonly Target[]): Target[] =>
  targets.filter(({ channel }, i) => targets.findIndex((other) => other.channel === channel) === i);

/** Queues an answer for the channels, if it is to be delivered. */
function* startReply(
  run: Run,
  { outcome, result }: Pick<Ending, "outcome"> & { result: TurnResult | undefined },
  context: Context,
): Transaction<Reply> {
  const text = result && replyOf(result, ACK_CHARS_MAX);
  const answer = text ?? result?.text ?? null;
  if (outcome !== "ok" || !result || run.action.kind !== "agent") return { answer, reply: "none" };
  if (!run.action.deliver) return { answer, reply: "none" };
  if (text === undefined) return { answer, reply: "skipped" };
  try {
    return { answer, ...(yield* undoable(addReply(run.id, run.action, text, context))) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { answer, reply: "failed", replyReason: error.message };
  }
}

/** Queues a text for the first target that there is. Without one the result is a failed reply. */
export function* addReply(
  groupId: string,
  { channel, to, fallbackChannels }: AgentAction,
  text: string,
  { ports, now }: Context,
): Transaction<Omit<Reply, "answer">> {
  const asked = yield* ports.resolveTarget({ channel, ...(to === undefined ? {} : { to }) });
  const fallbacks = yield* ports.fallbackTargets(fallbackChannels);
  const [target, ...others] = eachChannelOnce("reason" in asked ? fallbacks : [asked, ...fallbacks]);
  if (!target) return { reply: "failed", ...("reason" in asked ? { replyReason: asked.reason } : {}) };
  yield* ports.addReply({ groupId, target, text, now });
  return { reply: "pending", target: { ...target, others } };
}

/**
 * Posts a run's event and makes the run final. If too many events wait, the run stays open, and its event is posted
 * later, in order.
 */
export function* postEvent(
  run: Run,
  context: Context,
  also: { replyReason?: string | undefined } = {},
): Transaction<Run> {
  const { now } = context;
  try {
    yield* undoable(enqueueEvents(run, context, also));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === "busy") {
      return run.step === "turn" ? yield* moveRun(run, "store", now, { step: "event" }) : run;
    }
    return yield* close(yield* moveRun(run, "fail", now, { reason: messageOf(error) }), context);
  }
  const outcome = run.outcome ?? "ok";
  return yield* close(yield* moveRun(run, FINAL[outcome], now, { outcome }), context);
}

function* enqueueEvents(
  run: Run,
  { ports, now }: Context,
  { replyReason: reason }: { replyReason?: string | undefined },
): Transaction<void> {
  yield* ports.enqueueEvent(eventOf(run, now));
  if (run.reply === "failed") yield* ports.enqueueEvent(problemEvent(run, { kind: "failed", reason }, now));
}

function eventOf(run: Run, now: number): MainEvent {
  const { action } = run;
  if (action.kind === "wake") return wakeEvent(action, run, now);
  const text = summaryOf(action, { ...run, outcome: run.outcome ?? "ok" });
  const shared = { ...mainEvent(run, now), wantsHeartbeat: wantsHeartbeat(action) };
  return { ...shared, text, dedupeKey: run.id, isDelivered: run.reply === "pending" };
}

/** @param run the wake's run */
export const wakeEvent = (action: WakeAction, run: Pick<Run, "action" | "mappingId">, now: number): MainEvent => ({
  ...mainEvent(run, now),
  text: action.text,
  wantsHeartbeat: wantsHeartbeat(action),
  isDelivered: false,
});

export const wantsHeartbeat = (action: HookAction): boolean =>
  (action.kind === "wake" ? action.mode : action.wakeMode) === "now";

function problemEvent(run: Run, problem: ReplyProblem, now: number): MainEvent {
  const { action } = asTurn(run);
  const text = replyProblem(action, problem);
  const shared = { ...mainEvent(run, now), wantsHeartbeat: wantsHeartbeat(action) };
  return { ...shared, text, dedupeKey: `${run.id}:reply`, isDelivered: false };
}

const mainEvent = (run: Pick<Run, "action" | "mappingId">, now: number) => ({
  isWrapped: run.action.isWrapped,
  source: sourceOf(run),
  now,
});

/** The source of a run's text, as prompts name it. */
export const sourceOf = ({ mappingId }: Pick<Run, "mappingId">): string => `Webhook ${mappingId ?? ""}`.trimEnd();

/** Ends a run whose turn never began, or cannot be repeated. */
export function* giveUp(run: Run, ending: { outcome: Outcome; reason: string }, context: Context): Transaction<Run> {
  if (run.step === "turn") return yield* concludeTurn(run, ending, context);
  return yield* close(yield* moveRun(run, FINAL[ending.outcome], context.now, ending), context);
}

/** Sends a refused reply to the next target. Returns false after the last target, and for a recalled reply. */
function* sendElsewhere(run: Run, { ports, now }: Context): Transaction<boolean> {
  const { id, answer } = run;
  const [target, ...rest] = fallbacksOf(run);
  if (!target || answer === null) return false;
  yield* ports.addReply({ groupId: id, target, text: answer, now });
  const next: ReplyTarget = { ...target, others: rest };
  yield* execute("UPDATE runs SET reply_target = $1 WHERE id = $2", JSON.stringify(next), id);
  return true;
}

/** Targets that are left for a reply; none for a recalled one. */
const fallbacksOf = ({ replyTarget, cancelAt }: Pick<Run, "replyTarget" | "cancelAt">): readonly Target[] =>
  cancelAt === null ? ((JSON.parse(replyTarget ?? "{}") as Partial<ReplyTarget>).others ?? []) : [];

/** Filters runs whose reply has a target left. */
export function* withFallback(runIds: readonly string[]): Transaction<ReadonlySet<string>> {
  const rows = yield* queryEach<Pick<Run, "id" | "replyTarget" | "cancelAt">>(
    `SELECT id, reply_target AS "replyTarget", cancel_at AS "cancelAt" FROM runs WHERE id = $1`,
    runIds.map((id) => [id]),
  );
  return new Set(rows.flatMap((run) => (run && fallbacksOf(run).length > 0 ? [run.id] : [])));
}

/**
 * Stores a reply's outcome, or sends it to the next target. Returns false if that has to wait: a failed reply posts an
 * event to the main session, and there is no room.
 */
export function* settleReply(run: Run, { kind, reason }: ReplyOutcome, context: Context): Transaction<boolean> {
  if (kind === "failed" && (yield* sendElsewhere(run, context))) return true;
  try {
    if (kind !== "sent") yield* context.ports.enqueueEvent(problemEvent(run, { kind, reason }, context.now));
  } catch (error) {
    if (error instanceof AppError && error.code === "busy") return false;
    throw error;
  }
  yield* execute(
    "UPDATE runs SET reply = $1, reply_reason = $2 WHERE id = $3 AND reply = 'pending'",
    kind,
    reason ?? null,
    run.id,
  );
  const settled = yield* findRun(run.id);
  if (settled) yield* close(settled, context);
  return true;
}

/** Once a run is final and its reply settled, its callback is due. */
function* close(run: Run, { now }: Context): Transaction<Run> {
  if (isFinal(run.state) && run.reply !== "pending") yield* addCallback(run, now);
  return run;
}
