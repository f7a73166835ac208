/**
 * The parser for formats whose answers are a sequence of messages, each with a header that says what it is: thinking, a
 * call, or text. The prompt ends inside the first header, or after it.
 */
import { cutCallsIn } from "./cut-calls.ts";
import { scanToTagOutsideStrings, type Scan } from "./scan.ts";
import { findFirst, heldLengthOf, type CallEvent, type ParsedEvent, type TextParser } from "./format.ts";

type Kind = "text" | "thinking";
/** `outer`: it only surrounds other messages; undefined: the header was text. */
type Opened = Kind | { readonly call: string } | "outer" | undefined;

interface Messages {
  /** Texts that begin headers, except the first. */
  readonly starts: readonly string[];
  /** Further texts that may begin the first header. */
  readonly firsts: readonly string[];
  /** Tags that end a header. */
  readonly bodies: readonly string[];
  /** Tags that end a message. */
  readonly ends: readonly string[];
  /** The kind of a message, from its header and the tag after it. */
  readonly kindOf: (header: string, tag: string) => Opened;
  /** Empty if the body is not a call: it comes out as text. */
  readonly callsIn: (body: string, name: string) => readonly CallEvent[];
  /** Texts, besides brackets, that can complete the body of a cut call. */
  readonly closings?: readonly string[];
  /** Finds the end of a call's body; absent: the first tag outside strings of JSON. */
  readonly makeScan?: (
    tags: { readonly opens: readonly string[]; readonly closes: readonly string[] },
    name: string,
  ) => Scan;
  /** The end of the prompt, if it may have opened a message; absent: it has not. */
  readonly promptEnd?: string | undefined;
}

/** A header is not longer: more text without a tag is an answer. */
const HEADER_LENGTH_MAX = 256;

/** The part between two boundaries: a header, or the body of a message. */
type State =
  | { readonly in: "header" }
  | { readonly in: "message"; readonly kind: Kind }
  | { readonly in: "call"; readonly name: string; readonly scan: Scan };

export function makeMessagesParser(format: Messages): TextParser {
  const { starts, firsts, bodies, ends, kindOf, makeScan = scanToTagOutsideStrings } = format;
  const headerStarts = [...starts, ...firsts, ...bodies];
  const tags = [...ends, ...starts, ...bodies.filter((tag) => tag.trim() !== "")]; // bodies have line breaks
  const stateOf = (kind: Opened): State => {
    if (kind === "outer") return { in: "header" };
    if (typeof kind !== "object") return { in: "message", kind: kind ?? "text" };
    const scan = makeScan({ opens: tags.filter((tag) => !ends.includes(tag)), closes: ends }, kind.call);
    return { in: "call", name: kind.call, scan };
  };
  let pending = "";
  let lead = ""; // the tag that ended the previous message
  let state = stateOf(openedBy(format));

  const takeHeader = (events: ParsedEvent[]): boolean => {
    const isBegun = headerStarts.some((start) => begins(pending, start));
    const found = findFirst(pending, bodies);
    if (isBegun && found && found.at <= HEADER_LENGTH_MAX) {
      const header = pending.slice(0, found.at);
      const kind = kindOf(header, found.tag);
      pending = pending.slice(found.at + found.tag.length);
      if (kind === undefined) add(events, "text", lead + header + found.tag);
      state = stateOf(kind);
      return true;
    }
    if (isBegun && pending.length <= HEADER_LENGTH_MAX + Math.max(...bodies.map(({ length }) => length))) return false;
    const tag = starts.find((each) => pending.trimStart().startsWith(each));
    if (tag !== undefined) pending = pending.trimStart().slice(tag.length); // the model deviates from the format
    state = { in: "message", kind: "text" };
    return true;
  };

  const takeCall = (events: ParsedEvent[], { name, scan }: Extract<State, { in: "call" }>): boolean => {
    const cut = scan(pending);
    if (!cut) return false;
    finishCall(events, pending.slice(0, cut.at), { name, format });
    lead = pending.slice(cut.at, cut.at + cut.length);
    pending = pending.slice(cut.at + cut.length);
    state = { in: "header" };
    return true;
  };

  const takeBody = (events: ParsedEvent[]): boolean => {
    if (state.in === "call") return takeCall(events, state);
    const found = findFirst(pending, tags);
    const end = found ? found.at : pending.length - heldLengthOf(pending, tags);
    const sure = pending.slice(0, end);
    if (state.in === "message") add(events, state.kind, sure);
    lead = found && ends.includes(found.tag) ? found.tag : "";
    pending = pending.slice(end + lead.length);
    if (!found) return false;
    state = { in: "header" };
    return true;
  };

  return {
    push(text) {
      const events: ParsedEvent[] = [];
      pending += text;
      while (state.in === "header" ? takeHeader(events) : takeBody(events));
      return events;
    },
    end(isCut = false) {
      const events: ParsedEvent[] = [];
      if (state.in === "call") finishCall(events, pending, { name: state.name, isCut, format });
      else if (state.in === "message") add(events, state.kind, pending);
      else if (pending.trim() !== "" && kindOf(pending, "") === undefined) add(events, "text", lead + pending);
      pending = "";
      return events;
    },
  };
}

/** The kind of the message that the prompt has opened at its end; "outer": none. */
function openedBy({ promptEnd = "", starts, bodies, kindOf }: Messages): Opened {
  const tag = bodies.find((body) => promptEnd.endsWith(body));
  const at = Math.max(...starts.map((start) => promptEnd.lastIndexOf(start)), -1);
  if (tag === undefined || at < 0) return "outer";
  const header = promptEnd.slice(at, -tag.length);
  return findFirst(header, bodies) ? "outer" : kindOf(header, tag);
}

/** The calls in a body, or the body as text. */
function finishCall(
  events: ParsedEvent[],
  text: string,
  { name, isCut, format }: { name: string; isCut?: boolean; format: Messages },
): void {
  const callsIn = (body: string): readonly CallEvent[] => format.callsIn(body, name);
  const calls = isCut ? cutCallsIn(text, { text, callsIn, closings: format.closings }) : callsIn(text);
  if (calls.length > 0) events.push(...calls);
  else add(events, "text", text);
}

/** Returns whether a text begins with a tag, or may do so once it is longer. */
const begins = (text: string, tag: string): boolean => {
  const start = text.trimStart();
  return start.startsWith(tag) || tag.startsWith(start);
};

function add(events: ParsedEvent[], kind: Kind, text: string): void {
  if (text !== "") events.push({ kind, text });
}
