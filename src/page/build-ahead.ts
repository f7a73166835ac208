/** Builds the page in advance if the program runs from its sources, because building takes seconds. */
import type { FindAsset } from "./assets.ts";
import { prebuilt } from "./prebuilt.ts";

/** Models take precedence. */
const AFTER_MS = 2000;

/** Builds once, at the first check (every two seconds) at which the server is idle. */
export function buildPageAhead(findAsset: FindAsset, isIdle: () => boolean): void {
  if (prebuilt) return;
  const timer = setInterval(() => {
    if (!isIdle()) return;
    clearInterval(timer);
    findAsset("").catch(() => undefined); // a request for the page reports the error
  }, AFTER_MS);
  timer.unref();
}
