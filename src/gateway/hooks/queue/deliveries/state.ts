/**
 * The states of a run and what leads from one to the next. A delivery is one accepted request; each of its actions is
 * a run. `queued` and `running` are open, the others final; what is sent to a chat or to a callback afterwards has
 * states of its own.
 */

export const RUN_STATES = ["queued", "running", "succeeded", "failed", "dead", "cancelled"] as const;
export type RunState = (typeof RUN_STATES)[number];

export type RunEvent =
  | "claim" // a worker took it
  | "release" // its worker stops, or died: it goes back to where it was
  | "retry" // it failed for now
  | "store" // its turn is over, or called off, and stored; its event could not be posted yet
  | "succeed"
  | "fail" // it failed for good
  | "exhaust" // it failed for now too often, or is too old
  | "cancel";

/** What stands in no row cannot happen. */
const TRANSITIONS: Readonly<Record<RunState, Partial<Record<RunEvent, RunState>>>> = {
  queued: {
    claim: "running",
    store: "queued",
    succeed: "succeeded",
    fail: "failed",
    exhaust: "dead",
    cancel: "cancelled",
  },
  running: {
    release: "queued",
    retry: "queued",
    store: "queued",
    succeed: "succeeded",
    fail: "failed",
    exhaust: "dead",
    cancel: "cancelled",
  },
  succeeded: {},
  failed: {},
  dead: {},
  cancelled: {},
};

/** The state after an event; undefined where it cannot happen. */
export const nextState = (state: RunState, event: RunEvent): RunState | undefined => TRANSITIONS[state][event];

export const isFinal = (state: RunState): boolean => Object.keys(TRANSITIONS[state]).length === 0;

/** What became of the reply in the chat. `unknown`: it may have arrived, and is not sent again. */
export const REPLY_STATES = ["none", "pending", "sent", "skipped", "failed", "unknown"] as const;
export type ReplyState = (typeof REPLY_STATES)[number];

/** How a run's turn ended, before the run itself is final. */
export type Outcome = "ok" | "error" | "timeout" | "cancelled" | "dead";

/** The final state, and the event that leads there, of a run whose turn ended so. */
export const FINAL = {
  ok: "succeed",
  error: "fail",
  timeout: "fail",
  cancelled: "cancel",
  dead: "exhaust",
} as const satisfies Record<Outcome, RunEvent>;
