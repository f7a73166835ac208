/** A limit on how long nothing may be heard. */

/** Calls `expire` when it was not touched for `ms`; 0 or Infinity: never. Stopped, it stays so. */
export function makeWatchdog(ms: number, expire: () => void): { touch(): void; stop(): void } {
  if (!(ms > 0) || ms === Infinity) return { touch() {}, stop() {} };
  let timer = setTimeout(expire, ms);
  let stopped = false;
  return {
    touch() {
      if (stopped) return;
      clearTimeout(timer);
      timer = setTimeout(expire, ms);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
