/** The context of every command. */
import type { Client } from "../client/client.ts";
import type { Terminal } from "./terminal.ts";

export interface CliContext {
  readonly client: Client;
  readonly terminal: Terminal;
  /** Folder of the history of prompts. */
  readonly home: string;
  /** Command that opens a file in an editor; undefined: not set. */
  readonly editor: string | undefined;
  readonly nowMs: () => number;
  /** Runs `work` with a signal that Ctrl+C aborts; a second Ctrl+C ends the process. */
  interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** Ctrl+C ended the command. Its message, if any, names the remaining files or processes. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** A failure that the command has reported already. */
export class ReportedFailure extends Error {
  override readonly name = "ReportedFailure";
}

/** Ctrl+C aborts the work. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const onInterrupt = (): void => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort();
  };
  process.on("SIGINT", onInterrupt);
  try {
    return await work(stop.signal);
  } finally {
    process.off("SIGINT", onInterrupt);
  }
}
