/**
 * Reports a request's outcome to its sender: one signed POST (Standard Webhooks) to the URL it gave. The host is
 * resolved once and checked, and the connection uses the checked address, so that the name cannot point elsewhere in
 * between. Redirects are not followed, and only the status of the answer is read.
 */
import { lookup as resolveHost } from "node:dns/promises";
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { abortable, messageOf, parseRetryAfter } from "../../../base/index.ts";
import { isPublicAddress } from "../../../base/system.ts";
import { childTrace, type TraceHeaders } from "../trace.ts";
import { standardWebhooks } from "../ingress/signatures/standard-webhooks.ts";

const TIMEOUT_MS = 10_000;
const RETRY_AFTER_MS_MAX = 86_400_000;

/** With the trace of the request. */
export interface Callback extends TraceHeaders {
  readonly url: string;
  /** JSON. */
  readonly body: string;
  /** The same for every attempt. */
  readonly id: string;
  /** `whsec_…`; undefined: not signed. */
  readonly secret: string | undefined;
  readonly nowMs: number;
  readonly signal: AbortSignal;
  /** True allows addresses of this machine and its network, and plain http. */
  readonly allowPrivate: boolean;
  /** Resolves host names; absent: the system's resolver. */
  readonly lookup?: (host: string, options: { all: true }) => Promise<readonly { readonly address: string }[]>;
}

/** `retry`: the same request may succeed later. */
export type CallbackOutcome =
  | { readonly kind: "sent"; readonly status: number }
  | { readonly kind: "retry"; readonly reason: string; readonly afterMs?: number }
  | { readonly kind: "failed"; readonly reason: string };

/** Never throws. Each step, including name resolution, ends at the time limit or by the signal. */
export async function sendCallback(given: Callback): Promise<CallbackOutcome> {
  const problem = urlProblem(given.url, given);
  if (problem) return { kind: "failed", reason: problem };
  const callback = { ...given, signal: AbortSignal.any([given.signal, AbortSignal.timeout(TIMEOUT_MS)]) };
  const url = new URL(callback.url);
  const address = await checkedAddress(url.hostname, callback);
  if ("reason" in address) return address;
  try {
    return outcomeOf(await post(url, { ...callback, address: address.address }));
  } catch (error) {
    return { kind: "retry", reason: messageOf(error) };
  }
}

/** The reason to refuse a URL before resolving it; undefined: it is allowed. */
export function urlProblem(text: string, { allowPrivate }: { allowPrivate: boolean }): string | undefined {
  if (!URL.canParse(text) || text.includes("\0")) return "callbackUrl is not a URL";
  const { protocol, username, password, hostname } = new URL(text);
  if (protocol !== "https:" && !(allowPrivate && protocol === "http:")) return "callbackUrl must be https";
  if (username || password) return "callbackUrl must not hold a name or password";
  const bare = hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(bare) !== 0 && !isPublicAddress(bare)) return "callbackUrl is not a public address";
  return undefined;
}

/** Every address of the name must be public, because the system may pick any of them. */
async function checkedAddress(
  hostname: string,
  { allowPrivate, signal, lookup = resolveHost }: Callback,
): Promise<{ address: string } | (CallbackOutcome & { reason: string })> {
  const bare = hostname.replace(/^\[|\]$/g, "");
  try {
    const found = isIP(bare) === 0 ? await abortable(lookup(bare, { all: true }), [signal]) : [{ address: bare }];
    const [first] = found;
    if (!first) return { kind: "retry", reason: "the host of callbackUrl has no address" };
    if (!allowPrivate && !found.every(({ address }) => isPublicAddress(address))) {
      return { kind: "failed", reason: "callbackUrl is not a public address" };
    }
    return { address: first.address };
  } catch {
    return { kind: "retry", reason: "the host of callbackUrl cannot be resolved" };
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

function post(url: URL, { address, ...callback }: Callback & { address: string }): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const rawBody = new TextEncoder().encode(callback.body);
  const options: RequestOptions = {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "content-length": rawBody.length,
      ...signed(callback, rawBody),
      ...childTrace(callback),
    },
    timeout: TIMEOUT_MS,
    signal: callback.signal,
    agent: false, // a fresh connection: a pooled one may have been opened when the name pointed elsewhere
    lookup: (_, { all }, done) => {
      const family = isIP(address);
      if (all) done(null, [{ address, family }]);
      else done(null, address, family);
    },
  };
  const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options, (response) => {
    resolve({ status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] });
    response.destroy();
  });
  request.on("error", reject);
  request.on("timeout", () => request.destroy(new Error("timed out")));
  request.end(rawBody);
  return promise;
}

function signed({ secret, id, nowMs, url }: Callback, rawBody: Uint8Array): Record<string, string> {
  if (secret === undefined) return { "webhook-id": id };
  return standardWebhooks.sign({ secrets: [secret] }, { rawBody, id, nowMs, url, method: "POST", headers: {} });
}

function outcomeOf({ status, retryAfter }: Answer): CallbackOutcome {
  if (status >= 200 && status < 300) return { kind: "sent", status };
  const reason = `callbackUrl answered ${status}`;
  if (status !== 408 && status !== 425 && status !== 429 && status < 500) return { kind: "failed", reason };
  const afterMs = parseRetryAfter(retryAfter);
  return { kind: "retry", reason, ...(afterMs ? { afterMs: Math.min(afterMs, RETRY_AFTER_MS_MAX) } : {}) };
}
