/**
 * Tracks channels that take no messages. Each outage is logged twice: when the first message to a channel fails, and
 * when the last failed one arrives or is given up. A refusal of our credentials is logged when it begins and ends.
 */
import { type Logger, secondsBetween } from "../../../base/index.ts";

/** Maximum number of recipients remembered per channel; the outage ends with these. */
const LANES_MAX = 10_000;
/** Bounds of the pause between two messages to a channel that refuses our credentials. */
const PROBE_FIRST_MS = 15_000;
const PROBE_MAX_MS = 300_000;

interface Outage {
  readonly sinceMs: number;
  attempts: number;
  /** Recipients whose messages failed and are retried. */
  readonly lanes: Set<string>;
}

/** A channel refuses our credentials. */
interface Refusal {
  readonly sinceMs: number;
  /** The platform's words. */
  readonly reason: string;
}

interface Message {
  readonly channel: string;
  readonly lane: string;
}

export class Outages {
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #byChannel = new Map<string, Outage>();
  readonly #refusals = new Map<string, Refusal>();

  constructor({ log, now }: { log: Logger; now: () => number }) {
    this.#log = log;
    this.#now = now;
  }

  failed({ channel, lane }: Message, reason: string | null): void {
    const known = this.#byChannel.get(channel);
    const outage = known ?? { sinceMs: this.#now(), attempts: 0, lanes: new Set() };
    if (!known) {
      this.#byChannel.set(channel, outage);
      if (!this.#refusals.has(channel)) {
        this.#log.warn("a channel refuses messages; they will be retried", { channel, reason });
      }
    }
    outage.attempts++;
    if (outage.lanes.size < LANES_MAX) outage.lanes.add(lane);
  }

  /** A message was sent, or is no longer retried. */
  settled({ channel, lane }: Message): void {
    const outage = this.#byChannel.get(channel);
    if (!outage?.lanes.delete(lane) || outage.lanes.size > 0) return;
    this.#end(channel, outage);
  }

  /**
   * Drops lanes without open messages, because theirs were cancelled.
   * @param lanes with open messages
   */
  keep(lanes: ReadonlySet<string>): void {
    for (const [channel, outage] of this.#byChannel) {
      for (const lane of outage.lanes) if (!lanes.has(lane)) outage.lanes.delete(lane);
      if (outage.lanes.size === 0) this.#end(channel, outage);
    }
  }

  get any(): boolean {
    return this.#byChannel.size > 0;
  }

  /**
   * The platform refused our credentials.
   * @returns pause until the next message to it: half of the refusal's duration so far, within bounds
   */
  refused(channel: string, reason: string): number {
    const known = this.#refusals.get(channel);
    if (!known) {
      this.#refusals.set(channel, { sinceMs: this.#now(), reason });
      this.#log.warn("a channel refuses our credentials: its messages wait until they are replaced", {
        channel,
        reason,
      });
    }
    const lastedMs = known ? this.#now() - known.sinceMs : 0;
    return Math.min(Math.max(lastedMs / 2, PROBE_FIRST_MS), PROBE_MAX_MS);
  }

  /** The platform answered a message otherwise: it takes our credentials. */
  accepted(channel: string): void {
    const refusal = this.#refusals.get(channel);
    if (!refusal) return;
    this.#refusals.delete(channel);
    const seconds = secondsBetween(refusal.sinceMs, this.#now());
    this.#log.info("a channel takes our credentials again", { channel, seconds });
  }

  /** Forgets all refusals, because the credentials may be new. Returns their channels. */
  forgetRefusals(): string[] {
    const channels = [...this.#refusals.keys()];
    this.#refusals.clear();
    return channels;
  }

  /** Start of each outage, by channel: messages to it are retried. */
  get since(): ReadonlyMap<string, number> {
    return new Map([...this.#byChannel].map(([channel, { sinceMs }]) => [channel, sinceMs]));
  }

  /** By channel. */
  get refusals(): ReadonlyMap<string, Refusal> {
    return this.#refusals;
  }

  #end(channel: string, { sinceMs, attempts }: Outage): void {
    this.#byChannel.delete(channel);
    const seconds = secondsBetween(sinceMs, this.#now());
    this.#log.info("a channel's outage is over: no message is waiting for a retry", { channel, seconds, attempts });
  }
}
