/**
 * Notices a runner that hangs: a kernel that never ends, a deadlock, a stopped process. While requests wait for it, it
 * is asked now and then for a sign of life, which it gives between two steps. Time is counted in beats of a timer, not
 * read from a clock: a machine that slept, or a server that was stopped itself, adds one beat at most.
 */

/** An idle runner has nothing to do but to answer: it gets less time, where steps may take longer. */
const IDLE_MS_MAX = 30_000;

/** Beats of the shorter of both limits: a limit is kept to within so much of it. */
const BEATS = 10;

interface HeartbeatParts {
  /** How long a runner may take for one step. */
  readonly timeoutMs: number;
  /** Asks the runner for a sign of life. */
  ping(): void;
  /** Whether requests wait for the runner. */
  isAwaited(): boolean;
  /** Called once, when the runner has shown no progress for too long. */
  onHang(): void;
}

export interface Heartbeat {
  /** A request is about to be sent. */
  wake(): void;
  /** The runner said something that a request waits for. */
  progress(): void;
  /** The answer to a ping. @param turns of the runner's event loop, which go up with each step */
  pong(turns: number): void;
  stop(): void;
}

/** Owns a timer, which runs while the runner is not known to be idle. */
export function makeHeartbeat({ timeoutMs, ping, isAwaited, onHang }: HeartbeatParts): Heartbeat {
  const idleMs = Math.min(timeoutMs, IDLE_MS_MAX);
  const beatMs = idleMs / BEATS;
  const beatsMax = Math.ceil(timeoutMs / beatMs);
  let timer: ReturnType<typeof setInterval> | undefined;
  let beats = 0; // since the last progress
  let limit = BEATS;
  let turns: number | undefined;
  let isAsked = false;
  const ask = (): void => {
    if (isAsked) return; // a stopped process reads nothing: one ping waits for it, not hundreds
    isAsked = true;
    ping();
  };
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const progress = (): void => {
    beats = 0;
    limit = beatsMax;
  };
  const beat = (): void => {
    if (isAwaited() && ++beats >= limit) {
      stop();
      return onHang();
    }
    ask();
  };
  return {
    wake() {
      if (timer !== undefined) return;
      beats = 0;
      limit = BEATS; // until it has answered once: it was idle
      timer = setInterval(beat, beatMs);
      timer.unref?.();
      ask();
    },
    progress,
    pong(now) {
      isAsked = false;
      if (limit !== beatsMax || now !== turns) progress();
      turns = now;
      if (!isAwaited()) stop(); // what it was at has ended: this was behind it
    },
    stop,
  };
}

/** Where the limit is switched off. */
export const NO_HEARTBEAT: Heartbeat = { wake() {}, progress() {}, pong() {}, stop() {} };
