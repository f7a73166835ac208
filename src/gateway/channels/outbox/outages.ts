/**
 * Tracks channels that refuse messages. Each outage is logged twice: when the first message to a channel fails, and
 * when the last failed one arrives or is given up.
 */
import { type Logger, secondsBetween } from "../../../base/index.ts";

/** Maximum number of recipients remembered per channel; the outage ends with these. */
const LANES_MAX = 10_000;

interface Outage {
  readonly sinceMs: number;
  attempts: number;
  /** Recipients whose messages failed and are retried. */
  readonly lanes: Set<string>;
}

interface Message {
  readonly channel: string;
  readonly lane: string;
}

export class Outages {
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #byChannel = new Map<string, Outage>();

  constructor({ log, now }: { log: Logger; now: () => number }) {
    this.#log = log;
    this.#now = now;
  }

  failed({ channel, lane }: Message, reason: string | null): void {
    const known = this.#byChannel.get(channel);
    const outage = known ?? { sinceMs: this.#now(), attempts: 0, lanes: new Set() };
    if (!known) {
      this.#byChannel.set(channel, outage);
      this.#log.warn("a channel refuses messages; they will be retried", { channel, reason });
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

  #end(channel: string, { sinceMs, attempts }: Outage): void {
    this.#byChannel.delete(channel);
    const seconds = secondsBetween(sinceMs, this.#now());
    this.#log.info("a channel's outage is over: no message is waiting for a retry", { channel, seconds, attempts });
  }
}
