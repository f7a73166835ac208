/**
 * The machine behind most formats: text, an opening tag, the body of a call, and where it ends.
 *
 * Tags never come out as text, nor the white space that sets a call off from its neighbours. What stands between tags
 * and is no call comes out as text, without them. A call without its closing tag counts where the text ends or another
 * call begins.
 */
import { findFirst, heldLengthOf, type CallEvent, type ParsedEvent, type TextParser } from "./format.ts";
import type { Cut, Scan } from "./scan.ts";

export interface Tagged {
  /** Texts that begin a call. */
  readonly opens: readonly string[];
  /** Texts that end one, and never come out as text behind one. */
  readonly closes: readonly string[];
  /** Finds the end of a body. */
  readonly makeScan: (open: string) => Scan;
  /** The calls in a body, none where any part of it is no call. */
  readonly callsIn: (body: string, open: string) => readonly CallEvent[];
  /** An opening text that counts only where nothing but white space stands before it; it belongs to the body. */
  readonly openAtStart?: string;
}

export function makeTaggedParser(format: Tagged): TextParser {
  let pending = ""; // text that is not decided yet; inside a call, its body so far
  let body: { readonly scan: Scan; readonly open: string } | undefined; // inside a call
  let gap = ""; // white space in front of the call
  let isAfterCall = false; // white space here belongs to the call
  let isStart = format.openAtStart !== undefined; // a call may begin here without a tag

  /** A call that needs no tag, at the start or behind another; false: more is needed. */
  const takeStart = (open: string): boolean => {
    const text = pending.replace(isAfterCall ? /^[\s;,]+/ : /^\s+/, "");
    if (text.length < open.length && open.startsWith(text)) return false;
    isStart = false;
    if (!text.startsWith(open)) return true;
    gap = pending.slice(0, pending.length - text.length);
    pending = text;
    body = { scan: format.makeScan(""), open: "" };
    return true;
  };

  /** Text up to an opening tag; false: more is needed. */
  const takeText = (events: ParsedEvent[]): boolean => {
    const found = findFirst(pending, format.opens);
    const end = found ? found.at : pending.length - heldLengthOf(pending, format.opens);
    let text = pending.slice(0, end);
    if (isAfterCall) text = text.trimStart();
    const kept = text.trimEnd();
    if (kept !== "") {
      isAfterCall = false;
      addText(events, kept);
    }
    if (!found) {
      pending = text.slice(kept.length) + pending.slice(end);
      return false;
    }
    gap = text.slice(kept.length);
    pending = pending.slice(found.at + found.tag.length);
    body = { scan: format.makeScan(found.tag), open: found.tag };
    return true;
  };

  /** Ends the call at a cut; one that is none, at the first tag in it: a quote before that tag began no string. */
  const closeCall = (events: ParsedEvent[], cut: Cut, { open }: { open: string }): void => {
    const calls = format.callsIn(pending.slice(0, cut.at), open);
    const end = calls.length > 0 ? cut : (firstTag(pending, format) ?? cut);
    isAfterCall = calls.length > 0;
    isStart = isAfterCall && format.openAtStart !== undefined;
    if (isAfterCall) events.push(...calls);
    else addText(events, gap + pending.slice(0, end.at));
    pending = pending.slice(end.at + end.length);
    body = undefined;
  };

  const takeAll = (events: ParsedEvent[]): void => {
    for (;;) {
      if (body) {
        const end = body.scan(pending);
        if (!end) return;
        closeCall(events, end, body);
      } else if (!(isStart ? takeStart(format.openAtStart!) : takeText(events))) return;
    }
  };

  return {
    push(text) {
      const events: ParsedEvent[] = [];
      pending += text;
      takeAll(events);
      return events;
    },
    end() {
      const events: ParsedEvent[] = [];
      while (body) {
        const length = heldLengthOf(pending, format.closes);
        closeCall(events, { at: pending.length - length, length }, body);
        takeAll(events);
      }
      if (!isAfterCall || pending.trim() !== "") addText(events, pending);
      pending = "";
      return events;
    },
  };
}

/** The first tag in a text; an opening one is left for the next call. */
function firstTag(text: string, { opens, closes }: Tagged): Cut | undefined {
  const found = findFirst(text, [...opens, ...closes]);
  return found && { at: found.at, length: closes.includes(found.tag) ? found.tag.length : 0 };
}

function addText(events: ParsedEvent[], text: string): void {
  if (text !== "") events.push({ kind: "text", text });
}
