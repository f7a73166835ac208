/**
 * Logs when the process has no file descriptor left. New connections then wait without an error, because the system
 * cannot pass them on.
 */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import type { Logger } from "../base/index.ts";

const EVERY_MS = 5000;
const USED_UP: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE"]);

/** Logs one line when they are used up, and one when some are free again. */
export function watchDescriptors(log: Pick<Logger, "error" | "info">, everyMs = EVERY_MS): void {
  let wereLeft = true;
  const look = (): void => {
    const areLeft = descriptorsLeft();
    if (areLeft === wereLeft) return;
    wereLeft = areLeft;
    if (areLeft) log.info("file descriptors are available again");
    else log.error("out of file descriptors: new connections wait until others close; raise 'ulimit -n'");
  };
  setInterval(look, everyMs).unref();
}

function descriptorsLeft(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return true;
  } catch (error) {
    return !USED_UP.has((error as NodeJS.ErrnoException).code);
  }
}
