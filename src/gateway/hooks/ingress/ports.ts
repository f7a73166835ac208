/** The ingress's interfaces to the rest of the gateway and to the HTTP layer. */
import type { Logger } from "../../../base/index.ts";
import type { Peers } from "../../database/peers.ts";
import type { GatewayConfig } from "../config.ts";
import type { Accepted } from "../queue/deliveries/accept.ts";
import type { AcceptRequest } from "../queue/deliveries/request.ts";
import type { RunOrigin } from "../queue/deliveries/queries.ts";
import type { RunStatus } from "../queue/deliveries/run-status.ts";
import type { RunParts } from "../mapping/index.ts";
import type { MappingSettings, MappingsOf } from "../mapping/live.ts";
import type { RunNews } from "../queue/worker/watch.ts";
import type { Checks } from "./checks.ts";

export interface IngressSettings extends MappingSettings {
  readonly gateway: Pick<GatewayConfig, "trustedProxies">;
}

/** Accepted runs, for status requests. */
export interface Runs {
  readonly origin: (id: string) => Promise<RunOrigin | undefined>;
  readonly status: (id: string) => Promise<RunStatus | undefined>;
  /** A run's state, then its news until it ends or the signal aborts. */
  readonly watch: (id: string, signal: AbortSignal) => AsyncGenerator<RunNews>;
}

export interface IngressDeps {
  /** The current settings: a request ends under the settings with which it began. */
  readonly settings: () => IngressSettings;
  /** Resolves after the commit. */
  readonly accept: (request: AcceptRequest) => Promise<Accepted>;
  readonly runs: Runs;
  readonly mappings: MappingsOf;
  readonly transforms: RunParts["transforms"];
  readonly checks: Checks;
  readonly log: Logger;
  /** For limits that several processes share. */
  readonly spend?: Peers["spend"] | undefined;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Time limits of bodies; shorter in tests. */
  readonly readMs?: { readonly proved: number; readonly unproved: number };
}

export interface HookRequest {
  readonly id: string;
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array> | null;
  /** Reads the whole body, instead of the stream. */
  bytes(): Promise<Uint8Array>;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** The address at the other end of the socket. */
  readonly peer: string | undefined;
}

/** An endpoint's answer to a request. */
export interface EndpointReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: no body. */
  readonly body: string | undefined;
  /** For the log: names and counts, never text of the request. */
  readonly notes: Readonly<Record<string, unknown>>;
  /** Instead of a body: news of a run, streamed until the signal ends it. */
  readonly news?: (gone: AbortSignal) => AsyncGenerator<RunNews>;
}

export interface HookReply extends EndpointReply {
  /** The route: `wake`, `agent`, `runs`, a mapping as `:id`, or `other`. */
  readonly route: string;
}

/** The authenticated sender, without its credential. */
export interface Auth {
  readonly kind: "token" | "signature";
  readonly id: string;
}
