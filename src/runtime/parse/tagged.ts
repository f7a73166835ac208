/**
 * The parser for most formats: text, an opening tag, the body of a call, and its end.
 *
 * Tags are never part of the text, nor is the white space around a call. A body that is not a call comes out as text,
 * without its tags. A call without its closing tag counts if the text ends or another call begins. At a cut it is a cut
 * call, whose last argument may be partial.
 */
import { cutCallsIn } from "./cut-calls.ts";
import { findFirst, heldLengthOf, type CallEvent, type ParsedEvent, type TextParser } from "./format.ts";
import type { Cut, Scan } from "./scan.ts";

interface Tagged {
  /** Texts that begin a call. */
  readonly opens: readonly string[];
  /** Texts that end a call; after a call they are never text. */
  readonly closes: readonly string[];
  /** Makes a scan for the end of a body. */
  readonly makeScan: (open: string) => Scan;
  /** The calls in a body; empty if any part is not a call. */
  readonly callsIn: (body: string, open: string) => readonly CallEvent[];
  /** Texts, besides brackets, that can complete a cut body. */
  readonly closings?: readonly string[];
  /** An opening text that counts only if nothing but white space precedes it; it is part of the body. */
  readonly openAtStart?: string;
}

export function makeTaggedParser(format: Tagged): TextParser {
  let pending = ""; // undecided text; inside a call, its body so far
  let body: { readonly scan: Scan; readonly open: string } | undefined; // the current call, if any
  let gap = ""; // white space before the call
  let isAfterCall = false; // white space here belongs to the call
  let isStart = format.openAtStart !== undefined; // a call may begin here without a tag

  const enter = (open: string, { before, rest }: { before: string; rest: string }): true => {
    gap = before;
    pending = rest;
    body = { scan: format.makeScan(open), open };
    return true;
  };

  /** Reads a call without a tag, at the start or after another call; false: needs more text. */
  const takeStart = (open: string): boolean => {
    const text = pending.replace(isAfterCall ? /^[\s;,]+/ : /^\s+/, "");
    if (text.length < open.length && open.startsWith(text)) return false;
    isStart = false;
    const before = pending.slice(0, pending.length - text.length);
    return text.startsWith(open) ? enter("", { before, rest: text }) : true;
  };

  /** Reads text up to an opening tag; false: needs more text. */
  const takeText = (events: ParsedEvent[]): boolean => {
    const { text, gap, open, rest } = splitText(pending, { opens: format.opens, isAfterCall });
    isAfterCall &&= text === "";
    addText(events, text);
    if (open !== undefined) return enter(open, { before: gap, rest });
    pending = gap + rest;
    return false;
  };

  /**
   * Ends the call at a cut. A body that is not a call ends at the first tag in it: a quote before that tag began no
   * string.
   */
  const closeCall = (events: ParsedEvent[], cut: Cut, { open, isCut }: { open: string; isCut?: boolean }): void => {
    const found = pending.slice(0, cut.at);
    const callsIn = (text: string): readonly CallEvent[] => format.callsIn(text, open);
    const { closings } = format;
    const calls = isCut ? cutCallsIn(found, { text: gap + found, callsIn, closings }) : callsIn(found);
    const end = calls.length > 0 ? cut : (firstTag(pending.slice(0, cut.at + cut.length), format) ?? cut);
    isAfterCall = calls.length > 0;
    isStart = isAfterCall && format.openAtStart !== undefined;
    if (isAfterCall) events.push(...calls);
    else addText(events, gap + pending.slice(0, end.at));
    pending = pending.slice(end.at + end.length);
    body = undefined;
  };

  const takeAll = (events: ParsedEvent[] = []): ParsedEvent[] => {
    for (;;) {
      if (body) {
        const end = body.scan(pending);
        if (!end) return events;
        closeCall(events, end, body);
      } else if (!(isStart ? takeStart(format.openAtStart!) : takeText(events))) return events;
    }
  };

  return {
    push(text) {
      pending += text;
      return takeAll();
    },
    end(isCut = false) {
      const events: ParsedEvent[] = [];
      while (body) {
        const length = heldLengthOf(pending, format.closes);
        closeCall(events, { at: pending.length - length, length }, { open: body.open, isCut });
        takeAll(events);
      }
      if (!isAfterCall || pending.trim() !== "") addText(events, pending);
      pending = "";
      return events;
    },
  };
}

/**
 * Splits off text up to an opening tag, or as much as is certain; the white space after it; and the rest, which may
 * become a tag. Drops white space after a call.
 */
function splitText(pending: string, { opens, isAfterCall }: { opens: readonly string[]; isAfterCall: boolean }) {
  const found = findFirst(pending, opens);
  const end = found ? found.at : pending.length - heldLengthOf(pending, opens);
  const whole = isAfterCall ? pending.slice(0, end).trimStart() : pending.slice(0, end);
  const text = whole.trimEnd();
  const rest = pending.slice(end + (found ? found.tag.length : 0));
  return { text, gap: whole.slice(text.length), open: found?.tag, rest };
}

/** The first tag in a text; an opening tag is left for the next call. */
function firstTag(text: string, { opens, closes }: Tagged): Cut | undefined {
  const found = findFirst(text, [...opens, ...closes]);
  return found && { at: found.at, length: closes.includes(found.tag) ? found.tag.length : 0 };
}

function addText(events: ParsedEvent[], text: string): void {
  if (text !== "") events.push({ kind: "text", text });
}
