/** What the ingress needs of the rest of the gateway, and what it tells whoever brings it requests. */
import type { Logger } from "../../base/log.ts";
import type { HookAction } from "../action.ts";
import type { GatewayConfig, HooksConfig, MappingConfig } from "../config.ts";
import type { Accepted, AcceptRequest } from "../deliveries/accept.ts";
import type { Checks } from "./checks.ts";

/** A request as mappings see it: authentic and parsed, and without what proves who sent it. */
export interface MappingRequest {
  /** Below the ingress, without slashes at its ends. */
  readonly path: string;
  /** By name; of equal names the last. */
  readonly query: Readonly<Record<string, string>>;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Any JSON. */
  readonly payload: unknown;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** A mapping of the configuration or of a preset. */
export interface NamedMapping {
  readonly id: string;
  readonly config: MappingConfig;
}

/** Why a mapping came to nothing that can be accepted; `reason` is for the log. */
export interface MappingFailure {
  readonly kind: "failed";
  /** `mapping_failed`: not the sender's fault. */
  readonly code: "bad_request" | "too_large" | "busy" | "cancelled" | "mapping_failed";
  readonly reason: string;
}

export type MappingOutcome =
  | { readonly kind: "actions"; readonly actions: readonly HookAction[]; readonly warnings: readonly string[] }
  /** The request was understood and asks for nothing. */
  | { readonly kind: "nothing" }
  | MappingFailure;

export interface Mappings {
  /** Those that a path can reach, whatever the body says, in the order in which they are tried. */
  candidates(hooks: HooksConfig, path: string): readonly NamedMapping[];
  /** The first of some candidates that wants this request. */
  match(candidates: readonly NamedMapping[], request: MappingRequest): NamedMapping | undefined;
  /** Never throws. */
  run(mapping: NamedMapping, request: MappingRequest): Promise<MappingOutcome>;
}

export interface IngressSettings {
  readonly hooks: HooksConfig;
  readonly gateway: Pick<GatewayConfig, "trustedProxies">;
}

export interface IngressDeps {
  /** As of now: a request finishes under the settings it began with. */
  readonly settings: () => IngressSettings;
  /** Resolves after the commit. */
  readonly accept: (request: AcceptRequest) => Promise<Accepted>;
  readonly mappings: Mappings;
  readonly checks: Checks;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** How long bodies may take; shorter in tests. */
  readonly readMs?: { readonly proved: number; readonly unproved: number };
}

export interface HookRequest {
  readonly id: string;
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array> | null;
  /** The address at the other end of the socket. */
  readonly peer: string | undefined;
}

export interface HookReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: no body. */
  readonly body: string | undefined;
  /** For the log: names and counts, never text of the request. */
  readonly notes: Readonly<Record<string, unknown>>;
}

/** Who a request comes from, once it is known; never the credential. */
export interface Auth {
  readonly kind: "token" | "signature";
  readonly id: string;
}
