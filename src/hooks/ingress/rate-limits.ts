/**
 * Limits on how often requests come: of all senders together, and of each mapping. Only requests whose credential is
 * good count, so that strangers can neither use a limit up nor fill memory: there are as many buckets as limits in the
 * configuration, and a new configuration starts with full ones.
 */
import { retryAfter } from "../../base/retry-after.ts";
import type { RateLimit } from "../config.ts";
import { Refusal } from "./problems.ts";

/** Tokens, and when that many were there. */
interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/** For the answer. */
export type RateHeaders = Readonly<Record<string, string>>;

export class RateLimits {
  readonly #now: () => number;
  readonly #buckets = new WeakMap<RateLimit, Bucket>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Takes one request from every limit, or from none. Returns headers of the one that is nearest to its end.
   * Throws a `Refusal` where one is there.
   */
  take(limits: readonly (RateLimit | undefined)[]): RateHeaders {
    const now = this.#now();
    const states = limits.flatMap((limit) => (limit ? [stateOf(limit, this.#buckets.get(limit), now)] : []));
    const [nearest] = states.toSorted((a, b) => a.tokens / a.burst - b.tokens / b.burst);
    if (!nearest) return {};
    const waitMs = Math.max(...states.map(({ tokens, perMs }) => (1 - tokens) / perMs));
    if (waitMs > 0) {
      const headers = { ...headersOf(nearest), ...retryAfter(waitMs) };
      throw new Refusal("rate_limited", { headers });
    }
    for (const { limit, tokens } of states) this.#buckets.set(limit, { tokens: tokens - 1, atMs: now });
    return headersOf({ ...nearest, tokens: nearest.tokens - 1 });
  }
}

interface State {
  readonly limit: RateLimit;
  readonly tokens: number;
  readonly burst: number;
  readonly perMs: number;
}

function stateOf(limit: RateLimit, bucket: Bucket | undefined, now: number): State {
  const { count, seconds } = paceOf(limit);
  const { burst = Math.max(1, Math.floor(count)) } = limit;
  const perMs = count / seconds / 1000;
  const since = bucket ? Math.max(0, now - bucket.atMs) : 0; // a clock may be set back
  return { limit, burst, perMs, tokens: Math.min(burst, (bucket?.tokens ?? burst) + since * perMs) };
}

const paceOf = ({ perSecond, perMinute }: RateLimit): { count: number; seconds: number } =>
  perSecond === undefined ? { count: perMinute ?? 1, seconds: 60 } : { count: perSecond, seconds: 1 };

/** draft-ietf-httpapi-ratelimit-headers, with the names that most clients know. */
function headersOf({ limit, tokens, burst, perMs }: State): RateHeaders {
  const { count, seconds } = paceOf(limit);
  return {
    "ratelimit-policy": `${count};w=${seconds};burst=${burst}`,
    "ratelimit-limit": String(burst),
    "ratelimit-remaining": String(Math.floor(tokens)),
    "ratelimit-reset": String(Math.ceil((burst - tokens) / perMs / 1000)),
  };
}
