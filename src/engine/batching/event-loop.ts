/** The event loop for portable code: the host supplies it. */

export interface EventLoop {
  /** Nanoseconds since an arbitrary moment; never decreases. */
  nowNs(): number;
  /** Resolves once due timers, sockets and messages are handled. */
  nextTurn(): Promise<void>;
}

/** The event loop of this process or page. */
export function systemLoop(): EventLoop {
  const { setImmediate: immediate } = globalThis;
  const later: (run: () => void) => void = typeof immediate === "function" ? immediate : makeMessageTurns();
  return {
    nowNs: () => performance.now() * 1e6,
    nextTurn: () => new Promise((resolve) => void later(resolve)),
  };
}

/**
 * For pages, which have no `setImmediate`: a message that the page sends itself arrives after everything that is due
 * already.
 */
function makeMessageTurns(): (run: () => void) => void {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return (run) => {
    waiting.push(run);
    port2.postMessage(undefined);
  };
}
