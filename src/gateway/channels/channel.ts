/**
 * A channel: a chat platform that texts can be sent to. One file per platform and a line in the registry; plugins use
 * the same interface.
 */
import type { Reader } from "../../base/schema.ts";

/** A recipient on one platform; never used on another. */
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
  /**
   * Idempotency key: the same for every attempt at this chunk, and for no other. Platforms that support it drop
   * repeats.
   */
  readonly key: string;
  readonly signal: AbortSignal;
}

/**
 * The result of a send. `refused`: the platform refuses our credentials, so no message can arrive until they are
 * replaced. `unknown`: the connection broke when the platform may have had the message already.
 */
export type SendOutcome =
  | { readonly kind: "sent"; readonly messageId?: string }
  | { readonly kind: "retry"; readonly reason: string; readonly afterMs?: number }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string };

/** Health of a platform: it answers and accepts our credentials. */
export type Health = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The unit of a platform's length limit. */
export type ChunkUnit = "utf16" | "codePoint";

/** A configured platform. */
export interface Channel {
  readonly id: string;
  /** Maximum number of `chunkUnit`s in one message. */
  readonly chunkLimit: number;
  readonly chunkUnit: ChunkUnit;
  /**
   * Time for which the platform drops repeats with the same key, so that an `unknown` send may be repeated; 0: never.
   */
  readonly dedupeMs: number;
  /** Minimum time between two messages to one recipient. */
  readonly spacingMs: number;
  /** The recipient of texts without one. */
  readonly defaultTo?: string;
  /** Throws `bad_request` if `to` is not a recipient of this platform. Accepts the `to` of its own result, too. */
  parseTarget(to: string): Target;
  /** Never throws: an error becomes an outcome. */
  send(request: SendRequest): Promise<SendOutcome>;
  /** Sends a harmless request. Never throws. */
  check(signal: AbortSignal): Promise<Health>;
}

export interface ChannelDeps {
  readonly fetch: typeof fetch;
  /** Folder of the configuration file, for relative paths. */
  readonly folder: string;
  readonly now: () => number;
}

/** A platform that can be configured: an entry of the registry, or made by a plugin. */
export interface ChannelKind<Settings = unknown> {
  readonly id: string;
  readonly aliases: readonly string[];
  /** The platform's section of the configuration. */
  readonly schema: Reader<Settings>;
  /** Throws `bad_request` if a setting is unusable. */
  make(settings: Settings, deps: ChannelDeps): Channel;
}
