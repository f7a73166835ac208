/** The channel between a runner and its parent. */
import type { FromRunner, ToRunner } from "./messages.ts";

/** Towards the runner's parent. */
export interface Channel {
  send(message: FromRunner): void;
  onMessage(handle: (message: ToRunner) => void): void;
  /** Called when the parent has exited. */
  onDisconnect(handle: () => void): void;
  exit(code: number): void;
}
