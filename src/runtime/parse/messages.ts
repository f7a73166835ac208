/**
 * The parser for formats whose answers are a sequence of messages, each with a header that says what it is: thinking, a
 * call, or text. The prompt ends inside the first header.
 */
import { cutCallsIn } from "./cut-calls.ts";
import { findFirst, heldLengthOf, type CallEvent, type ParsedEvent, type TextParser } from "./format.ts";

type Kind = "text" | "thinking";

interface Messages {
  /** Texts that begin headers, except the first. */
  readonly starts: readonly string[];
  /** Further texts that may begin the first header. */
  readonly firsts: readonly string[];
  /** Tags that end a header. */
  readonly bodies: readonly string[];
  /** Tags that end a message. */
  readonly ends: readonly string[];
  /** The kind of a message, from its header and the tag after it; undefined: the header was text. */
  readonly kindOf: (header: string, tag: string) => Kind | { readonly call: string } | undefined;
  /** Empty if the body is not a call: it comes out as text. */
  readonly callsIn: (body: string, name: string) => readonly CallEvent[];
  /** Texts, besides brackets, that can complete the body of a cut call. */
  readonly closings?: readonly string[];
}

/** A header is not longer: more text without a tag is an answer. */
const HEADER_LENGTH_MAX = 256;

/** The part between two boundaries: a header, or the body of a message. */
type State =
  | { readonly in: "header" }
  | { readonly in: "message"; readonly kind: Kind }
  | { readonly in: "call"; readonly name: string };

export function makeMessagesParser({ starts, firsts, bodies, ends, kindOf, callsIn, closings }: Messages): TextParser {
  const headerStarts = [...starts, ...firsts, ...bodies];
  const tags = [...ends, ...starts, ...bodies.filter((tag) => tag.trim() !== "")]; // bodies have line breaks
  let pending = "";
  let body = ""; // the current call
  let lead = ""; // the tag that ended the previous message
  let state: State = { in: "header" };

  const takeHeader = (events: ParsedEvent[]): boolean => {
    const isBegun = headerStarts.some((start) => begins(pending, start));
    const found = findFirst(pending, bodies);
    if (isBegun && found && found.at <= HEADER_LENGTH_MAX) {
      const header = pending.slice(0, found.at);
      const kind = kindOf(header, found.tag);
      pending = pending.slice(found.at + found.tag.length);
      if (kind === undefined) add(events, "text", lead + header + found.tag);
      state = typeof kind === "object" ? { in: "call", name: kind.call } : { in: "message", kind: kind ?? "text" };
      return true;
    }
    if (isBegun && pending.length <= HEADER_LENGTH_MAX + Math.max(...bodies.map(({ length }) => length))) return false;
    const tag = starts.find((each) => pending.trimStart().startsWith(each));
    if (tag !== undefined) pending = pending.trimStart().slice(tag.length); // the model deviates from the format
    state = { in: "message", kind: "text" };
    return true;
  };

  const finishCall = (
    events: ParsedEvent[],
    text: string,
    { name, isCut }: { name: string; isCut?: boolean },
  ): void => {
    const calls = isCut
      ? cutCallsIn(text, { text, callsIn: (body) => callsIn(body, name), closings })
      : callsIn(text, name);
    if (calls.length > 0) events.push(...calls);
    else add(events, "text", text);
  };

  const takeBody = (events: ParsedEvent[]): boolean => {
    const found = findFirst(pending, tags);
    const end = found ? found.at : pending.length - heldLengthOf(pending, tags);
    const sure = pending.slice(0, end);
    if (state.in === "call") body += sure;
    else if (state.in === "message") add(events, state.kind, sure);
    lead = found && ends.includes(found.tag) ? found.tag : "";
    pending = pending.slice(end + lead.length);
    if (!found) return false;
    if (state.in === "call") finishCall(events, body, state);
    body = "";
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
      if (state.in === "call") finishCall(events, body + pending, { name: state.name, isCut });
      else if (state.in === "message") add(events, state.kind, pending);
      else if (pending.trim() !== "" && kindOf(pending, "") === undefined) add(events, "text", lead + pending);
      pending = "";
      return events;
    },
  };
}

/** Returns whether a text begins with a tag, or may do so once it is longer. */
const begins = (text: string, tag: string): boolean => {
  const start = text.trimStart();
  return start.startsWith(tag) || tag.startsWith(start);
};

function add(events: ParsedEvent[], kind: Kind, text: string): void {
  if (text !== "") events.push({ kind, text });
}
