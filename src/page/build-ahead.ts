/** Has the page built before somebody asks for it, where the program runs from its sources: that takes seconds. */
import type { FindAsset } from "./assets.ts";
import { prebuilt } from "./prebuilt.ts";

/** Models come first. */
const AFTER_MS = 2000;

/** Builds once, as soon as the server has been idle at a look every two seconds. */
export function buildPageAhead(findAsset: FindAsset, isIdle: () => boolean): void {
  if (prebuilt) return;
  const timer = setInterval(() => {
    if (!isIdle()) return;
    clearInterval(timer);
    findAsset("").catch(() => undefined); // whoever asks for the page hears why
  }, AFTER_MS);
  timer.unref();
}
