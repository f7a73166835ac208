/**
 * The worker's interface to the agent and the channels. Its transactions are parts of the worker's, so that a turn's
 * answer, its transcript, its event and its messages are stored together or not at all.
 */
import type { EventBatch, NewEvent } from "../../../agent/events.ts";
import type { StoreTurn, TurnRequest, TurnResult } from "../../../agent/turn.ts";
import type { Transaction } from "../../../database/store.ts";
import type { Target } from "../../../channels/channel.ts";
import type { CalledBack, NewText } from "../../../channels/outbox/messages.ts";

export type MainEvent = Omit<NewEvent, "sessionKey">;

/** The outcome of all messages of a reply. */
export interface ReplyOutcome {
  /** `unknown`: some may have arrived, and are not sent again. */
  readonly kind: "sent" | "failed" | "unknown";
  readonly reason?: string;
}

export interface WorkerPorts {
  /** Stores nothing itself. */
  readonly runTurn: (request: TurnRequest) => Promise<TurnResult>;
  /** Appends a successful turn to its session's transcript. */
  readonly storeTurn: (turn: StoreTurn) => Transaction<void>;
  /** Throws `busy` if too many events wait. */
  readonly enqueueEvent: (event: MainEvent) => Transaction<unknown>;
  /** For several events without a key. */
  readonly openEvents: () => Transaction<EventBatch>;
  /**
   * Makes a heartbeat due for waiting events of the main session. Returns false if one is due already, or no event
   * waits.
   */
  readonly hastenEvents: () => Transaction<boolean>;
  /** Starts a heartbeat of the main session. */
  readonly requestHeartbeat: (reason: string) => void;
  /** The target of a reply. */
  readonly resolveTarget: (asked: {
    readonly channel: string;
    readonly to?: string;
  }) => Transaction<Target | { readonly reason: string }>;
  /**
   * Fallback targets of a refused reply, in order.
   * @param names undefined: the configured ones
   */
  readonly fallbackTargets: (names: readonly string[] | undefined) => Transaction<readonly Target[]>;
  /** The id of its group is the run's. */
  readonly addReply: (reply: NewText) => Transaction<void>;
  /**
   * Deletes the failed messages of a reply, so that `addReply` adds what has not arrived. Returns false if there are no
   * messages.
   */
  readonly forgetFailed: (groupId: string) => Transaction<boolean>;
  /** Recalls the messages of a reply that have not left. */
  readonly cancelReply: (groupId: string) => Promise<CalledBack>;
  /** A reply's outcome; undefined while it is under way. */
  readonly replyOutcome: (groupId: string) => Transaction<ReplyOutcome | undefined>;
  /** Calls `listener` after the commit that ends a reply; returns a function that stops it. */
  readonly onReplySettled: (listener: (groupId: string) => void) => () => void;
  /** Makes the channels look for new messages. */
  readonly sendReplies: () => void;
}
