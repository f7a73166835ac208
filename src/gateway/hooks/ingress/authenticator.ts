/**
 * Authenticates senders by hook tokens and signatures. All failures get the same answer and are counted against the
 * client's address; a valid credential is always accepted, and clears earlier failures.
 */
import { isRecent, type Logger, retryAfter } from "../../../base/index.ts";
import type { HooksConfig, SignatureConfig } from "../config.ts";
import { verifySignature } from "./signatures/index.ts";
import { failureKey } from "./address.ts";
import type { Auth } from "./ports.ts";
import { Refusal } from "./problems.ts";
import { FAILURES_MAX, Throttle, WINDOW_MS, type Failure } from "./throttle.ts";
import { checkToken, findCredential } from "./tokens.ts";

/** Interval of the warning about tokens in URLs. */
const WARN_EVERY_MS = 60_000;
/** Date when tokens in URLs became deprecated, 2026-11-21 (RFC 9745). */
const DEPRECATION = { deprecation: "@1795219200" };

export interface Client {
  readonly requestId: string;
  readonly method: string;
  readonly url: URL;
  /** The URL as its sender wrote it, before proxies. */
  readonly signedUrl: () => string;
  readonly headers: Headers;
  readonly address: string;
  /** Relative to the ingress, without slashes at its ends. */
  readonly path: string;
  readonly nowMs: number;
}

/** An authenticated sender. */
export interface Pass {
  readonly auth: Auth;
  /** The sender's own id of this delivery. */
  readonly deliveryId?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class Authenticator {
  readonly #log: Logger;
  readonly #throttle: Throttle;
  #warnedAtMs = -Infinity;

  constructor({ log, now }: { log: Logger; now: () => number }) {
    this.#log = log;
    this.#throttle = new Throttle(now);
  }

  /** Throws a `Refusal`, and counts it, if the request has no token that is valid here. */
  admit(hooks: HooksConfig, client: Client): Pass {
    const verdict = this.byToken(hooks, client);
    if ("reason" in verdict) throw this.refusal(client, verdict.reason);
    return verdict;
  }

  /** Like `admit`, before the path is known: a token for any path is accepted. */
  admitSomewhere(hooks: HooksConfig, client: Client): void {
    try {
      this.admit(hooks, client);
    } catch (error) {
      if (!(error instanceof Refusal) || error.problem !== "token_not_for_path") throw error;
    }
  }

  /**
   * The pass of a valid hook token, or the reason of the failure. Counts no failure. Throws if the token is for other
   * paths.
   */
  byToken(hooks: HooksConfig, client: Client): Pass | { readonly reason: string } {
    const { headers, url, path, nowMs } = client;
    const credential = findCredential(headers, url.searchParams);
    if (!credential) return { reason: "no token" };
    const verdict = checkToken(hooks, { value: credential.value, path, nowMs });
    if (!verdict.ok && verdict.reason === "not for this path") throw new Refusal("token_not_for_path");
    if (!verdict.ok) return { reason: `the token is ${verdict.reason}` };
    this.#throttle.clear(failureKey(client.address));
    const auth: Auth = { kind: "token", id: verdict.id };
    if (credential.from !== "query") return { auth };
    this.#warn(client);
    return { auth, headers: DEPRECATION };
  }

  /** Admits a valid signature for a mapping, or returns the reason. Does not count failures. */
  bySignature(
    { id, auth: config }: { id: string; auth: SignatureConfig },
    client: Client,
    rawBody: Uint8Array,
  ): Pass | { readonly reason: string } {
    const { method, nowMs } = client;
    const headers = Object.fromEntries(client.headers);
    const verdict = verifySignature(config, { rawBody, headers, url: client.signedUrl(), method, nowMs });
    if (!verdict.ok) return verdict;
    this.#throttle.clear(failureKey(client.address));
    const auth: Auth = { kind: "signature", id };
    return { auth, ...(verdict.deliveryId === undefined ? {} : { deliveryId: verdict.deliveryId }) };
  }

  isLocked({ address }: Client): boolean {
    return this.#throttle.isLocked(failureKey(address));
  }

  /**
   * Counts a failure.
   * @param scheme HTTP scheme that the answer demands
   */
  refusal(client: Client, reason: string, scheme: "Bearer" | "Basic" = "Bearer"): Refusal {
    return refusalOf(this.#throttle.fail(failureKey(client.address)), reason, scheme);
  }

  #warn({ requestId, path, nowMs }: Client): void {
    if (isRecent(this.#warnedAtMs, nowMs, WARN_EVERY_MS)) return;
    this.#warnedAtMs = nowMs;
    const text = "a hook token came in the address (?token=), which ends up in logs: send it as a bearer token";
    this.#log.warn(text, { request_id: requestId, hook: path });
  }
}

function refusalOf(failure: Failure, reason: string, scheme: "Bearer" | "Basic"): Refusal {
  const headers = rateHeaders(failure);
  const { lockedForMs } = failure;
  if (lockedForMs !== undefined) {
    return new Refusal("too_many_failures", { headers: { ...headers, ...retryAfter(lockedForMs) }, reason });
  }
  const challenge = { "www-authenticate": `${scheme} realm="hooks"` };
  return new Refusal("unauthorized", { headers: { ...headers, ...challenge }, reason });
}

/** draft-ietf-httpapi-ratelimit-headers, with the widely used names. */
function rateHeaders({ remaining, resetMs }: Failure): Record<string, string> {
  return {
    "ratelimit-policy": `${FAILURES_MAX};w=${WINDOW_MS / 1000}`,
    "ratelimit-limit": String(FAILURES_MAX),
    "ratelimit-remaining": String(remaining),
    "ratelimit-reset": String(Math.max(1, Math.ceil(resetMs / 1000))),
  };
}
