/**
 * Calls as Hermes and Qwen models write them, and the embedded model too: JSON between tags.
 *
 *     <tool_call>
 *     {"name": "get_weather", "arguments": {"city": "Oslo"}}
 *     </tool_call>
 *
 * Tags never come out as text, nor the white space that sets a call off from its neighbours. What stands between tags
 * and is no call comes out as text, without them. A call without its closing tag counts where the text ends or another
 * call begins.
 */
import { heldLength, type ParsedEvent, type ToolCallParser, type ToolFormat } from "./format.ts";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

export const hermes: ToolFormat = {
  isIn: (source) => source.includes(OPEN) && /arguments\\?"/.test(source) && !source.includes("<function="),
  makeParser: makeHermesParser,
};

function makeHermesParser(): ToolCallParser {
  let pending = ""; // text that is not decided yet; inside a call, its body so far
  let body: BodyScan | undefined; // inside a call
  let gap = ""; // white space in front of the call
  let isAfterCall = false; // white space here belongs to the call

  /** Text up to an opening tag; false: more is needed. */
  const takeText = (events: ParsedEvent[]): boolean => {
    const open = pending.indexOf(OPEN);
    const end = open >= 0 ? open : pending.length - heldLength(pending, OPEN);
    let text = pending.slice(0, end);
    if (isAfterCall) text = text.trimStart();
    const kept = text.trimEnd();
    if (kept !== "") {
      isAfterCall = false;
      addText(events, kept);
    }
    if (open < 0) {
      pending = text.slice(kept.length) + pending.slice(end);
      return false;
    }
    gap = text.slice(kept.length);
    pending = pending.slice(open + OPEN.length);
    body = { at: 0, state: "outside" };
    return true;
  };

  /** Ends the call at `end`; one that is none, at the first tag in it: a quote before that tag began no string. */
  const closeCall = (events: ParsedEvent[], end: Cut): void => {
    const calls = callsIn(pending.slice(0, end.at));
    const cut = calls.length > 0 ? end : (firstTag(pending) ?? end);
    isAfterCall = calls.length > 0;
    if (isAfterCall) events.push(...calls);
    else addText(events, gap + pending.slice(0, cut.at));
    pending = pending.slice(cut.at + cut.length);
    body = undefined;
  };

  const takeAll = (events: ParsedEvent[]): void => {
    for (;;) {
      if (!body) {
        if (!takeText(events)) return;
        continue;
      }
      const end = scanBody(pending, body);
      if (!end) return;
      closeCall(events, end);
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
        const length = heldLength(pending, CLOSE);
        closeCall(events, { at: pending.length - length, length });
        takeAll(events);
      }
      if (!isAfterCall || pending.trim() !== "") addText(events, pending);
      pending = "";
      return events;
    },
  };
}

/** Where a body ends, and how many characters to skip there. */
interface Cut {
  readonly at: number;
  readonly length: number;
}

/**
 * Where the scan of a body stands. A tag inside a JSON string is part of it; a string that a line break ends was none.
 */
interface BodyScan {
  at: number;
  state: "outside" | "string" | "broken";
}

/** The end of a body: before its closing tag, which it skips, or before the next call's opening tag. */
function scanBody(text: string, scan: BodyScan): Cut | undefined {
  for (; scan.at < text.length; scan.at++) {
    const c = text[scan.at]!;
    if (scan.state === "string") {
      if (c === "\\") {
        if (scan.at + 1 >= text.length) return undefined; // what it escapes is still to come
        scan.at++;
      } else if (c === '"') scan.state = "outside";
      else if (c === "\n") scan.state = "broken";
    } else if (c === '"' && scan.state === "outside") {
      scan.state = "string";
    } else if (c === "<") {
      if (text.startsWith(CLOSE, scan.at)) return { at: scan.at, length: CLOSE.length };
      if (text.startsWith(OPEN, scan.at)) return { at: scan.at, length: 0 };
      const rest = text.slice(scan.at, scan.at + CLOSE.length);
      if (CLOSE.startsWith(rest) || OPEN.startsWith(rest)) return undefined; // may become a tag
    }
  }
  return undefined;
}

/** The first tag in a text; an opening one is left for the next call. */
function firstTag(text: string): Cut | undefined {
  const open = text.indexOf(OPEN);
  const close = text.indexOf(CLOSE);
  if (open < 0 && close < 0) return undefined;
  return close >= 0 && (open < 0 || close < open) ? { at: close, length: CLOSE.length } : { at: open, length: 0 };
}

function addText(events: ParsedEvent[], text: string): void {
  if (text !== "") events.push({ kind: "text", text });
}

/** The calls in a body, one or a list; none where any part of it is no call. */
function callsIn(body: string): ParsedEvent[] {
  const parsed = parseJson(body);
  const calls = (Array.isArray(parsed) ? parsed : [parsed]).map(toCall);
  return calls.every((call) => call !== undefined) ? calls : [];
}

function toCall(value: unknown): ParsedEvent | undefined {
  if (!isObject(value) || typeof value["name"] !== "string" || value["name"] === "") return undefined;
  const given = value["arguments"] ?? value["parameters"] ?? {};
  const args = typeof given === "string" ? parseJson(given) : given;
  return isObject(args) ? { kind: "toolCall", name: value["name"], arguments: args } : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Undefined for what is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
