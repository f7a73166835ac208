/**
 * Detects a runner that hangs: an endless kernel, a deadlock, a stopped process. While requests wait for a runner, it
 * is pinged regularly and answers between two steps. Time is counted in beats of a timer, not read from a clock: after
 * the machine slept or the server was stopped, at most one beat is added.
 */

/** An idle runner only has to answer, so its limit is lower even if steps may take longer. */
const IDLE_MS_MAX = 30_000;

/** Beats per limit (of the shorter one): the precision of a limit. */
const BEATS = 10;

interface HeartbeatParts {
  /** Longest time for one step. */
  readonly timeoutMs: number;
  /** Asks the runner for a pong. */
  ping(): void;
  /** Returns whether requests wait for the runner. */
  isAwaited(): boolean;
  /** Called once, when the runner has made no progress for too long. */
  onHang(): void;
}

export interface Heartbeat {
  /** A request is about to be sent. */
  wake(): void;
  /** A message arrived that a request waits for. */
  progress(): void;
  /** The answer to a ping. @param turns turns of the runner's event loop, which grow with each step */
  pong(turns: number): void;
  stop(): void;
}

/** Owns a timer, which runs until the runner is known to be idle. */
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
    if (isAsked) return; // a stopped process reads nothing, so one unanswered ping is enough
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
      limit = BEATS; // until its first answer: it was idle
      timer = setInterval(beat, beatMs);
      timer.unref?.();
      ask();
    },
    progress,
    pong(now) {
      isAsked = false;
      if (limit !== beatsMax || now !== turns) progress();
      turns = now;
      if (!isAwaited()) stop(); // the pong was queued after the work, which has ended
    },
    stop,
  };
}

/** For a disabled limit. */
export const NO_HEARTBEAT: Heartbeat = { wake() {}, progress() {}, pong() {}, stop() {} };
