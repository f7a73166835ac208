/** Observers of the gateway, for metrics. They are added after it was made, and stay as long as it does. */
import type { SendOutcome } from "../channels/channel.ts";
import type { RunObserver } from "../hooks/queue/worker/observer.ts";

export interface GatewayObserver extends RunObserver {
  /** An attempt to send a message ended. */
  messageTried(channel: string, outcome: SendOutcome["kind"]): void;
}

export class Observers implements GatewayObserver {
  readonly #all: Partial<GatewayObserver>[] = [];

  add(observer: Partial<GatewayObserver>): void {
    this.#all.push(observer);
  }

  runEnded(...ended: Parameters<GatewayObserver["runEnded"]>): void {
    for (const each of this.#all) each.runEnded?.(...ended);
  }

  replyEnded(...ended: Parameters<GatewayObserver["replyEnded"]>): void {
    for (const each of this.#all) each.replyEnded?.(...ended);
  }

  callbackTried(...tried: Parameters<GatewayObserver["callbackTried"]>): void {
    for (const each of this.#all) each.callbackTried?.(...tried);
  }

  messageTried(...tried: Parameters<GatewayObserver["messageTried"]>): void {
    for (const each of this.#all) each.messageTried?.(...tried);
  }
}
