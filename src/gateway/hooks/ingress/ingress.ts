/**
 * The webhook ingress: from a request to its answer. It checks the method, the credential, the body, then its meaning;
 * the result is stored durably before the sender gets an answer. Knows no HTTP library.
 */
import { AppError, messageOf, retryAfter } from "../../../base/index.ts";
import { parseTraceparent } from "../../../base/tracing.ts";
import type { GatewayConfig, HooksConfig } from "../config.ts";
import { hearsGet } from "./handshake.ts";
import { trimSlashes } from "../mapping/request.ts";
import { describeIngress, type IngressDescription } from "./openapi/describe.ts";
import { type Networks, parseNetworks } from "../../../base/system.ts";
import { clientAddress, publicUrl } from "./address.ts";
import { dismiss } from "./body.ts";
import { Authenticator } from "./authenticator.ts";
import { answerEarly } from "./early-handshake.ts";
import { answerFixed } from "./fixed.ts";
import { answerMapped, type MappedDeps } from "./mapped.ts";
import type { EndpointReply, HookReply, HookRequest, IngressDeps, IngressSettings } from "./ports.ts";
import { Refusal } from "./problems.ts";
import { RateLimits } from "./rate-limits.ts";
import { refusalReply } from "./reply.ts";
import { answerRun, parseRunPath, type RunDeps } from "./runs.ts";
import { ShareLimit } from "./share-limit.ts";
import type { RequestContext } from "./request-context.ts";
import { Waits } from "./waits.ts";

/** Maximum bodies of unauthenticated senders that are read at once. */
export const UNPROVED_READS_MAX = 64;
/** Maximum of these from one address. */
export const UNPROVED_SHARE = 16;
const UNPROVED_READS = { max: UNPROVED_READS_MAX, share: UNPROVED_SHARE };
/** In addition, for locked-out addresses, which may still have a sender with a valid signature. */
const LOCKED_READS = { max: 16, share: 8 };
const MIB = 1024 * 1024;
/** Maximum memory for such bodies: one of 32 MiB, packed and unpacked, fits into an address's share. */
const UNPROVED_BYTES = { max: 256 * MIB, share: 96 * MIB };
const LOCKED_BYTES = { max: 128 * MIB, share: 64 * MIB };
/** Retry-After when the database fails. */
const STORE_RETRY_MS = 30_000;

export interface Ingress {
  /** True if a path is below `hooks.path`, and hooks are on. */
  owns(pathname: string): boolean;
  /** Never throws. */
  receive(request: HookRequest): Promise<HookReply>;
  /** For the API description; undefined: hooks are off. */
  describe(): IngressDescription | undefined;
  /**
   * Answers every later request with 503.
   * @param backInMs for `Retry-After`
   */
  drain(backInMs: number): void;
}

/** Collects fields of the log line, and headers of the answer. */
type Collector = Pick<RequestContext, "note" | "addHeaders">;

