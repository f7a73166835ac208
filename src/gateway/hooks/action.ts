/**
 * What a webhook asks for: to wake the main session with an event, or to run an agent turn. Both endpoints and every
 * mapping end in one of these.
 */
import type { Passage } from "../agent/boundary/passage.ts";

export type WakeMode = "now" | "next-heartbeat";

export interface WakeAction {
  readonly kind: "wake";
  readonly text: Passage;
  readonly mode: WakeMode;
  /** Whether outside parts go behind the safety boundary; only the configuration turns it off. */
  readonly isWrapped: boolean;
  /** Of equal ones on one path only the first is acted on. */
  readonly itemId?: string;
  /** Of ours, beside what the sender asked for. */
  readonly isNotice?: boolean;
}

export interface AgentAction {
  readonly kind: "agent";
  readonly message: Passage;
  /** Prefix of the summary in the main session. */
  readonly name: string;
  /** Which agent runs; absent: the default one. */
  readonly agentId?: string;
  /** As asked for; undefined: a session of its own that ends with the run. */
  readonly sessionKey?: string;
  readonly wakeMode: WakeMode;
  readonly deliver: boolean;
  /** `last`, or the id of a channel. */
  readonly channel: string;
  readonly to?: string;
  /** Where the reply goes if the channel refuses it, in order; absent: where the configuration says. */
  readonly fallbackChannels?: readonly string[];
  /** As asked for, before aliases. */
  readonly model?: string;
  readonly thinking?: string;
  readonly timeoutSeconds?: number;
  /** Names of the tools that this run may use; none by default. */
  readonly tools: readonly string[];
  /** Whether outside parts go behind the safety boundary; only the configuration turns it off. */
  readonly isWrapped: boolean;
  /** Gets the outcome by a signed POST. */
  readonly callbackUrl?: string;
  /** Of equal ones on one path only the first is acted on. */
  readonly itemId?: string;
}

export type HookAction = WakeAction | AgentAction;
