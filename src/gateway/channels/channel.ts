/**
 * What a channel is: a chat platform that texts can be sent to. One file per platform and a line in the registry;
 * plugins come through the same interface.
 */
import type { Reader } from "../../base/schema.ts";

/** A recipient on one platform; never meant for another. */
export interface Target {
  readonly channel: string;
  readonly to: string;
  /** Thread or topic within `to`. */
  readonly thread?: string;
}

export interface SendRequest {
  readonly target: Target;
  /** At most the channel's `chunkLimit` long. */
  readonly text: string;
  /** The same for every attempt at this chunk, and for no other: platforms that can, recognise a repeat by it. */
  readonly key: string;
  readonly signal: AbortSignal;
}

/** What became of a send. `unknown`: the connection broke when the platform may have had it already. */
export type SendOutcome =
  | { readonly kind: "sent"; readonly messageId?: string }
  | { readonly kind: "retry"; readonly reason: string; readonly afterMs?: number }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string };

/** Whether a platform answers and knows us. */
export type Health = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** What a platform counts its limit in. */
export type ChunkUnit = "utf16" | "codePoint";

/** A configured platform. */
export interface Channel {
  readonly id: string;
  /** Most `chunkUnit`s in one message. */
  readonly chunkLimit: number;
  readonly chunkUnit: ChunkUnit;
  /** How long the platform drops repeats with the same key, so that an `unknown` send may be repeated; 0: never. */
  readonly dedupeMs: number;
  /** Least time between two messages to one recipient. */
  readonly spacingMs: number;
  /** The recipient of texts without one. */
  readonly defaultTo?: string;
  /** Throws `bad_request` where `to` is no recipient of this platform. It takes the `to` of what it returns, too. */
  parseTarget(to: string): Target;
  /** Never throws: what goes wrong is an outcome. */
  send(request: SendRequest): Promise<SendOutcome>;
  /** Asks the platform something harmless. Never throws. */
  check(signal: AbortSignal): Promise<Health>;
}

export interface ChannelDeps {
  readonly fetch: typeof fetch;
  /** Of the configuration file: relative paths start there. */
  readonly folder: string;
  readonly now: () => number;
}

/** A platform that can be configured: the registry's entries, and what a plugin module makes. */
export interface ChannelKind<Settings = unknown> {
  readonly id: string;
  readonly aliases: readonly string[];
  /** The platform's section of the configuration. */
  readonly schema: Reader<Settings>;
  /** Throws `bad_request` where a setting cannot be used. */
  make(settings: Settings, deps: ChannelDeps): Channel;
}
