/**
 * Structured logs: one line of JSON per event; `time`, `level` and `msg` come first. Prompts and answers are never
 * logged: requests are logged with their counts.
 */

import { makeLineWriter } from "./line-writer.ts";

/** A field cannot replace the first three of the line. */
type LogFields = Readonly<Record<string, unknown>> & { readonly time?: never; level?: never; msg?: never };

/** Maximum characters of a text field: enough for a stack, not for whatever a client sends as a model's name. */
const TEXT_CHARS_MAX = 4096;

export interface Logger {
  /** Written only if debugging is on. */
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
}

/** @param write takes one whole line with its newline; @param now epoch milliseconds */
export function makeLogger(parts: { write: (line: string) => void; now: () => number; debug: boolean }): Logger {
  const line = (level: string) => (msg: string, fields?: LogFields) => {
    const event = { time: new Date(parts.now()).toISOString(), level, msg, ...fields };
    const whole = JSON.stringify(event);
    // a line shorter than the limit has no text to shorten
    parts.write(`${escaped(whole.length <= TEXT_CHARS_MAX ? whole : JSON.stringify(event, shortened))}\n`);
  };
  return {
    debug: parts.debug ? line("debug") : () => {},
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
  };
}

/** Escapes all control characters, more than JSON requires: people read logs in terminals. */
const escaped = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** A logger on a stream. Lines that cannot be written are dropped and counted; a later line reports how many. */
export function makeStreamLogger(
  stream: Parameters<typeof makeLineWriter>[0],
  parts: { now: () => number; debug: boolean },
): Logger {
  const lostLine = (count: number): string => {
    const event = {
      time: new Date(parts.now()).toISOString(),
      level: "warn",
      msg: "lines of this log were lost",
      count,
    };
    return `${JSON.stringify(event)}\n`;
  };
  return makeLogger({ ...parts, write: makeLineWriter(stream, lostLine) });
}

function shortened(_key: string, value: unknown): unknown {
  if (typeof value !== "string" || value.length <= TEXT_CHARS_MAX) return value;
  return `${value.slice(0, TEXT_CHARS_MAX).toWellFormed()}… (${value.length} characters)`;
}
