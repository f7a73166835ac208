/**
 * Posts the events of runs to the main session, in the order of their runs. The first that finds no room holds up those
 * behind it for a while, or until it is too old.
 */
import type { Script } from "../../base/store.ts";
import { dueEvents, type Run } from "../deliveries/runs.ts";
import { isFinal } from "../deliveries/state.ts";
import { MAX_AGE_MS } from "./backoff.ts";
import { giveUp, postEvent } from "./conclude.ts";
import type { WorkerPorts } from "./ports.ts";

/** How long to wait for room. */
const FULL_MS = 1000;
/** Events posted in one transaction: a longer one would delay other writes. */
const EVENTS_MAX = 50;

export interface Posted {
  /** Those that are final by it. */
  readonly runs: readonly Run[];
  /** False: no event waits any more. */
  readonly mayBeMore: boolean;
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

  /** Whether events have to wait for room. */
  get isHeldUp(): boolean {
    const leftMs = this.#fullUntil - this.#deps.now();
    return leftMs > 0 && leftMs <= FULL_MS; // more is left only where the clock was set back
  }

  /** Whether there is something to post now. */
  *isDue(): Script<boolean> {
    return !this.isHeldUp && (yield* dueEvents(1)).length > 0;
  }

  *post(): Script<Posted> {
    const posted: Run[] = [];
    if (this.isHeldUp) return { runs: posted, mayBeMore: true };
    const now = this.#deps.now();
    const context = { ports: this.#deps.ports, now };
    const due = yield* dueEvents(EVENTS_MAX);
    for (const run of due) {
      const after = yield* postEvent(run, context);
      if (isFinal(after.state)) {
        posted.push(after);
        continue;
      }
      if (now - run.createdAt <= MAX_AGE_MS) {
        this.#fullUntil = now + FULL_MS;
        return { runs: posted, mayBeMore: true };
      }
      const reason = "the main session had no room for its event";
      posted.push(yield* giveUp(run, { outcome: "dead", reason }, context));
    }
    return { runs: posted, mayBeMore: due.length === EVENTS_MAX };
  }
}
