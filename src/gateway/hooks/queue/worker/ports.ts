/**
 * What the worker needs of the agent and the channels. Scripts are parts of the worker's transaction, so that a turn's
 * answer, its transcript, its event and its messages are stored together or not at all.
 */
import type { EventBatch, NewEvent } from "../../../agent/events.ts";
import type { StoreTurn, TurnRequest, TurnResult } from "../../../agent/turn.ts";
import type { Script } from "../../../database/store.ts";
import type { Target } from "../../../channels/channel.ts";
import type { CalledBack } from "../../../channels/outbox/messages.ts";

/** An event of the main session. */
export type MainEvent = Omit<NewEvent, "sessionKey">;

/** How all messages of a reply ended. */
export interface ReplyOutcome {
  /** `unknown`: some may have arrived, and are not sent again. */
  readonly kind: "sent" | "failed" | "unknown";
  readonly reason?: string;
}

export interface Reply {
  /** The run's id. */
  readonly groupId: string;
  readonly target: Target;
  readonly text: string;
  readonly now: number;
}

export interface WorkerPorts {
  /** Makes no durable change itself. */
  readonly runTurn: (request: TurnRequest) => Promise<TurnResult>;
  /** Puts a turn that ended well into its session's transcript. */
  readonly storeTurn: (turn: StoreTurn) => Script<void>;
  /** Throws `busy` where no more events may wait. */
  readonly enqueueEvent: (event: MainEvent) => Script<unknown>;
  /** For several events without a key. */
  readonly openEvents: () => Script<EventBatch>;
  /** Makes a heartbeat due for what waits in the main session. Returns false where one is due, or nothing waits. */
  readonly hastenEvents: () => Script<boolean>;
  /** Asks for a heartbeat of the main session, at once. */
  readonly requestHeartbeat: (reason: string) => void;
  /** Where a reply goes. */
  readonly resolveTarget: (asked: {
    readonly channel: string;
    readonly to?: string;
  }) => Script<Target | { readonly reason: string }>;
  /** Where a reply goes that its channel refuses, in order. @param names undefined: as the configuration says */
  readonly fallbackTargets: (names: readonly string[] | undefined) => Script<readonly Target[]>;
  readonly addReply: (reply: Reply) => Script<void>;
  /** Calls a reply back, as far as it has not left. */
  readonly cancelReply: (groupId: string) => Promise<CalledBack>;
  /** How a reply ended; undefined while it is under way. */
  readonly replyOutcome: (groupId: string) => Script<ReplyOutcome | undefined>;
  /** Calls whenever a reply ended, after that was committed; returns what stops that. */
  readonly onReplySettled: (listener: (groupId: string) => void) => () => void;
  /** Asks the channels to look for new messages. */
  readonly sendReplies: () => void;
}
