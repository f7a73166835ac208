/**
 * Handles a heartbeat's reply: stores it with the turn, in the caller's transaction, and sends it unless it is an
 * acknowledgement, repeats the last reply, or has no target.
 */
import { isRecent } from "../../base/index.ts";
import { execute, queryOne, type Transaction } from "../database/store.ts";
import type { Target } from "../channels/channel.ts";
import { stripAck } from "./ack.ts";
import type { HeartbeatConfig } from "./config.ts";
import { replyOf } from "./reply.ts";
import { storeTurn, type TurnResult } from "./turn.ts";

export interface HeartbeatDelivery {
  readonly resolveTarget: (asked: {
    readonly channel: string;
    readonly to?: string;
  }) => Transaction<Target | { readonly reason: string }>;
  readonly addReply: (reply: { groupId: string; target: Target; text: string; now: number }) => Transaction<void>;
  /** Makes the channels look for new messages. */
  readonly sendReplies: () => void;
}

/**
 * `sent`: the reply is on its way. `ok-token`, `ok-empty`: nothing needs attention. `skipped`: nothing was asked or
 * sent, for `reason`. `failed`: no answer, or no target, for `reason`.
 */
export interface HeartbeatOutcome {
  readonly kind: "sent" | "ok-token" | "ok-empty" | "skipped" | "failed";
  readonly reason?: string;
  /** True if no model began the turn: it is missing, or its server is down. */
  readonly isUntried?: boolean;
  /** The beginning of the reply. */
  readonly preview?: string;
}

export interface Reply {
  readonly sessionKey: string;
  readonly runId: string;
  readonly result: TurnResult;
  readonly config: HeartbeatConfig;
  readonly now: number;
}

/** A reply is not sent again within this time. */
const SAME_REPLY_MS = 24 * 60 * 60_000;
const PREVIEW_CHARS = 200;

/** Time of the last heartbeat; undefined before the first. */
export function* lastHeartbeat(sessionKey: string): Transaction<number | undefined> {
  const text = "SELECT last_at FROM heartbeats WHERE session_key = $1";
  return (yield* queryOne<{ last_at: number }>(text, sessionKey))?.last_at;
}

/** Stores an answer of the model and queues its delivery. */
export function* concludeHeartbeat(reply: Reply, delivery: HeartbeatDelivery): Transaction<HeartbeatOutcome> {
  const { sessionKey, runId, result, config, now } = reply;
  const outcome = yield* deliver(reply, delivery);
  const isIdle = outcome.kind.startsWith("ok-") && result.record.seen.length === 0;
  // an idle heartbeat does not grow the transcript
  if (!isIdle) yield* storeTurn({ sessionKey, runId, record: result.record, isEphemeral: false, now });
  yield* execute(
    `INSERT INTO heartbeats (session_key, last_at) VALUES ($1, $2)
     ON CONFLICT (session_key) DO UPDATE SET last_at = excluded.last_at`,
    sessionKey,
    now,
  );
  if (outcome.kind === "sent") {
    const text = replyOf(result, config.ackMaxChars) ?? null;
    yield* execute("UPDATE heartbeats SET sent_text = $1, sent_at = $2 WHERE session_key = $3", text, now, sessionKey);
  }
  return outcome;
}

/** The target of a heartbeat's answer. */
export const heartbeatTarget = (
  { target: channel, to }: HeartbeatConfig,
  { resolveTarget }: Pick<HeartbeatDelivery, "resolveTarget">,
): ReturnType<HeartbeatDelivery["resolveTarget"]> => resolveTarget({ channel, ...(to === undefined ? {} : { to }) });

function* deliver(reply: Reply, delivery: HeartbeatDelivery): Transaction<HeartbeatOutcome> {
  const { runId, result, config, now } = reply;
  const text = replyOf(result, config.ackMaxChars);
  if (text === undefined) {
    return { kind: result.text.trim() === "" ? "ok-empty" : "ok-token", preview: preview(stripAck(result.text).text) };
  }
  const said = { preview: preview(text) };
  const { seen } = result.record;
  if (seen.length > 0 && seen.every(({ isDelivered }) => isDelivered)) {
    return { kind: "skipped", reason: "a reply is on its way to people already", ...said };
  }
  if (yield* wasSent({ ...reply, text })) return { kind: "skipped", reason: "the same was sent within a day", ...said };
  if (config.target === "none")
    return { kind: "skipped", reason: "agents.defaults.heartbeat.target is 'none'", ...said };
  const target = yield* heartbeatTarget(config, delivery);
  if ("reason" in target) return { kind: "failed", reason: target.reason, ...said };
  yield* delivery.addReply({ groupId: runId, target, text, now });
  return { kind: "sent", ...said };
}

function* wasSent({ sessionKey, text, now }: Reply & { text: string }): Transaction<boolean> {
  const last = yield* queryOne<{ sent_text: string | null; sent_at: number | null }>(
    "SELECT sent_text, sent_at FROM heartbeats WHERE session_key = $1",
    sessionKey,
  );
  return last?.sent_text === text && last.sent_at !== null && isRecent(last.sent_at, now, SAME_REPLY_MS);
}

const preview = (text: string): string => text.slice(0, PREVIEW_CHARS).toWellFormed();
