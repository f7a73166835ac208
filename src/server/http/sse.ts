/**
 * A stream of frames as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). While a
 * model loads or processes a long prompt, comments keep the connection alive.
 */
import { jsonLine } from "./json-line.ts";
import type { Encoding } from "./stream.ts";

/** Proxies cut off connections that were silent for 30 s and more. */
const KEEP_ALIVE_MS = 15_000;

export interface Frame {
  /** The event's name, for protocols with names. */
  readonly event?: string;
  /** An object is sent as JSON. */
  readonly data: object | string;
}

/** @param failed the frames that end a failed stream, in the format of its protocol */
export function sse(
  failed: (error: unknown) => readonly Frame[],
  { keepAliveMs = KEEP_ALIVE_MS }: { keepAliveMs?: number } = {},
): Encoding<Frame> {
  return {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no", // stops nginx from buffering frames
    },
    value: textOf,
    error: (error) => failed(error).map(textOf).join(""),
    keepAlive: { text: ": keep-alive\n\n", everyMs: keepAliveMs },
  };
}

function textOf({ event, data }: Frame): string {
  const text = typeof data === "string" ? data : jsonLine(data);
  const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${event === undefined ? "" : `event: ${event}\n`}${lines.join("")}\n`;
}
