/**
 * The event loop as the portable parts see it: the host passes one in.
 */

export interface EventLoop {
  /** Nanoseconds since some moment; never goes back. */
  nowNs(): number;
  /** Resolves once timers, sockets and messages that are due had their turn. */
  nextTurn(): Promise<void>;
}

/** That of this process, or of this page. */
export function systemLoop(): EventLoop {
  const { setImmediate: immediate } = globalThis;
  const later: (run: () => void) => void = typeof immediate === "function" ? immediate : makeMessageTurns();
  return {
    nowNs: () => performance.now() * 1e6,
    nextTurn: () => new Promise((resolve) => void later(resolve)),
  };
}

/** For pages, which have no `setImmediate`: a message to oneself arrives after what is due already. */
function makeMessageTurns(): (run: () => void) => void {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return (run) => {
    waiting.push(run);
    port2.postMessage(undefined);
  };
}
