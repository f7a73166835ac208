/**
 * Handles the outcomes of the main session's own messages, its heartbeats' replies: a failed or uncertain one becomes
 * an event there; one delivered to the configured target makes that target the meaning of `last`. The worker handles
 * replies of hooks. They never change `last`: a sender of webhooks must not decide where the main session speaks.
 */
import { enqueueEvent } from "../agent/events.ts";
import { mainSessionKey } from "../agent/session-key.ts";
import { setRoute } from "../agent/sessions.ts";
import { AppError, type Logger } from "../../base/index.ts";
import { external, operator } from "../agent/boundary/tainted-text.ts";
import type { Transaction } from "../database/store.ts";
import { isLast } from "../channels/resolve.ts";
import { textMessages } from "../channels/outbox/messages.ts";
import type { Settled } from "../channels/outbox/outbox.ts";
import { findRun } from "../hooks/queue/deliveries/runs.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

export interface MainMessageParts {
  readonly snapshot: () => GatewaySnapshot;
  readonly now: () => number;
  readonly log: Logger;
}

const REASON_CHARS_MAX = 500;

/** For the outbox: part of the transaction in which the last message of a text ends. */
export function makeOnSettle({ snapshot, now, log }: MainMessageParts): (settled: Settled) => Transaction<void> {
  return function* ({ groupId, kind, reason }) {
    if (yield* findRun(groupId)) return;
    const { session, agents } = snapshot();
    const sessionKey = mainSessionKey(session);
    const [message] = yield* textMessages(groupId);
    if (!message) return;
    const { channel, recipient: to, thread } = message;
    if (kind === "sent") {
      const { target, to: named } = agents.defaults.heartbeat;
      const isConfigured = named !== undefined || !isLast(target);
      const route = { channel, to, ...(thread === "" ? {} : { thread }) };
      if (isConfigured) yield* setRoute({ sessionKey, route, now: now() });
      return;
    }
    const what = kind === "failed" ? "could not be delivered" : "may not have been delivered, and is not sent again";
    const why = (reason ?? "no reason given").slice(0, REASON_CHARS_MAX).toWellFormed();
    const text = [...operator(`The heartbeat's message by ${channel} ${what}. Reason: `), ...external(why)];
    const event = { sessionKey, text, isWrapped: true, source: "Channel", dedupeKey: `${groupId}:sent`, now: now() };
    try {
      yield* enqueueEvent(event, { eventsMax: session.maxEvents });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      log.warn("the main session has no room for an event about a message", { groupId, outcome: kind, reason });
    }
  };
}
