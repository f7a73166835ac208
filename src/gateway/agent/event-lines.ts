/**
 * Renders events as lines of a prompt: `System: [time] text`, one event each. The text of an event cannot begin a line,
 * so that none passes for another event; a text that is too long is cut and says so.
 */
import { boundaryNotice, indented, wrapOutside } from "./boundary/index.ts";
import type { TaintedText } from "./boundary/tainted-text.ts";
import type { WaitingEvent } from "./events.ts";

export interface LineLimits {
  /** Events in one prompt. */
  readonly eventsMax: number;
  /** UTF-16 units of one event's text. */
  readonly charsMax: number;
}

export interface EventLines {
  /** Empty if no events wait. */
  readonly text: string;
  /** The events that the text shows. */
  readonly shown: readonly WaitingEvent[];
}

/**
 * @param events the oldest first
 * @param waiting number of all waiting events
 */
export function renderEvents(events: readonly WaitingEvent[], limits: LineLimits & { waiting: number }): EventLines {
  const shown = events.slice(0, limits.eventsMax);
  if (shown.length === 0) return { text: "", shown };
  const lines = shown.map((event) => lineOf(event, limits.charsMax));
  const more = limits.waiting - shown.length;
  if (more > 0) lines.push(`System: ${more} more ${more === 1 ? "event waits" : "events wait"} for the next turn.`);
  const hasOutside = shown.some(({ isWrapped, text }) => isWrapped && text.some(({ from }) => from === "external"));
  return { text: `${hasOutside ? `${boundaryNotice}\n\n` : ""}${lines.join("\n")}`, shown };
}

function lineOf(event: WaitingEvent, charsMax: number): string {
  const at = stamp(event.createdAt);
  const text = wrapOutside(cut(trimmed(event.text), charsMax), event);
  const times = event.count > 1 ? ` (${event.count} times, last ${stamp(event.lastAt)})` : "";
  const delivered = event.isDelivered ? " (for your information: a reply with this is on its way to people)" : "";
  return `System: [${at}]${times}${delivered} ${indented(text)}`;
}

const stamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

function trimmed(tainted: TaintedText): TaintedText {
  return tainted.map((part, i) => ({
    ...part,
    text: (i === 0 ? part.text.trimStart() : part.text).replace(i === tainted.length - 1 ? /\s+$/ : /$^/, ""),
  }));
}

/** The first `charsMax` units of a tainted text, and the number of units cut. */
function cut(tainted: TaintedText, charsMax: number): TaintedText {
  let left = charsMax;
  let missing = 0;
  const kept = tainted.map((part) => {
    const text =
      part.text.length <= left
        ? part.text
        : part.text
            .slice(0, left)
            .toWellFormed()
            .replace(/\ufffd$/, "");
    missing += part.text.length - text.length;
    left = Math.max(0, left - part.text.length);
    return { ...part, text };
  });
  return missing === 0 ? tainted : [...kept, { from: "operator", text: ` … (${missing} characters are missing)` }];
}
