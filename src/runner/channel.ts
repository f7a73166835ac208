/** The way between a runner and whoever started it. */
import type { FromRunner, ToRunner } from "./messages.ts";

/** The way to whoever started the runner. */
export interface Channel {
  send(message: FromRunner): void;
  onMessage(handle: (message: ToRunner) => void): void;
  /** The parent is gone. */
  onDisconnect(handle: () => void): void;
  exit(code: number): void;
}
