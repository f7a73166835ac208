/** A stream of objects as lines of JSON; an error is the last line. */
import { errorBody } from "./errors.ts";
import { jsonLine } from "./json-line.ts";
import type { Encoding } from "./stream.ts";

const line = (value: object): string => `${jsonLine(value)}\n`;

export const NDJSON: Encoding<object> = {
  headers: { "content-type": "application/x-ndjson", "x-accel-buffering": "no" }, // stops nginx from buffering lines
  value: line,
  isApart: true,
  error: (error) => line(errorBody(error)),
};
