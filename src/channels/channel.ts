/**
 * What a channel is: a chat platform that texts can be sent to. One file per platform and a line in the registry;
 * plugins come through the same interface.
 */
import type { z } from "zod";

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

/** A configured platform. */
export interface Channel {
  readonly id: string;
  /** Most UTF-16 units, or what the platform counts, in one message. */
  readonly chunkLimit: number;
  /** Whether the platform drops a repeat with the same key, so that an `unknown` send may be repeated. */
  readonly deduplicates: boolean;
  /** Where texts go when nobody says where. */
  readonly defaultTo?: string;
  /** Throws `bad_request` where `to` is no recipient of this platform. */
  parseTarget(to: string): Target;
  /** Never throws: what goes wrong is an outcome. */
  send(request: SendRequest): Promise<SendOutcome>;
}

export interface ChannelDeps {
  readonly fetch: typeof fetch;
}

/** A platform that can be configured: the registry's entries, and what a plugin module exports. */
export interface ChannelKind<Settings = unknown> {
  readonly id: string;
  readonly aliases: readonly string[];
  /** The platform's section of the configuration. */
  readonly schema: z.ZodType<Settings>;
  make(settings: Settings, deps: ChannelDeps): Channel;
}
