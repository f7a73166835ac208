/**
 * What the worker needs of the agent and the channels. Functions that take a database are called inside the worker's
 * transaction, so that a turn's answer, its transcript, its event and its messages are stored together or not at all.
 */
import type { TurnRecord } from "../../agent/turn.ts";
import type { Database } from "../../base/database.ts";
import type { Passage } from "../../base/passage.ts";
import type { Target } from "../../channels/channel.ts";

export interface TurnRequest {
  readonly runId: string;
  readonly sessionKey: string;
  /** Rendered: outside parts are behind the safety boundary. */
  readonly prompt: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly timeoutMs: number;
  /** Names of the tools it may use. */
  readonly tools: readonly string[];
  readonly signal: AbortSignal;
  readonly onText?: (text: string) => void;
}

export interface TurnResult {
  readonly text: string;
  readonly status: "ok" | "error" | "timeout" | "cancelled";
  /** What went wrong, for people. */
  readonly error?: string;
  /** Whether the same turn may succeed later: a busy or crashed model, not a bad request. */
  readonly isTemporary?: boolean;
  readonly usage?: unknown;
  readonly model?: string;
  /** What the turn adds to its session. */
  readonly record?: TurnRecord;
}

export interface SystemEvent {
  /** `main`. */
  readonly sessionKey: string;
  readonly text: Passage;
  readonly isWrapped: boolean;
  /** Who sent it, for the model to read. */
  readonly source: string;
  /** Events with the same key are one. */
  readonly dedupeKey?: string;
  /** Whether a heartbeat is due for it. */
  readonly wantsHeartbeat: boolean;
  /** Whether people are told already, so that the model need not tell them again. */
  readonly isDelivered: boolean;
  readonly now: number;
}

/** How all messages of a reply ended. */
export interface ReplyOutcome {
  /** `unknown`: some may have arrived, and are not sent again. */
  readonly kind: "sent" | "failed" | "unknown";
  readonly reason?: string;
}

export interface WorkerPorts {
  /** Makes no durable change itself. What it throws counts as temporary where its code does. */
  readonly runTurn: (request: TurnRequest) => Promise<TurnResult>;
  /** Puts a turn into its session's transcript. */
  readonly storeTurn: (db: Database, turn: StoredTurn) => void;
  /** Throws `busy` where no more events may wait. */
  readonly enqueueEvent: (db: Database, event: SystemEvent) => void;
  /** Asks for a heartbeat of the main session, at once. */
  readonly requestHeartbeat: (reason: string) => void;
  /** Where a reply goes. */
  readonly resolveTarget: (
    db: Database,
    asked: { readonly channel: string; readonly to?: string },
  ) => Target | { readonly reason: string };
  /** Whether a reply only says that there is nothing to say. */
  readonly isAcknowledgement: (text: string) => boolean;
  readonly addReply: (db: Database, reply: { groupId: string; target: Target; text: string; now: number }) => void;
  /** How a reply ended; undefined while it is under way. */
  readonly replyOutcome: (db: Database, groupId: string) => ReplyOutcome | undefined;
  /** Calls whenever a reply ended; returns what stops that. */
  readonly onReplySettled: (listener: (groupId: string) => void) => () => void;
  /** Asks the channels to look for new messages. */
  readonly sendReplies: () => void;
}

/** A turn that ended well. */
export interface StoredTurn {
  readonly runId: string;
  readonly sessionKey: string;
  /** As the model had it. */
  readonly prompt: string;
  readonly result: TurnResult;
  /** Whether the session ends with this run. */
  readonly isIsolated: boolean;
  readonly now: number;
}
