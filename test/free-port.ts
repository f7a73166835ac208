/**
 * Ports for programs that cannot choose one themselves. A port that the system chose and that is closed again may be
 * given to another process before the program listens; these are below all that Linux chooses.
 */
const FIRST = 16_384;
const COUNT = 16_384;
/** Ports of one test process, by its pid: processes at the same time have others. */
const EACH = 64;

let given = 0;

/** A free port of the loopback interface. */
export function freePort(): number {
  for (let tries = 0; tries < EACH; tries++) {
    const port = FIRST + ((process.pid * EACH + (given++ % EACH)) % COUNT);
    if (isFree(port)) return port;
  }
  throw new Error(`expected a free port among ${EACH}, got none`);
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}
