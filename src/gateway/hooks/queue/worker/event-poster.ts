/**
 * Posts the events of runs to the main session, in the order of their runs. The first event without room blocks the
 * later ones for a while, or until it is too old. If a blocked event wants a heartbeat, that is due at once, because it
 * makes room.
 */
import { AppError } from "../../../../base/index.ts";
import { parallel, type Transaction } from "../../../database/store.ts";
import type { Posting } from "../deliveries/posting.ts";
import { dueEvents, isHeartbeatAwaited, type Run } from "../deliveries/runs.ts";
import { isFinal } from "../deliveries/state.ts";
import { MAX_AGE_MS } from "./backoff.ts";
import { giveUp, postEvent, wakeEvent } from "./conclude.ts";
import type { WorkerPorts } from "./ports.ts";

/** Delay before looking for room again. */
const FULL_MS = 1000;
/** Events posted in one transaction: a longer one would delay other writes. */
const EVENTS_MAX = 50;

/** Events of runs made in this transaction. */
export type NewEvents = Pick<Posting, "take" | "store">;

export const NOTHING_POSTED: NewEvents = {
  take: () => false,
  *store() {
    yield* [];
  },
};

export interface Posted {
  /** Runs that became final. */
  readonly ended: readonly Run[];
  /** True if a heartbeat has become due. */
  readonly isHastened: boolean;
}

export interface EventPosterDeps {
  readonly ports: WorkerPorts;
  readonly now: () => number;
}

export class EventPoster {
  readonly #deps: EventPosterDeps;
  #fullUntil = 0;

  constructor(deps: EventPosterDeps) {
    this.#deps = deps;
  }

  /** True if events are waiting for room. */
  get isHeldUp(): boolean {
    const leftMs = this.#fullUntil - this.#deps.now();
    return leftMs > 0 && leftMs <= FULL_MS; // a longer time is possible only if the clock was set back
  }

  *isDue(): Transaction<boolean> {
    return !this.isHeldUp && (yield* dueEvents(1)).length > 0;
  }

  /** For runs made in this transaction: their events follow all waiting ones. */
  *ofNew(): Transaction<NewEvents> {
    if (this.isHeldUp) return NOTHING_POSTED;
    const { ports, now } = this.#deps;
    const [waiting, events] = yield* parallel(dueEvents(1), ports.openEvents());
    let isOpen = waiting.length === 0;
    return {
      take: (run) => {
        const { action } = run;
        if (!isOpen || action.kind !== "wake") return false;
        isOpen = this.#fits(() => events.add(wakeEvent(action, run, now())));
        return isOpen;
      },
      store: () => events.store(),
    };
  }

  /** True if there was room for an event. */
  #fits(add: () => unknown): boolean {
    try {
      add();
      return true;
    } catch (error) {
      if (error instanceof AppError && error.code === "busy") this.#fullUntil = this.#deps.now() + FULL_MS;
      return false;
    }
  }

  *post(): Transaction<Posted> {
    const ended: Run[] = [];
    if (this.isHeldUp) return { ended, isHastened: false };
    const { ports } = this.#deps;
    const now = this.#deps.now();
    const context = { ports, now };
    const due = yield* dueEvents(EVENTS_MAX);
    for (const run of due) {
      const after = yield* postEvent(run, context);
      if (isFinal(after.state)) {
        ended.push(after);
        continue;
      }
      if (now - run.createdAt <= MAX_AGE_MS) {
        this.#fullUntil = now + FULL_MS;
        return { ended, isHastened: (yield* isHeartbeatAwaited()) && (yield* ports.hastenEvents()) };
      }
      const reason = "the main session had no room for its event";
      ended.push(yield* giveUp(run, { outcome: "dead", reason }, context));
    }
    return { ended, isHastened: false };
  }
}
