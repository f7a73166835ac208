/** A limit on silence. */

/** Calls `expire` after `ms` without `touch`; 0 or Infinity: never. `stop` is final. */
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
