/** Says when the process has no file descriptor left: connections then wait, and no other error tells. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { messageOf } from "./errors.ts";
import type { Logger } from "./log.ts";

const EVERY_MS = 5000;

/** One line each time that it comes to that. */
export function watchDescriptors(log: Logger): void {
  let areLeft = true;
  setInterval(() => {
    const failure = tryOpen();
    if (failure !== undefined && areLeft) {
      log.error("no file descriptor is left: new connections wait until others end; 'ulimit -n' sets the limit", {
        error: failure,
      });
    }
    areLeft = failure === undefined;
  }, EVERY_MS).unref();
}

function tryOpen(): string | undefined {
  try {
    closeSync(openSync(devNull, "r"));
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
