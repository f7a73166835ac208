/** Channels whose replies fail repeatedly: their runs succeed, so nothing else reports them. */
import type { ReplyOutcome } from "../hooks/queue/worker/ports.ts";

/** Failures in a row that are reported at once; fewer are reported after a while. */
const FAILURES_MIN = 3;
const LASTING_MS = 5 * 60_000;

interface Streak {
  failures: number;
  readonly sinceMs: number;
}

export class ReplyFailures {
  readonly #now: () => number;
  /** By configured channel; absent: its last reply was sent. */
  readonly #streaks = new Map<string, Streak>();

  constructor(now: () => number) {
    this.#now = now;
  }

  replyEnded(outcome: ReplyOutcome["kind"] | "skipped", channel: string): void {
    if (outcome === "sent") this.#streaks.delete(channel);
    if (outcome !== "failed") return;
    const streak = this.#streaks.get(channel) ?? { failures: 0, sinceMs: this.#now() };
    streak.failures++;
    this.#streaks.set(channel, streak);
  }

  /** One line per channel. */
  findings(): string[] {
    return [...this.#streaks].flatMap(([channel, { failures, sinceMs }]) => {
      const minutes = Math.floor(Math.max(0, this.#now() - sinceMs) / 60_000);
      if (failures < FAILURES_MIN && minutes * 60_000 < LASTING_MS) return [];
      const count = failures === 1 ? "the last reply" : `the last ${failures} replies`;
      return [`${count} to channel '${channel}' failed, for ${minutes} min: see hearth hooks list --state failed`];
    });
  }
}
