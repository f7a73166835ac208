/** Commands whose failure is one line and exit code 1, and those that Ctrl+C ended: 130, as shells say it. */
import { messageOf } from "../base/index.ts";
import type { ConfigSources } from "../base/config/index.ts";
import { Interrupted, Told } from "./context.ts";
import type { Terminal } from "./terminal.ts";

export interface CliParts extends ConfigSources {
  readonly process: NodeJS.Process;
  /** Opened when it is wanted: a server has no use for it. */
  readonly terminal: () => Terminal;
}

export function failing<Args extends unknown[]>(
  parts: CliParts,
  work: (terminal: Terminal, ...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const terminal = parts.terminal();
    try {
      await work(terminal, ...args);
    } catch (error) {
      const isInterrupted = error instanceof Interrupted;
      const isTold = error instanceof Told;
      if (!isInterrupted && !isTold) terminal.note(`Error: ${messageOf(error)}`);
      else if (isInterrupted && error.message !== "") terminal.note(error.message);
      await terminal.flush();
      parts.process.exit(isInterrupted ? 130 : 1);
    }
  };
}
