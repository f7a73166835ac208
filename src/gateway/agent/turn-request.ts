/** A turn as callers ask for it, and its result. */
import type { Clock } from "../../base/index.ts";
import type { Trace } from "../../base/tracing.ts";
import type { ChatRuntime } from "../../runtime/portable.ts";
import type { Transaction, Store } from "../database/store.ts";
import type { ToolServers } from "./calls/server-tools.ts";
import type { SeenEvent } from "./events.ts";
import type { ModelSource } from "./models.ts";
import type { EntryBody } from "./sessions.ts";
import type { AgentSettings } from "./settings.ts";

export interface TurnParts extends ModelSource {
  readonly runtime: ChatRuntime;
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: () => AgentSettings;
  /** Absent: there are no tool servers. */
  readonly servers?: ToolServers | undefined;
}

export interface TurnRequest {
  readonly runId: string;
  /** As made by `hookSession` and `mainSessionKey`. */
  readonly sessionKey: string;
  /** Rendered; outside parts are behind the safety boundary. */
  readonly prompt: string;
  /** Name or alias; undefined: the agent's default. */
  readonly model?: string;
  /** A level or a synonym; any other text is ignored. */
  readonly thinking?: string;
  /** Undefined: the agent's default. */
  readonly timeoutMs?: number;
  /** Names of the allowed tools; tools of tool servers as `SERVER/TOOL` or `SERVER/*`. */
  readonly tools: readonly string[];
  /**
   * Throws if another process has taken the run. Turns without it have no journal: they have only tools of tool
   * servers that are harmless and may be repeated.
   */
  readonly checkOwner?: () => Transaction<void>;
  /** Called before each request to the model: aborts `signal` if another process may have taken the run. */
  readonly checkTime?: () => void;
  /** Aborting it stops the model. */
  readonly signal: AbortSignal;
  readonly onText?: (text: string) => void;
  /** Trace of its requests to models. */
  readonly trace?: Trace;
}

export interface TurnUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Number of requests to the model for this answer. */
  readonly rounds: number;
  readonly toolCalls: number;
}

/** The entries that a turn adds to its session; empty if it failed, so that it can be tried again. */
export interface TurnRecord {
  readonly entries: readonly EntryBody[];
  readonly seen: readonly SeenEvent[];
}

export interface TurnResult {
  /** The answer, or the part that arrived. */
  readonly text: string;
  /** `waiting`: for an approval of a call, until `waitsUntil`; then the same turn continues. */
  readonly status: "ok" | "error" | "timeout" | "cancelled" | "waiting";
  /** Epoch milliseconds. */
  readonly waitsUntil?: number;
  /** The error to display. */
  readonly error?: string;
  /** True if the same turn may succeed later: the model was busy or crashed, the request is not at fault. */
  readonly isTemporary?: boolean;
  /** True if no model began the turn: its server is down or refuses requests, or the model is missing. */
  readonly isUntried?: boolean;
  /** True if the model is missing, but can be pulled. */
  readonly isModelMissing?: boolean;
  /** The server's Retry-After, if any. */
  readonly retryAfterMs?: number;
  /** True if the context or the token limit cut the answer off. */
  readonly isTruncated: boolean;
  readonly usage: TurnUsage;
  /** Undefined if none was resolved; for a missing model its name. */
  readonly model?: string;
  readonly record: TurnRecord;
}

/** State of a running turn. */
export interface Progress {
  text: string;
  model?: string;
  isTruncated: boolean;
  /** True if its calls are stored, so that another attempt does not repeat them. */
  isJournaled: boolean;
  /** Tools of calls whose effect is unknown. */
  readonly unknown: string[];
  readonly usage: { -readonly [Key in keyof TurnUsage]: TurnUsage[Key] };
}

/** No chat shows U+0000, and PostgreSQL cannot store it. */
export const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");
