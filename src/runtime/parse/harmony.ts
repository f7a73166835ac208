/**
 * Harmony, the format of gpt-oss: an answer is a row of messages, each with a header that names its channel.
 *
 *     <|channel|>analysis<|message|>The user wants …<|end|>
 *     <|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
 *     <|start|>assistant<|channel|>final<|message|>It is cold.<|return|>
 *
 * Analysis is thinking; a message with a recipient is a call; everything else is text. The prompt ends inside the first
 * header. A call whose arguments are no JSON object comes out as text.
 */
import { findFirst, heldLengthOf, plainForced, type ParsedEvent, type TextParser, type ToolFormat } from "./format.ts";
import { makeCall } from "./json-calls.ts";

const MESSAGE = "<|message|>";
const ENDS = ["<|end|>", "<|return|>", "<|call|>"];
const HEADER_TAGS = ["<|start|>", "<|channel|>", "<|constrain|>"];
const HEADER_STARTS = [...HEADER_TAGS, MESSAGE, "to="];
const TAGS = [...ENDS, ...HEADER_TAGS, MESSAGE];

export const harmony: ToolFormat = {
  isIn: (source) => source.includes("<|start|>") && source.includes("<|channel|>"),
  markup: TAGS,
  forced: { ...plainForced, open: `<|channel|>commentary <|constrain|>json${MESSAGE}` },
  makeParser: makeHarmonyParser,
  marks: {
    open: `<|channel|>analysis${MESSAGE}`,
    close: "<|end|>",
    next: "<|start|>assistant",
    answer: `<|channel|>final${MESSAGE}`,
  },
};

/** Longer text without a message behind it is no header. */
const HEADER_LENGTH_MAX = 256;

type Kind = "text" | "thinking";

/** What stands between two boundaries: a header, or the body of a message. */
type State =
  | { readonly in: "header" }
  | { readonly in: "message"; readonly kind: Kind }
  | { readonly in: "call"; readonly name: string };

function makeHarmonyParser(): TextParser {
  let pending = "";
  let body = ""; // of a call, so far
  let state: State = { in: "header" };

  const takeHeader = (): boolean => {
    const isBegun = HEADER_STARTS.some((start) => begins(pending, start));
    const end = pending.indexOf(MESSAGE);
    if (isBegun && end >= 0 && end <= HEADER_LENGTH_MAX) {
      state = stateOf(pending.slice(0, end));
      pending = pending.slice(end + MESSAGE.length);
      return true;
    }
    if (isBegun && pending.length <= HEADER_LENGTH_MAX + MESSAGE.length) return false;
    const tag = HEADER_TAGS.find((each) => pending.trimStart().startsWith(each));
    if (tag !== undefined) pending = pending.trimStart().slice(tag.length); // the model does not keep to the format
    state = { in: "message", kind: "text" };
    return true;
  };

  const takeBody = (events: ParsedEvent[]): boolean => {
    const found = findFirst(pending, TAGS);
    const end = found ? found.at : pending.length - heldLengthOf(pending, TAGS);
    const sure = pending.slice(0, end);
    if (state.in === "call") body += sure;
    else if (state.in === "message") add(events, state.kind, sure);
    pending = pending.slice(end + (found && ENDS.includes(found.tag) ? found.tag.length : 0));
    if (!found) return false;
    if (state.in === "call") finishCall(events, body, state.name);
    body = "";
    state = { in: "header" };
    return true;
  };

  const takeAll = (events: ParsedEvent[]): void => {
    while (state.in === "header" ? takeHeader() : takeBody(events));
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
      if (state.in === "call") finishCall(events, body + pending, state.name);
      else if (state.in === "message") add(events, state.kind, pending);
      pending = "";
      return events;
    },
  };
}

/** Whether a text begins with a tag, or may once there is more of it. */
const begins = (text: string, tag: string): boolean => {
  const start = text.trimStart();
  return start.startsWith(tag) || tag.startsWith(start);
};

function stateOf(header: string): State {
  const recipient = /\bto=(?:functions\.)?([^\s<]+)/.exec(header)?.[1];
  if (recipient !== undefined && recipient !== "assistant") return { in: "call", name: recipient };
  return { in: "message", kind: /<\|channel\|>\s*analysis/.test(header) ? "thinking" : "text" };
}

function finishCall(events: ParsedEvent[], body: string, name: string): void {
  const call = makeCall(name, body.trim() === "" ? {} : body.trim());
  if (call) events.push(call);
  else add(events, "text", body);
}

function add(events: ParsedEvent[], kind: Kind, text: string): void {
  if (text !== "") events.push({ kind, text });
}
