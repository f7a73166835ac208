/** Commands whose failure is one line and exit code 1, and those that Ctrl+C ended: 130, as shells say it. */
import { messageOf } from "../base/errors.ts";
import type { ConfigSources } from "../config.ts";
import { Interrupted } from "./context.ts";
import { makeTerminal, type Terminal } from "./terminal.ts";

export interface CliParts extends ConfigSources {
  readonly process: NodeJS.Process;
}

export function failing<Args extends unknown[]>(
  parts: CliParts,
  work: (terminal: Terminal, ...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const terminal = makeTerminal(parts.process, parts.env);
    try {
      await work(terminal, ...args);
    } catch (error) {
      const isInterrupted = error instanceof Interrupted;
      if (!isInterrupted) terminal.note(`Error: ${messageOf(error)}`);
      await new Promise((resolve) => terminal.output.write("", resolve)); // what was written is on its way
      parts.process.exit(isInterrupted ? 130 : 1);
    }
  };
}
