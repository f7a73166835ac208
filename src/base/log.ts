/**
 * Structured logs: one line of JSON per event, `time`, `level` and `msg` first. Never prompts or answers: who logs a
 * request logs its counts.
 */

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  /** Written only when debugging is on. */
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
}

/** @param write takes one whole line with its newline; @param now epoch milliseconds */
export function makeLogger(parts: { write: (line: string) => void; now: () => number; debug: boolean }): Logger {
  const line = (level: string) => (msg: string, fields?: LogFields) => {
    const event = { time: new Date(parts.now()).toISOString(), level, msg, ...fields };
    parts.write(`${JSON.stringify(event)}\n`);
  };
  return {
    debug: parts.debug ? line("debug") : () => {},
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
  };
}
