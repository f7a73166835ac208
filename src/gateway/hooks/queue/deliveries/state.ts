/**
 * The states of a run and the transitions between them. A delivery is one accepted request; each of its actions is a
 * run. `queued` and `running` are open, the others final; the reply and the callback afterwards have states of their
 * own.
 */

export const RUN_STATES = ["queued", "running", "succeeded", "failed", "dead", "cancelled"] as const;
export type RunState = (typeof RUN_STATES)[number];

export type RunEvent =
  | "claim" // a worker claimed it
  | "release" // its worker stops, or died: it returns to the queue
  | "retry" // a temporary failure
  | "store" // its turn has ended, or was cancelled, and is stored; its event could not be posted yet
  | "succeed"
  | "fail" // a permanent failure
  | "exhaust" // too many temporary failures, or too old
  | "cancel";

/** Events without an entry are impossible. */
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

/** The state after an event; undefined if the event is impossible. */
export const nextState = (state: RunState, event: RunEvent): RunState | undefined => TRANSITIONS[state][event];

export const isFinal = (state: RunState): boolean => Object.keys(TRANSITIONS[state]).length === 0;

/** State of the reply to the chat. `unknown`: it may have arrived, and is not sent again. */
export const REPLY_STATES = ["none", "pending", "sent", "skipped", "failed", "unknown"] as const;
export type ReplyState = (typeof REPLY_STATES)[number];

/** The outcome of a run's turn, before the run itself is final. */
export type Outcome = "ok" | "error" | "timeout" | "cancelled" | "dead";

/** The final state of a run for each outcome, and the event that leads there. */
export const FINAL = {
  ok: "succeed",
  error: "fail",
  timeout: "fail",
  cancelled: "cancel",
  dead: "exhaust",
} as const satisfies Record<Outcome, RunEvent>;
