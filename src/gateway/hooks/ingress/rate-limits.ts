/**
 * Rate limits: of all senders together, and of each mapping. Only requests with a valid credential count, so that
 * strangers can neither use up a limit nor fill memory: there is one bucket per configured limit, and a new
 * configuration starts with full ones.
 *
 * Nodes that share a database share the buckets: each admits requests by its own estimate, reports its spending a few
 * times a second, and corrects the estimate by the answer. Requests admitted in excess are subtracted later.
 */
import { type Logger, messageOf, retryAfter } from "../../../base/index.ts";
import type { Peers, Spent } from "../../database/peers.ts";
import type { RateLimit } from "../config.ts";
import { Refusal } from "./problems.ts";

const REPORT_MS = 250;

/** A limit with its name; undefined: unlimited. */
export type NamedLimit = readonly [name: string, limit: RateLimit | undefined];

/** Tokens, and the time of that count. */
interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

export interface RateLimitParts {
  readonly now: () => number;
  readonly log: Logger;
  /** Absent in a process that shares no database. */
  readonly spend?: Peers["spend"] | undefined;
}

export type RateHeaders = Readonly<Record<string, string>>;

export class RateLimits {
  readonly #parts: RateLimitParts;
  /** Distinguishes these limits from others with the same names. */
  readonly #kind: string;
  readonly #buckets = new WeakMap<RateLimit, Bucket>();
  /** Spent tokens not yet reported. */
  #unreported = new Map<RateLimit, Spent>();
  #isReporting = false;

  constructor(kind: string, parts: RateLimitParts) {
    this.#kind = kind;
    this.#parts = parts;
  }

  /**
   * Takes one token from every limit, or from none. Returns headers of the limit with the fewest remaining tokens.
   * Throws a `Refusal` if a limit is used up.
   */
  take(limits: readonly NamedLimit[]): RateHeaders {
    const now = this.#parts.now();
    const states = limits.flatMap(([name, limit]) =>
      limit ? [{ name, ...stateOf(limit, this.#bucketOf(limit, now), now) }] : [],
    );
    const [nearest] = states.toSorted((a, b) => a.tokens / a.burst - b.tokens / b.burst);
    if (!nearest) return {};
    const waitMs = Math.max(...states.map(({ tokens, perMs }) => (1 - tokens) / perMs));
    if (waitMs > 0) {
      const headers = { ...headersOf(nearest), ...retryAfter(waitMs) };
      throw new Refusal("rate_limited", { headers });
    }
    for (const state of states) {
      this.#buckets.set(state.limit, { tokens: state.tokens - 1, atMs: now });
      if (this.#parts.spend) this.#note(state);
    }
    return headersOf({ ...nearest, tokens: nearest.tokens - 1 });
  }

  /** A bucket dated in the future, because the clock was set back, refills from now on. */
  #bucketOf(limit: RateLimit, now: number): Bucket | undefined {
    const bucket = this.#buckets.get(limit);
    if (!bucket || bucket.atMs <= now) return bucket;
    const fromNow = { ...bucket, atMs: now };
    this.#buckets.set(limit, fromNow);
    return fromNow;
  }

  #note({ name, limit, burst, perMs }: State & { readonly name: string }): void {
    const id = JSON.stringify([this.#kind, name, burst, perMs]); // a changed limit is a new bucket
    const taken = (this.#unreported.get(limit)?.taken ?? 0) + 1;
    this.#unreported.set(limit, { id, taken, burst, perMs });
    if (!this.#isReporting) this.#reportSoon();
  }

  #reportSoon(): void {
    this.#isReporting = true;
    setTimeout(() => void this.#report(), REPORT_MS).unref();
  }

  /** Reports spent tokens; after a failure they are added to the next report. */
  async #report(): Promise<void> {
    const all = this.#unreported;
    this.#unreported = new Map();
    try {
      const left = await this.#parts.spend!([...all.values()]);
      for (const [i, limit] of [...all.keys()].entries()) {
        const since = this.#unreported.get(limit)?.taken ?? 0;
        this.#buckets.set(limit, { tokens: left[i]! - since, atMs: this.#parts.now() });
      }
    } catch (error) {
      this.#parts.log.debug("sharing the rate limits failed", { error: messageOf(error) });
      for (const [limit, spent] of all) {
        const since = this.#unreported.get(limit)?.taken ?? 0;
        this.#unreported.set(limit, { ...spent, taken: spent.taken + since });
      }
    }
    this.#isReporting = false;
    if (this.#unreported.size > 0) this.#reportSoon();
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
  const since = bucket ? now - bucket.atMs : 0;
  return { limit, burst, perMs, tokens: Math.min(burst, (bucket?.tokens ?? burst) + since * perMs) };
}

const paceOf = ({ perSecond, perMinute }: RateLimit): { count: number; seconds: number } =>
  perSecond === undefined ? { count: perMinute ?? 1, seconds: 60 } : { count: perSecond, seconds: 1 };

/** draft-ietf-httpapi-ratelimit-headers, with the widely used names. */
function headersOf({ limit, tokens, burst, perMs }: State): RateHeaders {
  const { count, seconds } = paceOf(limit);
  return {
    "ratelimit-policy": `${count};w=${seconds};burst=${burst}`,
    "ratelimit-limit": String(burst),
    "ratelimit-remaining": String(Math.floor(tokens)),
    "ratelimit-reset": String(Math.ceil((burst - tokens) / perMs / 1000)),
  };
}
