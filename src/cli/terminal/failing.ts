/** Failing commands print one line and exit with code 1; commands ended by Ctrl+C exit with 130, as in shells. */
import { messageOf } from "../../base/index.ts";
import type { ConfigSources } from "../../base/config/index.ts";
import { Interrupted, ReportedFailure } from "./context.ts";
import type { Terminal } from "./terminal.ts";

export interface CliParts extends ConfigSources {
  readonly process: NodeJS.Process;
  /** Opened on first use: a server does not need it. */
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
      const isReported = error instanceof ReportedFailure;
      if (!isInterrupted && !isReported) terminal.note(`Error: ${messageOf(error)}`);
      else if (isInterrupted && error.message !== "") terminal.note(error.message);
      await terminal.flush();
      parts.process.exit(isInterrupted ? 130 : 1);
    }
  };
}