export function makeIngress(deps: IngressDeps): Ingress {
  let backAtMs: number | undefined; // set while draining
  const checkOpen = (): void => {
    if (backAtMs === undefined) return;
    const headers = { ...retryAfter(backAtMs - deps.now()), connection: "close" };
    throw new Refusal("shutting_down", { headers });
  };
  const parts: MappedDeps & RunDeps = {
    ...deps,
    authenticator: new Authenticator(deps),
    limits: new RateLimits("requests", deps),
    questions: new RateLimits("questions", deps),
    unproved: { slots: new ShareLimit(UNPROVED_READS), bytes: new ShareLimit(UNPROVED_BYTES) },
    locked: { slots: new ShareLimit(LOCKED_READS), bytes: new ShareLimit(LOCKED_BYTES) },
    waits: new Waits(),
    async accept(request) {
      checkOpen(); // draining may have begun while the body was read or the transform ran
      return deps.accept(request);
    },
  };
  const networks = new WeakMap<readonly string[], Networks>(); // keyed by the list in a snapshot of the settings

  const trusted = ({ trustedProxies }: Pick<GatewayConfig, "trustedProxies">): Networks => {
    const found = networks.get(trustedProxies) ?? parseNetworks(trustedProxies);
    networks.set(trustedProxies, found);
    return found;
  };

  const begin = (request: HookRequest, settings: IngressSettings, collector: Collector): RequestContext => {
    const { id: requestId, method, url, headers, peer } = request;
    const forwardedFor = headers.get("x-forwarded-for");
    const proxies = trusted(settings.gateway);
    const address = clientAddress({ peer, forwardedFor, trusted: proxies });
    const signedUrl = (): string => publicUrl({ url, headers, peer, trusted: proxies });
    const path = pathBelow(url, settings.hooks);
    const client = { requestId, method, url, signedUrl, headers, address, path, nowMs: deps.now() };
    return { settings, request, client, ...collector };
  };

  return {
    owns(pathname) {
      const { hooks } = deps.settings();
      return hooks.enabled && (pathname === hooks.path || pathname.startsWith(`${hooks.path}/`));
    },
    async receive(request) {
      const trace = parseTraceparent(request.headers.get("traceparent"));
      const notes: Record<string, unknown> = { request_id: request.id, ...(trace && { trace_id: trace.traceId }) };
      const extraHeaders: Record<string, string> = {};
      const note: RequestContext["note"] = (fields) => void Object.assign(notes, fields);
      const addHeaders: RequestContext["addHeaders"] = (headers) => void Object.assign(extraHeaders, headers);
      const reply = await replyTo(request, async () => {
        checkOpen();
        return answer(parts, begin(request, deps.settings(), { note, addHeaders }));
      }).catch((error: unknown) => {
        deps.log.error("bug", { error: messageOf(error), stack: (error as Error)?.stack, request_id: request.id });
        return refusalReply(new Refusal("internal"), request.id);
      });
      const closing = reply.status >= 400 ? await dismiss(request.body) : {};
      return {
        ...reply,
        headers: { ...extraHeaders, ...closing, ...reply.headers, "x-request-id": request.id },
        notes: { ...notes, ...reply.notes },
        route: routeOf(deps, pathBelow(request.url, deps.settings().hooks), notes["mapping"]),
      };
    },
    describe: makeDescribe(deps),
    drain(backInMs) {
      backAtMs = deps.now() + backInMs;
      parts.waits.endAll();
    },
  };
}

/** Describes each configuration once. */
function makeDescribe({ settings, mappings }: IngressDeps): Ingress["describe"] {
  const descriptions = new WeakMap<HooksConfig, IngressDescription>();
  return () => {
    const now = settings();
    if (!now.hooks.enabled) return undefined;
    const isHeard = mappings(now).all.some(({ config }) => hearsGet(config.handshake));
    const known = descriptions.get(now.hooks) ?? describeIngress(now.hooks, { hearsGet: isHeard });
    descriptions.set(now.hooks, known);
    return known;
  };
}

const pathBelow = (url: URL, { path }: Pick<HooksConfig, "path">): string =>
  trimSlashes(url.pathname.slice(path.length));

/**
 * For a request that no mapping accepts, the first mapping with its path: the sender's credential may be wrong.
 * @param mapping that took the request
 */
function routeOf({ settings, mappings }: IngressDeps, path: string, mapping: unknown): string {
  if (typeof mapping === "string") return `:${mapping}`;
  if (path === "wake" || path === "agent") return path;
  if (parseRunPath(path)) return "runs";
  const owner = mappings(settings())
    .forPath(path)
    .find(({ config }) => config.match.path !== undefined);
  return owner ? `:${owner.id}` : "other";
}

/** A refusal is an answer; so is a database failure, after which the request has to be sent again. */
async function replyTo(request: HookRequest, work: () => Promise<EndpointReply>): Promise<EndpointReply> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return refusalReply(error, request.id);
    if (!(error instanceof AppError) || error.code !== "storage") throw error;
    const options = { headers: retryAfter(STORE_RETRY_MS), reason: messageOf(error), cause: error };
    return refusalReply(new Refusal("unavailable", options), request.id);
  }
}

/** Throws a `Refusal`. */
async function answer(parts: MappedDeps & RunDeps, context: RequestContext): Promise<EndpointReply> {
  const { hooks } = context.settings;
  const { method, url } = context.request;
  const { path } = context.client;
  if (!hooks.allowQueryToken && url.searchParams.has("token")) throw new Refusal("query_token_refused");
  const isFixed = path === "wake" || path === "agent";
  const candidates = isFixed ? [] : parts.mappings(context.settings).forPath(path);
  const early = answerEarly(parts.authenticator, candidates, context);
  if (early) return early;
  const run = method === "GET" || method === "HEAD" ? parseRunPath(path) : undefined;
  if (run) return answerRun(parts, run, context);
  if (method !== "POST") {
    const hears = candidates.some(({ config }) => hearsGet(config.handshake));
    throw new Refusal("method_not_allowed", { headers: { allow: hears ? "GET, POST" : "POST" } });
  }
  return isFixed ? answerFixed(parts, path, context) : answerMapped(parts, candidates, context);
}
