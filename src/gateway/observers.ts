/** Those who count what ends in the gateway. They come after it was made, and stay as long as it does. */
import type { RunObserver } from "../hooks/worker/worker.ts";

export class Observers implements RunObserver {
  readonly #all: RunObserver[] = [];

  add(observer: RunObserver): void {
    this.#all.push(observer);
  }

  runEnded(...ended: Parameters<RunObserver["runEnded"]>): void {
    for (const each of this.#all) each.runEnded(...ended);
  }

  replyEnded(...ended: Parameters<RunObserver["replyEnded"]>): void {
    for (const each of this.#all) each.replyEnded(...ended);
  }
}
