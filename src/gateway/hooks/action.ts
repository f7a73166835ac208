/**
 * The actions of webhooks: wake the main session with an event, or run an agent turn. Both endpoints and every mapping
 * end in one of these.
 */
import type { TaintedText } from "../agent/boundary/tainted-text.ts";

export type WakeMode = "now" | "next-heartbeat";

export interface WakeAction {
  readonly kind: "wake";
  readonly text: TaintedText;
  readonly mode: WakeMode;
  /** True if outside parts go behind the safety boundary; only the configuration turns it off. */
  readonly isWrapped: boolean;
  /** Deduplicates items: the first of equal ids on one path counts. */
  readonly itemId?: string;
  /** True for our own notice, which accompanies the sender's actions. */
  readonly isNotice?: boolean;
}

export interface AgentAction {
  readonly kind: "agent";
  readonly message: TaintedText;
  /** Prefix of the summary in the main session. */
  readonly name: string;
  /** The agent that runs; absent: the default one. */
  readonly agentId?: string;
  /** The requested session; undefined: a new one that ends with the run. */
  readonly sessionKey?: string;
  readonly wakeMode: WakeMode;
  readonly deliver: boolean;
  /** `last`, or the id of a channel. */
  readonly channel: string;
  readonly to?: string;
  /** Channels to try, in order, if the channel refuses the reply; absent: the configured ones. */
  readonly fallbackChannels?: readonly string[];
  /** The requested model, before aliases. */
  readonly model?: string;
  readonly thinking?: string;
  readonly timeoutSeconds?: number;
  /** Tools that this run may use; none by default. */
  readonly tools: readonly string[];
  /** True if outside parts go behind the safety boundary; only the configuration turns it off. */
  readonly isWrapped: boolean;
  /** URL that gets the outcome by a signed POST. */
  readonly callbackUrl?: string;
  /** Deduplicates items: the first of equal ids on one path counts. */
  readonly itemId?: string;
}

export type HookAction = WakeAction | AgentAction;
